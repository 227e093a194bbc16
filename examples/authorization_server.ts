/**
 * A server with an authorization server of its own, the package `oidc-provider`, in one program and on one port.
 *
 * Set `ADA_PASSWORD`, run it with `deno run -A examples/authorization_server.ts`, and sign in as `ada`.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import process from "node:process";
import { text } from "node:stream/consumers";
import { getRequestListener } from "@hono/node-server";
import { createServer, tool } from "@x/mcp";
import { requirePrincipal } from "@x/mcp/auth";
import { oauth } from "@x/mcp/oauth";
import { exportJWK, generateKeyPair } from "jose";
import Provider, { errors } from "oidc-provider";

const port = Number(process.env.PORT ?? 3000);
const issuer = `http://127.0.0.1:${port}`;
const resource = `${issuer}/mcp`;

const whoami = tool({ name: "whoami", scopes: ["notes:read"], run: (_input, ctx) => requirePrincipal(ctx).id });
const auth = oauth({ resource, issuers: [issuer], scopes: ["notes:read"] });
const server = createServer({ name: "notes", version: "1.0.0", auth, handlers: [whoami] });

const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...await exportJWK(privateKey), alg: "RS256", use: "sig" }] },
  cookies: { keys: [crypto.randomUUID()] },
  scopes: ["openid", "offline_access", "notes:read"],
  responseTypes: ["code"],
  pkce: { required: () => true },
  clientBasedCORS: () => true,
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo(_ctx: unknown, asked: string) {
        if (asked !== resource) throw new errors.InvalidTarget();
        return { scope: "notes:read", audience: resource, accessTokenFormat: "jwt" };
      },
    },
  },
  findAccount: (_ctx: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_ctx: unknown, { uid }: { readonly uid: string }) => `/sign-in/${uid}` },
});

/** Replace this function with your accounts, and limit the attempts. */
function isPassword(user: string, password: string): boolean {
  return user === "ada" && password !== "" && password === process.env.ADA_PASSWORD;
}

/** Shows who asks for access, and signs the user in. */
async function signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const form = new URLSearchParams(request.method === "POST" ? await text(request) : "");
  if (form.get("action") === "deny") {
    return await provider.interactionFinished(request, response, { error: "access_denied" });
  }
  const accountId = form.get("user") ?? "";
  if (!isPassword(accountId, form.get("password") ?? "")) {
    const { clientName = "An app without a name" } = await provider.Client.find(params.client_id);
    const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": "frame-ancestors 'none'" };
    response.writeHead(request.method === "POST" ? 401 : 200, headers).end(`<!doctype html>
<title>Sign in</title>
<form method="post">
  <p><bdi>${escape(clientName)}</bdi> asks for access to your notes, and returns you to
    <strong>${escape(params.redirect_uri)}</strong>. Anybody can choose this name.</p>
  <label>Name <input name="user" autocomplete="username"></label>
  <label>Password <input name="password" type="password" autocomplete="current-password"></label>
  <button name="action" value="allow">Allow</button> <button name="action" value="deny">Deny</button>
</form>`);
    return;
  }
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(String(params.scope));
  grant.addResourceScope(resource, "notes:read");
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { login: { accountId }, consent });
}

function escape(value: unknown): string {
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const [serveMcp, serveProvider] = [getRequestListener(server.fetch), provider.callback()];
createHttpServer((request, response) => {
  const [path] = (request.url ?? "").split("?");
  if (path === "/mcp" || path.startsWith("/.well-known/oauth-protected-resource")) serveMcp(request, response);
  else if (path.startsWith("/sign-in/")) signIn(request, response).catch(() => response.writeHead(400).end());
  else serveProvider(request, response);
}).listen(port, "127.0.0.1", () => console.log(`Serving ${resource}`));
