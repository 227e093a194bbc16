/**
 * The interface that sends users to an authorization server and receives the redirect.
 *
 * @module
 */

/** One sign-in of a user, from the redirect to the authorization server until the return to the client. */
export interface SignInTrip {
  /** The redirect URI of the sign-in, such as `http://127.0.0.1:50123/callback`. */
  readonly redirectUri: string;
  /**
   * Shows the page of the authorization server to the user. Settles with the full redirect URL, which includes the
   * response of the authorization server. Rejects if the user cancels the sign-in.
   */
  readonly visit: (page: SignInPage, options: { readonly signal: AbortSignal }) => Promise<string>;
  /** Called when the sign-in has ended, to show the user the outcome. If the sign-in failed, `error` is the reason. */
  readonly end: (error?: unknown) => void | Promise<void>;
}

/** The page of an authorization server where a user signs in. */
export interface SignInPage {
  /** The URL of the page. */
  readonly url: string;
  /** The MCP server that requires the sign-in. */
  readonly server: string;
  /** The issuer identifier of the authorization server, as stated in its metadata. */
  readonly issuer: string;
  /** The requested scopes. */
  readonly scopes: readonly string[];
}

/** Starts a sign-in, and prepares to receive the redirect. */
export type UserAgent = () => SignInTrip | Promise<SignInTrip>;
