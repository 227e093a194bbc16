/**
 * Caches the results of token checks in memory.
 */

export interface CacheLimits {
  readonly entries: number;
  /** Maximum total length of all tokens and values, in characters. */
  readonly characters: number;
}

interface Entry<T> {
  readonly value: T;
  /** Total length of the token and of the text in the value, in characters. Defaults to the length of the token. */
  readonly characters?: number;
  /** Time at which the value expires, in milliseconds since 1970. */
  readonly until: number;
}

const SWEEP_MS = 60_000;

/**
 * Maps tokens to values that expire. If the number or the total length of the values exceeds its limit, the oldest
 * values are removed.
 *
 * The map key is the token instead of its hash. Computing a hash would take longer than the rest of the lookup, and
 * would not protect the token, because each request contains the token anyway.
 */
export class TokenCache<T> {
  readonly #limits: CacheLimits;
  // Bound: `CacheLimits`.
  readonly #entries = new Map<string, Entry<T>>();
  #characters = 0;
  #nextSweep = -Infinity;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** Number of values in the cache, including expired values that were not removed yet. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a token, or `undefined` if there is no value or the value has expired. */
  get(token: string, now: number): T | undefined {
    const entry = this.#entries.get(token);
    if (entry === undefined || now < entry.until) return entry?.value;
    this.delete(token);
  }

  /** Stores a value, and removes the oldest values if the cache exceeds a limit. */
  set(token: string, entry: Entry<T>, now: number): void {
    this.delete(token);
    if (now >= this.#nextSweep) this.#sweep(now);
    this.#entries.set(token, entry);
    this.#characters += weigh(token, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.entries && this.#characters <= this.#limits.characters) break;
      this.delete(oldest);
    }
  }

  delete(token: string): void {
    const entry = this.#entries.get(token);
    if (entry && this.#entries.delete(token)) this.#characters -= weigh(token, entry);
  }

  clear(): void {
    this.#entries.clear();
    this.#characters = 0;
  }

  #sweep(now: number): void {
    this.#nextSweep = now + SWEEP_MS;
    for (const [token, { until }] of this.#entries) if (until <= now) this.delete(token);
  }
}

function weigh(token: string, { characters = token.length }: Entry<unknown>): number {
  return characters;
}
