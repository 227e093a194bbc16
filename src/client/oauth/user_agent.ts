/**
 * How users get to the authorization server and back.
 *
 * @module
 */

/** The trip of one user to the authorization server and back. */
export interface SignInTrip {
  /** The address to which the authorization server sends the user, such as `http://127.0.0.1:50123/callback`. */
  readonly redirectUri: string;
  /**
   * Shows the user the page of the authorization server. Settles with the whole address to which the user came back.
   * Rejects if the user gives up.
   */
  readonly visit: (page: SignInPage, options: { readonly signal: AbortSignal }) => Promise<string>;
  /** Called at the end of the trip, with the reason if it failed: shows the user how it ended. */
  readonly end: (error?: unknown) => void | Promise<void>;
}

/** The page of an authorization server where a user signs in. */
export interface SignInPage {
  /** Where to send the user. */
  readonly url: string;
  /** The server that asks for the sign-in. */
  readonly server: string;
  /** The authorization server. Its metadata names this issuer. */
  readonly issuer: string;
  /** The scopes that are requested. */
  readonly scopes: readonly string[];
}

/** Starts a trip: makes ready for the user's return. */
export type UserAgent = () => SignInTrip | Promise<SignInTrip>;
