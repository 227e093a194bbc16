/**
 * Limits the rate of calls per client with token buckets.
 *
 * @module
 */
import { McpError } from "../protocol/errors.ts";
import type { Call } from "../core/call/call.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";

/** Maximum rate of calls per client. */
export interface Rate {
  /** Number of calls per period. */
  readonly calls: number;
  /** The period, in milliseconds. */
  readonly perMs: number;
  /**
   * Burst size: maximum number of calls that a client can make at the same time after a period without calls. Defaults
   * to `calls`.
   */
  readonly burst?: number;
}

/** The token bucket of one client. */
interface Bucket {
  tokens: number;
  /** Time at which `tokens` was last updated, in milliseconds of the monotonic clock. */
  at: number;
}

/** The key of a client: a string for a principal or an address, otherwise an object for the connection. */
type ClientKey = string | object;

/**
 * The buckets of all clients. A bucket is removed when it has not been used for as long as an empty bucket takes to
 * fill, because it then equals a new bucket. There is one map for buckets used in the current period, and one map for
 * buckets last used in the previous period.
 */
export class Buckets {
  readonly #rate: Rate;
  readonly #burst: number;
  /** Milliseconds until an empty bucket is full. */
  readonly #fillMs: number;
  /** Buckets used in the current period, which begins at `#since`. */
  #young = new Map<ClientKey, Bucket>();
  /** Buckets used in the previous period. */
  #older = new Map<ClientKey, Bucket>();
  #since = -Infinity;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#burst = rate.burst ?? rate.calls;
    this.#fillMs = this.#burst * rate.perMs / rate.calls;
  }

  /** Number of buckets, for tests. */
  get size(): number {
    return new Set([...this.#young.keys(), ...this.#older.keys()]).size;
  }

  /** Takes a token and returns 0, or returns the milliseconds until the next token if the bucket is empty. */
  take(client: ClientKey, now: number): number {
    this.#age(now);
    const bucket = this.#find(client, now);
    const { calls, perMs } = this.#rate;
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * calls / perMs);
    bucket.at = now;
    // Allow for rounding errors, so that a client that has waited as long as it was told is not rejected.
    if (bucket.tokens < 1 - 1e-9) return Math.max(1, Math.ceil((1 - bucket.tokens) * perMs / calls));
    bucket.tokens--;
    return 0;
  }

  #age(now: number): void {
    if (now - this.#since < this.#fillMs) return;
    this.#older = now - this.#since < 2 * this.#fillMs ? this.#young : new Map();
    this.#young = new Map();
    this.#since = now;
  }

  #find(client: ClientKey, now: number): Bucket {
    const young = this.#young;
    const current = young.get(client);
    if (current) return current;
    const older = this.#older.get(client);
    // If the period already has `MAX_CLIENTS` buckets, new clients share one bucket. Clients that have a bucket from
    // the previous period can keep up to the same number of additional buckets.
    const isOwn = young.size < (older ? 2 : 1) * MAX_CLIENTS;
    const key = isOwn ? client : OTHERS;
    const known = isOwn ? older : young.get(key) ?? this.#older.get(key);
    const bucket = known ?? { tokens: this.#burst, at: now };
    young.set(key, bucket);
    return bucket;
  }
}

/** Maximum number of new clients per period that get a separate bucket. */
const MAX_CLIENTS = 10_000;

const OTHERS = {};

/**
 * Key for all HTTP requests from unknown clients. The account cannot be the key, because each of these requests has a
 * separate account.
 */
const UNKNOWN = {};

/**
 * Returns the key under which the calls of a client are counted. A string key identifies the same client on all
 * instances.
 */
export function toClientKey({ link: { account, http } }: Call): ClientKey {
  // All calls on a connection have the same account, and so do their nested reads of resources.
  return account.key ?? (http ? UNKNOWN : account);
}

/** Takes a token for a call. Throws the error for the client if the bucket is empty. */
export function takeToken(buckets: Buckets, call: Call, core: FeatureParts, place: string): void {
  const retryAfterMs = buckets.take(toClientKey(call), core.ticker.clock.now());
  if (retryAfterMs) throw refuseRate(retryAfterMs, call, core, place);
}

/** Reports a call that exceeds the rate to the observer, and returns the error for the client. */
export function refuseRate(retryAfterMs: number, call: Call, core: FeatureParts, place: string): McpError {
  core.observing?.reach("handler.rate", call.link.account.key, place);
  const message = `Cannot run the call: too many calls; try again in ${retryAfterMs} ms (handler.rate)`;
  return McpError.rateLimited(message, { retryAfterMs });
}
