/**
 * Finds the items of a set that stay in it for long.
 */
import type { Sweep, Ticker } from "./timers.ts";

/**
 * A set that finds items that are still in the set after one period, or up to one period later. Adding or deleting an
 * item does not read the clock or set a timer. Short-lived items cause little garbage collection.
 */
// Bound: the owner adds what it has counted already, such as calls or bodies.
export class Aging<T> {
  readonly #ticker: Ticker;
  readonly #periodMs: number;
  readonly #onOld: (item: T, now: number) => void;
  readonly #sweep: Sweep = (now) => this.#age(now);
  #young = new Set<T>();
  #older = new Set<T>();
  #isWatching = false;

  /** Calls `onOld` once for each item that is still in the set after one to two periods. */
  constructor(ticker: Ticker, periodMs: number, onOld: (item: T, now: number) => void) {
    this.#ticker = ticker;
    this.#periodMs = periodMs;
    this.#onOld = onOld;
  }

  /** Keeps the process alive until the item is deleted or old, because a promise may depend on `onOld`. */
  add(item: T): void {
    this.#young.add(item);
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#ticker.schedule(this.#sweep, this.#periodMs, AWAITED);
  }

  /** Removes all items, and passes each item to `onOld`. */
  flush(): void {
    const items = [...this.#older, ...this.#young];
    this.#older.clear();
    this.#young.clear();
    const now = this.#ticker.clock.now();
    for (const item of items) this.#onOld(item, now);
  }

  /** Does not call `onOld`. */
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
