/**
 * Signs users and programs in at the authorization servers of protected MCP servers.
 *
 * ```ts
 * import { connect } from "@x/mcp/client";
 * import { loopback, signIn } from "@x/mcp/client/oauth";
 *
 * const auth = signIn({
 *   userAgent: loopback({ open: ({ url }) => console.log(`Sign in at ${url}`) }),
 *   clientName: "Notes reader",
 * });
 *
 * export async function readTools(url: string) {
 *   await using client = await connect(url, { auth });
 *   return await client.listTools();
 * }
 * ```
 *
 * @see specification/2026-07-28/basic/authorization
 * @module
 */
export { loopback, type LoopbackOptions } from "./loopback.ts";
export { memoryTokens, type TokenStore } from "./token_store.ts";
export type { SignInAttempt, SignInPage, SignInStart, UserAgent } from "./user_agent.ts";
export { signIn, type SignInOptions } from "./sign_in.ts";
export { type PageSignIn, pageSignIn, type PageSignInOptions } from "./page_sign_in.ts";
export type { SignIn, SignInInfo, TokenOptions } from "./token_options.ts";
export type { ClientIdentityOptions, KnownClient } from "./registration.ts";
export {
  clientCredentials,
  type ClientCredentialsOptions,
  enterpriseSignIn,
  type EnterpriseSignInOptions,
  type ProgramClient,
  workloadIdentity,
  type WorkloadIdentityOptions,
} from "./program_grants.ts";
