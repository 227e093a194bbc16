/**
 * Requests access tokens from authorization servers, for this server itself or for a caller, and reuses the tokens
 * until shortly before they expire.
 */
import type { Send } from "./http.ts";
import type { Issuer } from "./issuer.ts";
import type { OAuthClient } from "./oauth_client.ts";

/** An access token for another server that this server calls. */
export interface AccessToken {
  /** The token, for an `Authorization: Bearer` header. */
  readonly accessToken: string;
  /**
   * Time at which the token expires, in milliseconds since 1970. `undefined` if the issuer did not state an expiry
   * time.
   */
  readonly expiresAt?: number;
  /** Scopes that were granted. `undefined` if the issuer did not state the scopes. */
  readonly scopes?: readonly string[];
}

export interface TokenParams {
  readonly client: OAuthClient;
  /** Parameters of the form, without the credentials of the client. Parameters that are `undefined` are not sent. */
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Returns the current time, in milliseconds since 1970. */
  readonly date: () => number;
}

/** Loaded on first use, because most servers never send such a request. */
export async function loadTokenRequests(): Promise<typeof import("./token_requests.ts")> {
  return await import("./token_requests.ts");
}

/**
 * Requests a token from the issuer's token endpoint. Errors contain only the error code from the issuer's response,
 * because some issuers repeat the tokens from the request in their response.
 */
export async function requestToken(
  { issuer, send }: { readonly issuer: Issuer; readonly send: Send },
  { client, params, date }: TokenParams,
): Promise<AccessToken> {
  const { tokenEndpoint: endpoint } = await issuer.metadata.get(date());
  const state = `Cannot get a token from ${issuer.name}`;
  if (endpoint === undefined) throw new Error(`${state}: the issuer's metadata contains no token_endpoint over https`);
  const { requestTokenAt, UnusableResponseError } = await loadTokenRequests();
  const response = await requestTokenAt({ issuer: issuer.name, endpoint, client, params, send }).catch((error) => {
    throw error instanceof UnusableResponseError ? new Error(`${state}: ${error.message}`) : error;
  });
  const { access_token: accessToken, expires_in: seconds, scope, token_type: type } = response;
  if (accessToken === params.subject_token) throw new Error(`${state}: the issuer returned the caller's own token`);
  if (type === "dpop") {
    throw new Error(
      `${state}: the issuer returned a token that is bound to a key (DPoP); make the issuer return bearer tokens to this client`,
    );
  }
  return Object.freeze({
    accessToken,
    expiresAt: seconds === undefined ? undefined : date() + seconds * 1000,
    scopes: scope?.split(" ").filter(Boolean),
  });
}

/** Milliseconds before its expiry at which a token is replaced, at most half of the token's lifetime. */
const MARGIN_MS = 30_000;
/** Assumed lifetime in milliseconds, to which `MARGIN_MS` applies, of a token without an expiry time. */
const UNKNOWN_MS = 60_000;

/** Requests a new token shortly before the token expires. Concurrent calls share one request. */
export class ReusedToken {
  readonly #request: () => Promise<AccessToken>;
  readonly #date: () => number;
  #token?: Promise<AccessToken>;
  #until = -Infinity;

  /** `date` returns the current time, in milliseconds since 1970. */
  constructor(request: () => Promise<AccessToken>, date: () => number) {
    this.#request = request;
    this.#date = date;
  }

  get(): Promise<AccessToken> {
    if (this.#token && this.#date() < this.#until) return this.#token;
    const token = this.#request();
    this.#token = token;
    this.#until = Infinity;
    token.then(({ expiresAt }) => {
      const now = this.#date();
      const life = expiresAt === undefined ? UNKNOWN_MS : expiresAt - now;
      if (this.#token === token) this.#until = now + life - Math.min(MARGIN_MS, life / 2);
    }, () => {
      if (this.#token === token) this.#token = undefined;
    });
    return token;
  }
}
