/**
 * Signs users in at the authorization servers of protected MCP servers.
 *
 * @see specification/2026-07-28/basic/authorization
 */
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import { codeGrant } from "./code_grant.ts";
import { checkIssuer, type ClientIdentityOptions } from "./registration.ts";
import { type SignIn, TOKEN_OPTIONS, type TokenOptions } from "./token_options.ts";
import { TokenSources } from "./token_sources.ts";
import type { UserAgent } from "./user_agent.ts";

/** The options of {@linkcode signIn}. */
export interface SignInOptions extends TokenOptions, ClientIdentityOptions {
  /**
   * Shows the authorization server's page to the user, and receives the redirect. Use {@linkcode loopback}, or
   * implement a user agent.
   */
  readonly userAgent: UserAgent;
  /**
   * Milliseconds that a user may take to sign in. Request timeouts do not include this time. Defaults to 300,000 (five
   * minutes).
   */
  readonly signInMs?: number;
}

export const SIGN_IN_MS = 300_000;

const OPTIONS: KnownOptions<keyof SignInOptions> = {
  names: {
    ...TOKEN_OPTIONS.names,
    userAgent: "function",
    client: { names: { id: true, secret: true, issuer: true } },
    clientMetadataUrl: true,
    clientName: true,
    signInMs: true,
  },
  hints: { clientId: "client.id", clientSecret: "client.secret", name: "clientName" },
};

/**
 * Returns a token source that signs users in when a server requires a token. The token source finds the authorization
 * server, registers the client if necessary, sends the user to the authorization server, and stores the tokens. It also
 * renews tokens before they expire, and requests more scopes when the server requires more scopes. Each token is sent
 * only to the server for which it was issued.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function signIn(options: SignInOptions): SignIn {
  checkOptions("use signIn()", options, OPTIONS);
  const { userAgent, signInMs = SIGN_IN_MS, client } = options;
  if (typeof userAgent !== "function") {
    throw new TypeError("Cannot use signIn(): userAgent is not a function; pass a user agent such as loopback()");
  }
  checkIdentity("use signIn()", options);
  if (client && (client.secret ?? client.issuer) !== undefined) {
    checkIssuer("use signIn()", "client.issuer", client.issuer);
  }
  if (!(signInMs > 0)) throw new TypeError("Cannot use signIn(): signInMs must be a number of milliseconds above 0");
  return new TokenSources(codeGrant({ ...options, signInMs }), options, signInMs);
}

/** @throws {TypeError} if the id of the client is not a string, or the URL of its document is not a valid client id. */
export function checkIdentity(action: string, { client, clientMetadataUrl }: ClientIdentityOptions): void {
  if (client && typeof client.id !== "string") throw new TypeError(`Cannot ${action}: client.id is not a string`);
  if (clientMetadataUrl === undefined) return;
  const { protocol, pathname, hash, username } = URL.parse(clientMetadataUrl) ?? {};
  if (protocol === "https:" && pathname !== "/" && !hash && !username) return;
  throw new TypeError(`Cannot ${action}: clientMetadataUrl is not an https URL with a path`);
}
