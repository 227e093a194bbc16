/** Facts about a sign-in that begins. */
export interface SignInStart {
  /** The issuer identifier in the authorization server's metadata. */
  readonly issuer: string;
  /**
   * The path for the redirect URI. Each issuer has its own path, such as `/callback/jFvQ3x0aMBl8Bd7uOeOLzQ`, so that a
   * response from another authorization server goes to another address. The path of `redirectUri` must end with it, or
   * at least with its last segment. Otherwise the sign-in fails, unless the authorization server announces that its
   * responses contain the issuer (`iss`, RFC 9207). For a client that was registered manually, or that has a metadata
   * document, the path is `/callback`, and another path may be used.
   */
  readonly path: string;
}

/** One sign-in of a user, from opening the authorization server's page until the sign-in has ended. */
export interface SignInAttempt {
  /** The redirect URI of the sign-in, such as `http://127.0.0.1:50123/callback/jFvQ3x0aMBl8Bd7uOeOLzQ`. */
  readonly redirectUri: string;
  /**
   * Shows the authorization server's page to the user. Resolves with the full redirect URL, whose query contains the
   * authorization server's response. Rejects if the user cancels the sign-in.
   */
  readonly visit: (page: SignInPage, options: { readonly signal: AbortSignal }) => Promise<string>;
  /**
   * Shows the outcome to the user. Called when the sign-in has ended. If the sign-in has failed, `error` is the reason.
   */
  readonly end: (error?: unknown) => void | Promise<void>;
}

/** The page of an authorization server on which a user signs in. */
export interface SignInPage {
  /** The URL of the page. */
  readonly url: string;
  /** The MCP server that requires the sign-in. */
  readonly server: string;
  /** The issuer identifier in the authorization server's metadata. */
  readonly issuer: string;
  /**
   * The host of the page, if it is not the host of `issuer`. Show the host to the user together with `issuer`: an issuer
   * could name the page of another authorization server, to get an authorization code of the user there.
   */
  readonly pageHost?: string;
  /** The requested scopes. */
  readonly scopes: readonly string[];
}

/** Starts a sign-in. When the returned promise resolves, the redirect can be received. */
export type UserAgent = (start: SignInStart) => SignInAttempt | Promise<SignInAttempt>;
