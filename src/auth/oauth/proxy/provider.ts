/**
 * The provider at which users sign in.
 */

/** A provider at which users sign in. Created by `github()`, `google()`, `entra()`, `oidc()` and `oauth2()`. */
export interface Provider {
  /** Name for the user, such as `GitHub`. */
  readonly name: string;
  /** Id of this server's client at the provider. */
  readonly clientId: string;
  /** Secret of this server's client. */
  readonly clientSecret: string;
  /** Scopes that are requested from the provider. */
  readonly scopes: readonly string[];
  /** Origins that receive the user's token, such as `https://api.github.com`. */
  readonly apis: readonly string[];
  /** Further parameters of the authorization request, such as `{ prompt: "select_account" }`. */
  readonly params: Readonly<Record<string, string>>;
  /** Returns the endpoints. May read them from the metadata of the provider. */
  endpoints(options: ProviderCall): Promise<ProviderEndpoints>;
  /**
   * Returns the user of a token. Returns `undefined` if the provider does not accept the token. Throws if the provider does
   * not respond, or the ID token is not valid.
   */
  findUser(tokens: ProviderTokens, options: UserCall): Promise<ProviderUser | undefined>;
  /** Whether a response of the token endpoint ends the grant, so that the user must sign in again. */
  isEnd(response: { readonly status: number; readonly json: Readonly<Record<string, unknown>> }): boolean;
  /**
   * Revokes the tokens of a sign-in where the provider can do it. `hasOthers` is whether the user has other sign-ins at
   * this server, whose tokens must remain valid. A provider that might end them too must then do nothing.
   */
  revoke?(tokens: ProviderTokens, options: ProviderCall & { readonly hasOthers: boolean }): Promise<void>;
}

/** Facts about a request to a provider. */
export interface ProviderCall {
  /** Sends a request. Replaced in tests. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Aborts when the response is no longer needed. */
  readonly signal: AbortSignal;
}

/** Facts about a request for the user of a token. */
export interface UserCall extends ProviderCall {
  /** The `nonce` of the authorization request, for an ID token. `undefined` at a refresh. */
  readonly nonce?: string;
}

/** The endpoints of a provider. */
export interface ProviderEndpoints {
  /** `iss` that the provider adds to the redirect (RFC 9207), if it declares that it does so. */
  readonly issuer?: string;
  /** URL of the authorization endpoint. */
  readonly authorize: string;
  /** URL of the token endpoint. */
  readonly token: string;
  /** Place of the client's secret in token requests. Defaults to the body. */
  readonly secretIn?: "body" | "header";
  /** Whether the provider accepts PKCE. Defaults to `true`. */
  readonly pkce?: boolean;
}

/** The tokens of a user at a provider. */
export interface ProviderTokens {
  /** Token for the `apis` of the provider. */
  readonly accessToken: string;
  /** Token with which the access token is renewed. */
  readonly refreshToken?: string;
  /** ID token of OpenID Connect, as the provider has sent it. */
  readonly idToken?: string;
  /** Time at which the access token expires, in milliseconds since 1970. */
  readonly expiresAt?: number;
}

/** A user at a provider. */
export interface ProviderUser {
  /** Id that never belongs to another user of the provider. */
  readonly subject: string;
  /** Name for people. */
  readonly name?: string;
  /** E-mail address, only if the provider has verified it. */
  readonly email?: string;
  /** All that the provider has responded. */
  readonly facts: Readonly<Record<string, unknown>>;
}
