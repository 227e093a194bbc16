/**
 * Finds items that stay too long.
 *
 * @module
 */
import type { Sweep, Ticker } from "./timers.ts";

/**
 * Finds items that stay too long, after one to two periods. Adding and deleting read no clock and set no timer, and
 * short-lived items cost little garbage collection.
 */
export class Aging<T> {
  readonly #ticker: Ticker;
  readonly #periodMs: number;
  readonly #onOld: (item: T, now: number) => void;
  readonly #sweep: Sweep = (now) => this.#age(now);
  #young = new Set<T>();
  #older = new Set<T>();
  #isWatching = false;

  /** Calls `onOld` once for each item that stays. */
  constructor(ticker: Ticker, periodMs: number, onOld: (item: T, now: number) => void) {
    this.#ticker = ticker;
    this.#periodMs = periodMs;
    this.#onOld = onOld;
  }

  /** Adds an item. It keeps the process alive, because a caller awaits it. */
  add(item: T): void {
    this.#young.add(item);
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#ticker.schedule(this.#sweep, this.#periodMs, AWAITED);
  }

  /** Passes all items on at once, as if they had stayed. */
  flush(): void {
    const items = [...this.#older, ...this.#young];
    this.#older.clear();
    this.#young.clear();
    const now = this.#ticker.clock.now();
    for (const item of items) this.#onOld(item, now);
  }

  /** Removes an item. */
  delete(item: T): void {
    if (!this.#young.delete(item)) this.#older.delete(item);
  }

  #age(now: number): number | undefined {
    const old = this.#older;
    this.#older = this.#young;
    this.#young = new Set();
    for (const item of old) this.#onOld(item, now);
    this.#isWatching = this.#older.size + this.#young.size > 0;
    return this.#isWatching ? this.#periodMs : undefined;
  }
}

const AWAITED = { isAwaited: true };
