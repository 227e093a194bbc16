/**
 * The tokens that a server has checked: those that it has accepted, and opaque tokens that it has refused.
 */
import { shareAttached } from "../../server/engine/attached.ts";
import type { Principal } from "../../server/call/context.ts";
import { copyPrincipal } from "../../server/call/principal.ts";
import { digest } from "../secrets.ts";
import { TokenCache } from "../token_cache.ts";
import type { OAuthPrincipal } from "./caller.ts";
import type { InvalidToken } from "./claims.ts";
import type { Issuer, IssuerKeys } from "./issuer.ts";
import { PREFIX } from "./token_header.ts";

const LIMITS = { entries: 10_000, characters: 16 * 1024 * 1024 };
const REFUSED_LIMITS = { entries: 1000, characters: 1024 * 1024 };
/** Maximum time for which the result of an introspection is cached, in milliseconds. */
export const INTROSPECTED_MS = 30_000;
/**
 * Maximum number of opaque tokens that the server remembers. A client whose issuer gives it 10,000 tokens within an hour
 * makes the server forget other tokens, which then count as unknown tokens.
 */
const SEEN_LIMITS = { entries: 10_000, characters: Infinity };
/** Time for which the server remembers that an opaque token was accepted, in milliseconds. */
const SEEN_MS = 3_600_000;

/** The principal of an accepted token, and the facts with which later requests with the token are checked. */
export interface Verdict {
  readonly principal: OAuthPrincipal;
  /** Copy of `principal` with a later `expiresAt`, for requests after the token's expiry but within `skewMs`. */
  late?: OAuthPrincipal;
  /** Time until which the token is accepted without another check, in milliseconds since 1970. */
  readonly until: number;
  readonly issuer: Issuer;
  /** The keys that verified the token. `undefined` for an opaque token. */
  readonly keys?: IssuerKeys;
  /** Thumbprint of the key that the token is bound to. If set, each request with this token needs a proof. */
  readonly thumbprint?: string;
}

/** A token, preceded by the key of the resource for which a client presents it. */
type TokenKey = string;

export class KnownTokens {
  /**
   * Accepted tokens. The cache key is the key of the resource, followed by `Bearer`, a space and the token, which is
   * the `Authorization` header of most clients.
   */
  readonly #accepted = new TokenCache<Verdict>(LIMITS);
  readonly #refused = new TokenCache<InvalidToken>(REFUSED_LIMITS);
  /**
   * Digests of opaque tokens that were accepted within the last hour. The server still introspects such a token, but does
   * not delay its caller because of other callers at the same address.
   */
  readonly #seen = new TokenCache<true>(SEEN_LIMITS);

  /** Finds an accepted token by the key of the resource, followed by the whole `Authorization` header. */
  findHeader(key: string, now: number): Verdict | undefined {
    const known = this.#accepted.get(key, now);
    return known && (!known.keys || hasCurrentKeys(known, now)) ? known : undefined;
  }

  accept({ key, token }: { readonly key: string; readonly token: string }, verdict: Verdict, now: number): void {
    const found = key + PREFIX + token;
    const characters = found.length + JSON.stringify(verdict.principal.claims).length;
    this.#accepted.set(found, { value: verdict, until: verdict.until, characters }, now);
  }

  findRefused(key: TokenKey, now: number): InvalidToken | undefined {
    return this.#refused.get(key, now);
  }

  refuse(key: TokenKey, error: InvalidToken, now: number): void {
    this.#seen.delete(digest(key));
    this.#refused.set(key, { value: error, until: now + INTROSPECTED_MS }, now);
  }

  addSeen(key: TokenKey, now: number): void {
    this.#seen.set(digest(key), { value: true, until: now + SEEN_MS }, now);
  }

  /** Tests whether an opaque token was accepted within the last hour, or refused within the last 30 seconds. */
  hasOpaque(key: TokenKey, now: number): boolean {
    return this.#refused.get(key, now) !== undefined || this.#seen.get(digest(key), now) !== undefined;
  }

  clear(): void {
    for (const cache of [this.#accepted, this.#refused, this.#seen]) cache.clear();
  }
}

/**
 * Tests whether the keys that verified a token are still the keys of its issuer. A new key set may lack the key of the
 * token. The verification of the token loads an old key set again, because otherwise a token would stay valid until
 * another token needs the keys, although the issuer has removed its key.
 */
function hasCurrentKeys({ issuer, keys }: Verdict, now: number): boolean {
  return issuer.latestKeys === keys && issuer.keys.isCurrent(now);
}

/** Returns the principal of an accepted token for a request at the time `now`. */
export function toCurrent(verdict: Verdict, now: number): Principal {
  const { principal, until } = verdict;
  if (principal.expiresAt === undefined || now < principal.expiresAt) return principal;
  // The token has expired according to this server's clock, but it has not expired if the issuer's clock is behind by
  // up to `skewMs`.
  if (!verdict.late) {
    verdict.late = copyPrincipal(principal, { expiresAt: until });
    shareAttached(principal, verdict.late);
  }
  return verdict.late;
}
