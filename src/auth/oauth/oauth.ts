/**
 * Protects a server with access tokens of OAuth authorization servers.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { requirePrincipal } from "@x/mcp/auth";
 * import { oauth } from "@x/mcp/oauth";
 *
 * const auth = oauth({ resource: "https://mcp.example.com/mcp", issuers: ["https://login.example.com"] });
 * const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
 *
 * export default createServer({ name: "me", version: "1.0.0", auth, handlers: [whoami] });
 * ```
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
export { oauth, type OAuthAuthentication, type OAuthOptions } from "./resource_server.ts";
export { type Claims, type OAuthPrincipal, toPrincipalId } from "./caller.ts";
export { clientCredentialsToken, type ClientCredentialsTokenOptions } from "./client_credentials.ts";
export { type ExchangeOptions, type ExchangeRequest, exchangeToken } from "./token_exchange.ts";
export type { IntrospectionOptions } from "./introspection.ts";
export type { AccessToken } from "./access_token.ts";
export type { OAuthClient, PrivateJwk } from "./oauth_client.ts";
export type { Send } from "./http.ts";
export type { MetadataRoute } from "./metadata.ts";
export type { ByPath } from "./resource.ts";
