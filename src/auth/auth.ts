/**
 * Authenticates callers over HTTP.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { apiKey, requirePrincipal } from "@x/mcp/auth";
 *
 * const whoami = tool({ name: "whoami", run: (_, ctx) => requirePrincipal(ctx).id });
 * const auth = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853" } });
 *
 * export default createServer({ name: "me", version: "1.0.0", auth, handlers: [whoami] });
 * ```
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
export { apiKey, type ApiKeyCaller, type ApiKeyOptions, type ApiKeyOwner, type FindApiKey } from "./api_key.ts";
export { basicAuth, type BasicAuthOptions, type BasicUser, type BasicUserInfo, type VerifyUser } from "./basic.ts";
export { customAuth, type CustomAuthOptions } from "./custom.ts";
export { type CallerInfo, findPrincipal, requirePrincipal } from "./principal.ts";
export {
  type ElicitationLinkOptions,
  type ElicitationLinks,
  elicitationLinks,
  type ElicitationLinksOptions,
} from "./elicitation_links.ts";
export { refuseRequest, type RefuseRequestOptions } from "../server/engine/auth.ts";
export type {
  AuthRefusal,
  AuthRequestInfo,
  AuthRoute,
  AuthScheme,
  Challenge,
  Credentials,
  PathInfo,
} from "../server/engine/auth.ts";
export type { RoutePeer } from "../server/engine/route_peer.ts";
export { authScheme } from "./scheme_list.ts";
export { allScopes, hasScopes } from "../server/call/scopes.ts";
