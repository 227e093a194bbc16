// Access tokens with the claims that common providers document. The server is configured as in the guides. A local
// issuer signs the tokens, so no provider is called.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { oauth, type OAuthOptions } from "../../src/auth/oauth/oauth.ts";
import { RESOURCE, TestIssuer, type TokenParts } from "../support/issuer.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

interface Row {
  readonly title: string;
  readonly issuer: Parameters<typeof TestIssuer.start>[0];
  readonly options?: Partial<OAuthOptions>;
  readonly token: (issuer: string) => TokenParts;
  /** Expected fields of `ctx.principal` in a tool. */
  readonly seen: { readonly scopes: readonly string[]; readonly subject?: string; readonly clientId?: string };
}

const API = "6e74172b-be56-4843-9ff4-e66a39bb12e3"; // A client id in Entra's format.
const TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47";
const PREFIX = `api://${API}/`;

/**
 * Adds the prefix to the scopes: clients request scopes from Entra by their full names, but tokens contain the short
 * names.
 */
const readEntraScopes: OAuthOptions["readScopes"] = ({ scp, roles }) => {
  const short = typeof scp === "string" ? scp.split(" ") : Array.isArray(roles) ? roles : [];
  return short.map((name) => `${PREFIX}${name}`);
};

const rows: readonly Row[] = [
  {
    title: "Keycloak: an audience added by a mapper beside its own, and the type JWT",
    issuer: { alg: "RS256", path: "/realms/notes", wellKnown: "/realms/notes/.well-known/openid-configuration" },
    token: () => ({
      header: { typ: "JWT" },
      claims: {
        aud: [RESOURCE, "account"],
        typ: "Bearer",
        azp: "inspector",
        client_id: undefined,
        scope: "openid notes:read",
        sub: "f1",
      },
    }),
    seen: { scopes: ["openid", "notes:read"], subject: "f1", clientId: "inspector" },
  },
  {
    title: "Auth0: an issuer with a slash at its end, two audiences, and azp",
    issuer: { alg: "RS256", path: "/", wellKnown: "/.well-known/openid-configuration" },
    token: (issuer) => ({
      header: { typ: "JWT" },
      claims: {
        aud: [RESOURCE, `${issuer}userinfo`],
        azp: "app-1",
        client_id: undefined,
        scope: "openid notes:read",
        sub: "auth0|1",
      },
    }),
    seen: { scopes: ["openid", "notes:read"], subject: "auth0|1", clientId: "app-1" },
  },
  {
    title: "Auth0: the profile of RFC 9068, and permissions as scopes",
    issuer: { alg: "RS256", path: "/", wellKnown: "/.well-known/openid-configuration" },
    options: { type: "at+jwt", readScopes: ({ permissions }) => Array.isArray(permissions) ? permissions : [] },
    token: () => ({ claims: { client_id: "app-1", scope: "openid", permissions: ["notes:read"], sub: "auth0|1" } }),
    seen: { scopes: ["notes:read"], subject: "auth0|1", clientId: "app-1" },
  },
  {
    title: "Auth0: a machine has no subject",
    issuer: { alg: "RS256", path: "/", wellKnown: "/.well-known/openid-configuration" },
    token: () => ({
      header: { typ: "JWT" },
      claims: {
        azp: "app-2",
        client_id: undefined,
        gty: "client-credentials",
        scope: "notes:read",
        sub: "app-2@clients",
      },
    }),
    seen: { scopes: ["notes:read"], clientId: "app-2" },
  },
  {
    title: "Entra: the client id as audience, and short names of scopes",
    issuer: { alg: "RS256", path: `/${TENANT}/v2.0`, wellKnown: `/${TENANT}/v2.0/.well-known/openid-configuration` },
    options: { audience: API, readScopes: readEntraScopes },
    token: () => ({
      header: { typ: "JWT" },
      claims: {
        aud: API,
        ver: "2.0",
        azp: "app-3",
        client_id: undefined,
        scp: "notes.read notes.write",
        sub: "pairwise",
      },
    }),
    seen: { scopes: [`${PREFIX}notes.read`, `${PREFIX}notes.write`], subject: "pairwise", clientId: "app-3" },
  },
  {
    title: "Entra: roles of an application without a user",
    issuer: { alg: "RS256", path: `/${TENANT}/v2.0`, wellKnown: `/${TENANT}/v2.0/.well-known/openid-configuration` },
    options: { audience: API, readScopes: readEntraScopes },
    token: () => ({
      header: { typ: "JWT" },
      claims: {
        aud: API,
        ver: "2.0",
        azp: "app-4",
        client_id: undefined,
        idtyp: "app",
        roles: ["notes.read"],
        sub: "o",
      },
    }),
    seen: { scopes: [`${PREFIX}notes.read`], clientId: "app-4" },
  },
];

for (const { title, issuer: start, options, token, seen } of rows) {
  Deno.test(`tokens with the claims of ${title} are accepted`, async () => {
    await using issuer = await TestIssuer.start(start);
    const auth = oauth({ resource: RESOURCE, issuers: [issuer.name], ...options });
    const whoami = tool({ name: "whoami", run: (_, { principal }) => ({ ...principal }) });
    const server = openServer({ auth, handlers: [whoami] });
    const headers = { authorization: `Bearer ${await issuer.sign(token(issuer.name))}` };
    const response = await server.fetch(toRequest("tools/call", { name: "whoami" }, headers));
    const { result } = await readReply(response);
    assertEquals([response.status, response.headers.get("www-authenticate")], [200, null]);
    const { scopes, subject, clientId } = result.structuredContent;
    assertEquals({ scopes, subject, clientId }, { subject: undefined, clientId: undefined, ...seen });
    const foreign = await issuer.sign({
      ...token(issuer.name),
      claims: { ...token(issuer.name).claims, aud: "other" },
    });
    const refused = await server.fetch(toRequest("tools/call", {}, { authorization: `Bearer ${foreign}` }));
    await refused.body?.cancel();
    assertEquals(refused.status, 401);
  });
}
