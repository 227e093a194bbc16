/**
 * Access tokens that this server requests for itself or for a caller, and the time for which it reuses these tokens.
 *
 * @module
 */
import type { Send } from "./http.ts";
import type { Issuer } from "./issuer.ts";
import type { OAuthClient } from "./oauth_client.ts";

/** An access token for a server that this server calls. */
export interface AccessToken {
  /** The token, for an `Authorization: Bearer` header. */
  readonly accessToken: string;
  /** Time at which the token expires, in milliseconds since 1970. `undefined` if the issuer did not state it. */
  readonly expiresAt?: number;
  /** Scopes that were granted. `undefined` if the issuer did not state the scopes. */
  readonly scopes?: readonly string[];
}

/** The parameters of a token request. */
export interface TokenParams {
  readonly client: OAuthClient;
  /** The form parameters, without the parameters that authenticate the client. */
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** Loads the module that sends requests to authorization servers. Most servers never send such a request. */
export async function loadTokenRequests(): Promise<typeof import("./token_requests.ts")> {
  return await import("./token_requests.ts");
}

/**
 * Requests a token. Errors contain only the error code of the issuer's response, because some issuers repeat the tokens
 * that they received in their responses.
 */
export async function requestToken(
  { issuer, send }: { readonly issuer: Issuer; readonly send: Send },
  { client, params }: TokenParams,
): Promise<AccessToken> {
  const { tokenEndpoint: endpoint } = await issuer.metadata.get(Date.now());
  const state = `Cannot get a token from ${issuer.name}`;
  if (endpoint === undefined) throw new Error(`${state}: its metadata has no usable token_endpoint`);
  const { requestTokenAt, UnusableResponseError } = await loadTokenRequests();
  const response = await requestTokenAt({ issuer: issuer.name, endpoint, client, params, send }).catch((error) => {
    throw error instanceof UnusableResponseError ? new Error(`${state}: ${error.message}`) : error;
  });
  const { access_token: accessToken, expires_in: seconds, scope, token_type: type } = response;
  if (accessToken === params.subject_token) throw new Error(`${state}: it returns the caller's own token`);
  if (type === "dpop") throw new Error(`${state}: the token is bound to a key`);
  return Object.freeze({
    accessToken,
    expiresAt: seconds === undefined ? undefined : Date.now() + seconds * 1000,
    scopes: scope?.split(" ").filter(Boolean),
  });
}

/**
 * Time before the expiry of a token from which the token is no longer reused, in milliseconds. Limited to half of the
 * token's lifetime.
 */
const MARGIN_MS = 30_000;
/** Time for which a token without a stated expiry is used, in milliseconds. */
const UNKNOWN_MS = 60_000;

/**
 * A token that is requested when it is first needed, and again before it expires. Concurrent calls share one request.
 */
export class ReusedToken {
  readonly #request: () => Promise<AccessToken>;
  #token?: Promise<AccessToken>;
  #until = -Infinity;

  constructor(request: () => Promise<AccessToken>) {
    this.#request = request;
  }

  get(): Promise<AccessToken> {
    if (this.#token && Date.now() < this.#until) return this.#token;
    const token = this.#request();
    this.#token = token;
    this.#until = Infinity;
    token.then(({ expiresAt }) => {
      const now = Date.now();
      const life = expiresAt === undefined ? UNKNOWN_MS : expiresAt - now;
      if (this.#token === token) this.#until = now + life - Math.min(MARGIN_MS, life / 2);
    }, () => {
      if (this.#token === token) this.#token = undefined;
    });
    return token;
  }
}
