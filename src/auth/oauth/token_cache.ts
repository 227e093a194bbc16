/**
 * Caches facts about tokens in memory.
 *
 * @module
 */

/** Limits of a cache. */
export interface CacheLimits {
  readonly entries: number;
  /** Maximum length of all tokens and values together, in characters. */
  readonly characters: number;
}

interface Entry<T> {
  readonly value: T;
  /** Length of the token and of everything that the value keeps, in characters. Defaults to the length of the token. */
  readonly characters?: number;
  /** Time until which the value is valid, in milliseconds since 1970. */
  readonly until: number;
}

const SWEEP_MS = 60_000;

/**
 * Values by token, each until it expires. The number of values and their characters are limited: at the limit, the
 * oldest value is dropped.
 *
 * The key is the token itself. Computing a hash would take longer than the call, and would not protect the token, which
 * is in memory in any case.
 */
export class TokenCache<T> {
  readonly #limits: CacheLimits;
  readonly #entries = new Map<string, Entry<T>>();
  #characters = 0;
  #nextSweep = -Infinity;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** Number of values in the cache. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a token if it is still valid. */
  get(token: string, now: number): T | undefined {
    const entry = this.#entries.get(token);
    if (entry === undefined || now < entry.until) return entry?.value;
    this.delete(token);
  }

  /** Stores a value until its `until` time. */
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

  /** Forgets a token. */
  delete(token: string): void {
    const entry = this.#entries.get(token);
    if (entry && this.#entries.delete(token)) this.#characters -= weigh(token, entry);
  }

  /** Forgets all tokens. */
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
