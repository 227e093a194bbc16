/**
 * The interface that takes users to the authorization server and back.
 *
 * @module
 */

/** The trip of one user to the authorization server and back. */
export interface SignInTrip {
  /** The address to which the authorization server sends the user, such as `http://127.0.0.1:50123/callback`. */
  readonly redirectUri: string;
  /**
   * Shows the page of the authorization server to the user. Settles with the complete address to which the user came
   * back. Rejects if the user gives up.
   */
  readonly visit: (page: SignInPage, options: { readonly signal: AbortSignal }) => Promise<string>;
  /** Called at the end of the trip, with the reason if it failed, to show the user how it ended. */
  readonly end: (error?: unknown) => void | Promise<void>;
}

/** The page of an authorization server where a user signs in. */
export interface SignInPage {
  /** The URL of the page. */
  readonly url: string;
  /** The MCP server that requires the sign-in. */
  readonly server: string;
  /** The authorization server, as the issuer in its metadata. */
  readonly issuer: string;
  /** The scopes that are requested. */
  readonly scopes: readonly string[];
}

/** Starts a trip. Prepares for the user's return. */
export type UserAgent = () => SignInTrip | Promise<SignInTrip>;
