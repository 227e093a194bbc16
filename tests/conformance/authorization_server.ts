// A server whose users sign in at the OpenID provider ISSUER. `deno task conformance:authorization` tests it.
import process from "node:process";
import { createServer } from "@x/mcp";
import { oauthProxy, oidc } from "@x/mcp/oauth/proxy";
import { memoryStore } from "@x/mcp/stores";

const { PORT, ISSUER = "", CLIENT_ID, CLIENT_SECRET, DOCUMENT = "" } = process.env;

/** The metadata document of a client, which the suite does not serve. */
const document = { client_id: DOCUMENT, client_name: "Suite", redirect_uris: ["http://127.0.0.1/callback"] };

const auth = oauthProxy({
  resource: `http://127.0.0.1:${PORT}/mcp`,
  provider: oidc(ISSUER, { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, name: "Login" }),
  who: ({ subject }) => subject === "ada",
  scopes: ["notes:read"],
  clients: [{ id: "listed", name: "Listed", redirects: ["http://127.0.0.1/callback"] }],
  documents: { fetch: () => Promise.resolve(Response.json(document)) },
});

export default createServer({ name: "notes", version: "1.0.0", store: memoryStore(), auth });
