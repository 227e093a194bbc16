/**
 * Token buckets that limit the rate of each client.
 */

export interface BucketRate {
  /** Number of tokens per period. */
  readonly calls: number;
  /** The period, in milliseconds. */
  readonly perMs: number;
  /** Number of tokens in a full bucket. Defaults to `calls`. */
  readonly burst?: number;
}

interface Bucket {
  tokens: number;
  /** Time at which `tokens` was last updated, in milliseconds of the monotonic clock. */
  at: number;
}

/**
 * The buckets of one kind of client. A bucket is removed after it has not been used for `#fillMs`, because it is then as
 * full as a new bucket. There is one map for buckets that were used in the current period of `#fillMs`, and one map for
 * buckets that were last used in the previous period.
 */
export class ClientBuckets {
  readonly #rate: BucketRate;
  readonly #max: number;
  readonly #burst: number;
  /** Milliseconds in which an empty bucket becomes full. Also the length of a period. */
  readonly #fillMs: number;
  /** Buckets that were used in the current period, which began at `#since`. */
  // Bound: `rates.clients`.
  #young = new Map<string | object, Bucket>();
  /** Buckets that were used in the previous period. */
  #older = new Map<string | object, Bucket>();
  #since = -Infinity;

  constructor(rate: BucketRate, max: number) {
    this.#rate = rate;
    this.#max = max;
    this.#burst = rate.burst ?? rate.calls;
    this.#fillMs = this.#burst * rate.perMs / rate.calls;
  }

  get size(): number {
    return new Set([...this.#young.keys(), ...this.#older.keys()]).size;
  }

  consume(client: string | object, now: number): number {
    this.#age(now);
    const bucket = this.#find(client, now);
    const { calls, perMs } = this.#rate;
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * calls / perMs);
    bucket.at = now;
    // Allow for rounding errors, so that a client is not rejected after it has waited for `retryAfterMs`.
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

  #find(client: string | object, now: number): Bucket {
    const young = this.#young;
    const current = young.get(client);
    if (current) return current;
    const older = this.#older.get(client);
    // After `#max` clients in a period, all further new clients share one bucket. Clients with a bucket from the
    // previous period keep this bucket until the period has twice as many buckets. A caller with many /56 networks can
    // fill the buckets of addresses, and then all new addresses together have the rate of one client.
    const isOwn = young.size < (older ? 2 : 1) * this.#max;
    const key = isOwn ? client : OTHERS;
    const known = isOwn ? older : young.get(key) ?? this.#older.get(key);
    const bucket = known ?? { tokens: this.#burst, at: now };
    young.set(key, bucket);
    return bucket;
  }
}

const OTHERS = {};
