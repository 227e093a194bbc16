/**
 * Exchanges a caller's token for a token that another server accepts (RFC 8693). Handlers never see the caller's token.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { Context, Principal } from "../../server/call/context.ts";
import { findCall } from "../../server/call/find_call.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { FeatureParts } from "../../server/visibility/feature_parts.ts";
import type { ServerHandle } from "../../server/engine/server_handle.ts";
import type { Send } from "./http.ts";
import type { Issuer } from "./issuer.ts";
import { type AccessToken, requestToken, ReusedToken } from "./access_token.ts";
import type { OAuthClient } from "./oauth_client.ts";
import { TokenCache } from "../token_cache.ts";

/** Options for token exchange. The fields of {@linkcode OAuthClient} authenticate this server to the issuer. */
export interface ExchangeOptions extends OAuthClient {
  /** The issuer that exchanges its own tokens for other tokens. Required if `issuers` contains several issuers. */
  readonly issuer?: string;
}

/** Properties of the token that a handler requests. */
export interface ExchangeRequest {
  /** Name of the server for which the token is requested. Sent as the parameter `audience`. */
  readonly audience?: string;
  /** URL of the server for which the token is requested. Sent as the parameter `resource` of RFC 8707. */
  readonly resource?: string;
  /** Scopes to request. By default, the issuer decides which scopes to grant. */
  readonly scopes?: readonly string[];
}

const REQUEST: KnownOptions<keyof ExchangeRequest> = {
  names: { audience: true, resource: true, scopes: "texts" },
};

/** Key of the exchanges of a server. */
const EXCHANGES = {};

const makeExchanges = () => new Set<Exchange>();

/** Returns `undefined` if another issuer issued the token. */
type Exchange = (
  ctx: Pick<Context, "principal">,
  request: ExchangeRequest,
) => Promise<AccessToken> | undefined;

/**
 * Exchanges the caller's token for an access token that another server accepts, on behalf of the same user. Requires
 * the `exchange` option of `oauth`. Further calls return the same token until shortly before the token expires.
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
 * Rejects if the caller's token cannot be exchanged, or if the issuer refuses the exchange.
 */
export async function exchangeToken(
  ctx: Pick<Context, "principal">,
  request: ExchangeRequest,
): Promise<AccessToken> {
  checkOptions("exchange the caller's token", request, REQUEST);
  // The cast is safe, because the host of a server's call always has the parts of the server's core.
  const parts = findCall(ctx)?.host.parts as FeatureParts | undefined;
  for (const exchange of parts?.state.slot(EXCHANGES, makeExchanges) ?? []) {
    const exchanging = exchange(ctx, request);
    if (exchanging) return await exchanging;
  }
  throw new Error(
    "Cannot exchange the caller's token: ctx.principal was not created by oauth() with `exchange` for the issuer of the token",
  );
}

const LIMITS = { entries: 10_000, characters: 16 * 1024 * 1024 };
/** Maximum number of exchanged tokens that are kept for one token of a caller. */
const MAX_KEPT = 32;
/**
 * If the expiry of the caller's token is unknown, milliseconds after the last exchange for which exchanged tokens are
 * kept.
 */
const UNKNOWN_MS = 600_000;

interface CallerToken {
  readonly token: string;
  /** Time at which the token expires, in milliseconds since 1970. `undefined` if the time is unknown. */
  readonly expiresAt?: number;
  /** Returns the server's time, in milliseconds since 1970. */
  readonly date: () => number;
}

/** Exchanges tokens at one issuer, and reuses the tokens that the issuer returned. */
export class TokenExchange {
  readonly #client: OAuthClient;
  readonly #place: { readonly issuer: Issuer; readonly send: Send };
  readonly #kept = new TokenCache<BoundedMap<string, ReusedToken>>(LIMITS);

  constructor(client: OAuthClient, place: { readonly issuer: Issuer; readonly send: Send }) {
    this.#client = client;
    this.#place = place;
  }

  /** Lets the handlers of a server exchange the tokens of their callers. Returns a function that stops this. */
  start(server: ServerHandle): () => void {
    const exchanges = server.slot(EXCHANGES, makeExchanges);
    const exchange: Exchange = (ctx, request) => {
      const { issuer, token } = Object(server.attached(ctx));
      if (issuer !== this.#place.issuer.name || typeof token !== "string") return;
      return this.#exchange({ token, expiresAt: ctx.principal?.expiresAt, date: () => server.clock.date() }, request);
    };
    exchanges.add(exchange);
    return () => void exchanges.delete(exchange);
  }

  /**
   * Returns the principal with its token attached, or `undefined` if another issuer issued the token. A principal must
   * not contain its token, because handlers can read all of its properties.
   */
  bind<P extends Principal>(
    principal: P,
    server: ServerHandle,
    { token, issuer }: { readonly token: string; readonly issuer: Issuer },
  ): P | undefined {
    if (issuer === this.#place.issuer) return server.attach(principal, { issuer: issuer.name, token });
  }

  clear(): void {
    this.#kept.clear();
  }

  async #exchange(caller: CallerToken, request: ExchangeRequest): Promise<AccessToken> {
    const { token, expiresAt, date } = caller;
    const now = date();
    const kept = this.#kept.get(token, now) ?? new BoundedMap<string, ReusedToken>({ full: "evict", max: MAX_KEPT });
    this.#kept.set(token, { value: kept, until: expiresAt ?? now + UNKNOWN_MS }, now);
    const { audience, resource, scopes } = request;
    const key = JSON.stringify([audience, resource, scopes]);
    const found = kept.get(key) ?? new ReusedToken(() => this.#request(caller, request), date);
    kept.set(key, found);
    return await found.get();
  }

  #request({ token, date }: CallerToken, { audience, resource, scopes }: ExchangeRequest): Promise<AccessToken> {
    const params = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: token,
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
      audience,
      resource,
      scope: scopes?.join(" "),
    };
    return requestToken(this.#place, { client: this.#client, params, date });
  }
}

const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
