// Runs the test authorization servers: one `oidc-provider` for each issuer. Users sign in without a web page, with
// their name in the `x-user` header or in the cookie `user`. `POST /control/rotate` replaces the signing key of an issuer.
// The program prints the URLs of the issuers, and exits when its input ends, also if the test is killed.
import http from "node:http";
import process from "node:process";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";

interface Issuer {
  readonly name: string;
  /** Path in the URL of the issuer. Empty if the URL has no path. */
  readonly path: string;
  readonly format: "jwt" | "opaque";
  readonly algorithm: "RS256" | "ES256";
  /** Whether a client can use the URL of its metadata as its client id. */
  readonly takesDocuments: boolean;
}

const issuers: readonly Issuer[] = [
  { name: "first", path: "", format: "jwt", algorithm: "RS256", takesDocuments: true },
  { name: "second", path: "/tenant", format: "jwt", algorithm: "ES256", takesDocuments: false },
  { name: "opaque", path: "", format: "opaque", algorithm: "RS256", takesDocuments: false },
];

const SCOPES = ["notes:read", "notes:write"];
const CLIENT_DOCUMENT = "https://client.example/metadata.json";
const REDIRECT = "http://127.0.0.1:7777/callback";

const clientDocument = {
  client_id: CLIENT_DOCUMENT,
  client_name: "A client with a document",
  redirect_uris: [REDIRECT],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
  application_type: "native",
};

/**
 * Preregistered clients: one introspects opaque tokens, one requests tokens with the client credentials grant, and one is
 * a server with `oauthProxy`. The port of its redirect URI is free, because it is a native client (RFC 8252).
 */
const clients = [
  {
    client_id: "resource-server",
    client_secret: "resource-server-secret",
    redirect_uris: [],
    grant_types: [],
    response_types: [],
  },
  {
    client_id: "robot",
    client_secret: "robot-secret",
    redirect_uris: [],
    grant_types: ["client_credentials"],
    response_types: [],
  },
  {
    client_id: "proxy",
    client_secret: "proxy-secret",
    redirect_uris: ["http://127.0.0.1/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    application_type: "native",
  },
];

let keys = 0;

async function createKey(algorithm: string): Promise<object> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { ...await exportJWK(privateKey), kid: `key-${++keys}`, alg: algorithm, use: "sig" };
}

function toProvider(issuer: string, { format, algorithm, takesDocuments }: Issuer, signingKeys: readonly object[]) {
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys: signingKeys },
    cookies: { keys: ["test"] },
    scopes: ["openid", "offline_access", ...SCOPES],
    // Ignores the scopes in client registrations, so that clients can request more scopes later.
    extraClientMetadata: {
      properties: ["steps_up"],
      validator: (_ctx: unknown, _key: string, _value: unknown, metadata: { scope?: string }) =>
        void delete metadata.scope,
    },
    pkce: { required: () => true },
    clientBasedCORS: () => true,
    ttl: { AccessToken: 600, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600, ClientCredentials: 600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      ...takesDocuments && { clientIdMetadataDocument: { enabled: true, ack: "draft-02" } },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: SCOPES.join(" "),
          audience: resource,
          accessTokenTTL: 600,
          accessTokenFormat: format,
          ...format === "jwt" && { jwt: { sign: { alg: algorithm } } },
        }),
      },
    },
    clientDefaults: { id_token_signed_response_alg: algorithm },
    findAccount: (_ctx: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => new URL(`/auto/${uid}`, issuer).href },
    issueRefreshToken: (_ctx: unknown, _client: unknown, code: { scopes: Set<string> }) =>
      code.scopes.has("offline_access"),
    fetch: (url: string | URL, options: RequestInit) =>
      String(url) === CLIENT_DOCUMENT ? Promise.resolve(Response.json(clientDocument)) : fetch(url, options),
  });
  provider.on("server_error", (_ctx: unknown, error: unknown) => console.error("server_error", error));
  return provider;
}

/** Serves an issuer on a free port, and returns the issuer's URL. */
async function serve(issuer: Issuer): Promise<string> {
  const server = http.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : address}`;
  const url = origin + issuer.path;
  let signingKeys = [await createKey(issuer.algorithm)];
  let provider = toProvider(url, issuer, signingKeys);
  let handle = provider.callback();
  const fetched: Record<string, number> = {};

  server.on("request", async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const path = new URL(request.url ?? "", origin).pathname;
    fetched[path] = (fetched[path] ?? 0) + 1;
    try {
      if (path === "/control/fetched") return response.end(JSON.stringify(fetched));
      if (path === "/control/rotate") {
        signingKeys = [await createKey(issuer.algorithm)];
        provider = toProvider(url, issuer, signingKeys);
        handle = provider.callback();
        return response.end();
      }
      if (path.startsWith("/auto/")) return await signIn(provider, request, response);
      // All paths begin with the issuer's path, except well-known URLs, which end with the issuer's path.
      const inserted = /^\/\.well-known\/(oauth-authorization-server|openid-configuration)(\/.*)?$/.exec(path);
      if (inserted) {
        if ((inserted[2] ?? "") !== issuer.path) return response.writeHead(404).end();
        request.url = `/.well-known/${inserted[1]}`;
      } else if (path.startsWith(issuer.path)) request.url = request.url?.slice(issuer.path.length) || "/";
      // `oidc-provider` compares `url` and `originalUrl` to find the path at which it is mounted.
      Object.assign(request, { originalUrl: issuer.path + request.url });
      await handle(request, response);
    } catch (error) {
      console.error(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
  });
  return url;
}

/** Signs the user in, and grants all requested scopes. */
async function signIn(
  provider: Provider,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  const user = request.headers["x-user"] ?? /(?:^|; )user=([^;]*)/.exec(request.headers.cookie ?? "")?.[1];
  const accountId = session?.accountId ?? String(user);
  const merge = { mergeWithLastSubmission: true };
  if (prompt.name === "login") {
    return await provider.interactionFinished(request, response, { login: { accountId } }, merge);
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes = {} } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries<string[]>(missingResourceScopes)) {
    grant.addResourceScope(resource, scopes.join(" "));
  }
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } }, merge);
}

const found: Record<string, string> = {};
for (const issuer of issuers) found[issuer.name] = await serve(issuer);
console.log(`Issuers ${JSON.stringify(found)}`);
process.stdin.on("end", () => process.exit()).resume();
