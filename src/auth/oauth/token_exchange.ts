/**
 * Exchanges the token of a caller for a token that another server accepts (RFC 8693). Handlers never see the caller's
 * token.
 *
 * @module
 */
import type { Context, Principal } from "../../core/call/context.ts";
import { checkOptions, type KnownOptions } from "../../core/call/known_options.ts";
import type { Send } from "./http.ts";
import type { Issuer } from "./issuer.ts";
import { type AccessToken, requestToken, ReusedToken } from "./access_token.ts";
import { checkClient, type OAuthClient } from "./oauth_client.ts";
import { TokenCache } from "./token_cache.ts";

/** Options for exchanging the tokens of callers. */
export interface ExchangeOptions extends OAuthClient {
  /**
   * The issuer whose tokens are exchanged. It also performs the exchange. Required if the server has several issuers.
   */
  readonly issuer?: string;
}

/** The token that a handler wants. */
export interface ExchangeRequest {
  /** Name of the server that the token is for. */
  readonly audience?: string;
  /** URL of the server that the token is for, as the parameter `resource` of RFC 8707. */
  readonly resource?: string;
  /** Scopes to request. Defaults to the default scopes of the issuer. */
  readonly scopes?: readonly string[];
}

const REQUEST: KnownOptions<keyof ExchangeRequest> = {
  names: { audience: true, resource: true, scopes: "texts" },
  hints: { scope: "scopes", aud: "audience" },
};

// The only place that connects a principal with its token, because no object that handlers can reach may contain the
// token.
const exchanges = new WeakMap<Principal, (request: ExchangeRequest) => Promise<AccessToken>>();

/**
 * Exchanges the token of the caller for an access token that another server accepts, on behalf of the same user. The
 * server must have `oauth({ exchange })`. The server reuses each token until shortly before it expires.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { exchangeToken } from "@x/mcp/oauth";
 *
 * const mail = tool({
 *   name: "mail",
 *   async run(_input, ctx) {
 *     const { accessToken } = await exchangeToken(ctx, { audience: "https://mail.example.com", scopes: ["mail:read"] });
 *     return await fetch("https://mail.example.com/inbox", { headers: { authorization: `Bearer ${accessToken}` } });
 *   },
 * });
 * ```
 *
 * Rejects if the caller has no token that can be exchanged, or if the issuer refuses the exchange.
 */
export async function exchangeToken(
  { principal }: Pick<Context, "principal">,
  request: ExchangeRequest,
): Promise<AccessToken> {
  checkOptions("exchange the caller's token", request, REQUEST);
  const exchange = principal && exchanges.get(principal);
  if (exchange) return await exchange(request);
  throw new Error(
    "Cannot exchange the caller's token: ctx.principal is not from oauth() with `exchange` for its issuer",
  );
}

/** Allows a copy of a principal to exchange the same token as the original. */
export function shareExchange(from: Principal, to: Principal): void {
  const exchange = exchanges.get(from);
  if (exchange) exchanges.set(to, exchange);
}

const LIMITS = { entries: 10_000, characters: 16 * 1024 * 1024 };
/** Maximum number of tokens that are kept for one caller. */
const MAX_KEPT = 32;
/** Time for which the exchanged tokens are kept if the caller's token states no expiry, in milliseconds. */
const UNKNOWN_MS = 600_000;

/** Exchanges the tokens of one issuer. */
export class TokenExchange {
  readonly #client: OAuthClient;
  readonly #place: { readonly issuer: Issuer; readonly send: Send };
  readonly #kept = new TokenCache<Map<string, ReusedToken>>(LIMITS);

  constructor(client: OAuthClient, place: { readonly issuer: Issuer; readonly send: Send }) {
    checkClient(client, "oauth({ exchange })");
    this.#client = client;
    this.#place = place;
  }

  /**
   * Connects a principal with its token if this issuer has issued the token, so that handlers can exchange the token.
   */
  bind(principal: Principal, token: string, issuer: Issuer): void {
    if (issuer === this.#place.issuer) {
      exchanges.set(principal, (request) => this.#exchange(token, principal.expiresAt, request));
    }
  }

  /** Forgets all tokens. */
  clear(): void {
    this.#kept.clear();
  }

  async #exchange(token: string, expiresAt: number | undefined, request: ExchangeRequest): Promise<AccessToken> {
    const now = Date.now();
    const kept = this.#kept.get(token, now) ?? new Map<string, ReusedToken>();
    this.#kept.set(token, { value: kept, until: expiresAt ?? now + UNKNOWN_MS }, now);
    const { audience, resource, scopes } = request;
    const key = JSON.stringify([audience, resource, scopes]);
    const found = kept.get(key) ?? new ReusedToken(() => this.#request(token, request));
    kept.delete(key);
    kept.set(key, found);
    for (const oldest of kept.keys()) {
      if (kept.size <= MAX_KEPT) break;
      kept.delete(oldest);
    }
    return await found.get();
  }

  #request(token: string, { audience, resource, scopes }: ExchangeRequest): Promise<AccessToken> {
    const params = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: token,
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
      audience,
      resource,
      scope: scopes?.join(" "),
    };
    return requestToken(this.#place, { client: this.#client, params });
  }
}

const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
