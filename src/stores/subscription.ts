/**
 * Reads a topic as it grows.
 *
 * @module
 */
import type { Awaitable, LogHead, LogPage, SubscribeOptions, TopicListener } from "../core/store.ts";

/** One subscription to a topic. It knows the last entry that its listener got. */
export class Subscription {
  readonly #read: (after: number) => Awaitable<LogPage>;
  readonly #listener: TopicListener;
  readonly #onGap?: (last: number) => void;
  #last = 0;
  /** The epoch of the topic, once it is known. */
  #epoch?: string;
  #isStarted = false;
  #isOver = false;
  #isReading = false;
  /** Whether another read was requested during the current one. */
  #isRung = false;
  /** Whether the last read found that the topic was lost. */
  #wasLost = false;

  /** Creates a subscription that has not started. */
  constructor(read: (after: number) => Awaitable<LogPage>, listener: TopicListener, { onGap }: SubscribeOptions) {
    this.#read = read;
    this.#listener = listener;
    this.#onGap = onGap;
  }

  /** Starts after the entry with this id, of the log with this epoch if it is known. */
  start({ last, epoch }: { readonly last: number; readonly epoch?: string }): void {
    this.#last = last;
    this.#epoch = epoch;
    this.#isStarted = true;
    this.pull();
  }

  /** Ends the subscription. */
  stop(): void {
    this.#isOver = true;
  }

  /** Whether the topic has entries that the listener did not get. */
  isBehind({ last, epoch }: LogHead): boolean {
    return this.#isStarted && (last !== this.#last || epoch !== this.#epoch);
  }

  /** Reads new entries. A second call during a read makes it read once more. */
  pull(): Awaitable<void> {
    this.#isRung = true;
    if (!this.#isStarted || this.#isReading) return;
    this.#isReading = true;
    return this.#readAll();
  }

  // A failed read is repeated when the topic is read at the next interval.
  #readAll(): Awaitable<void> {
    try {
      while (this.#isRung && !this.#isOver) {
        this.#isRung = false;
        const page = this.#read(this.#last);
        // Also catches an engine that returns a malformed page.
        if (page instanceof Promise) return page.then((page) => this.#continue(page)).catch(() => this.#finish());
        this.#take(page);
      }
    } catch {
      // The store is closed or lost.
    }
    this.#finish();
  }

  #continue(page: LogPage): Awaitable<void> {
    this.#take(page);
    return this.#readAll();
  }

  #finish(): void {
    this.#isReading = false;
  }

  #take(page: LogPage): void {
    if (this.#isOver) return;
    const { entries, first, last, epoch } = page;
    if (this.#isLost(page)) {
      // The entries before were of another log, so this one is read from its start.
      // Once: an engine whose epoch changes with each read is read again at the next interval.
      this.#isRung = last > 0 && !this.#wasLost;
      this.#wasLost = true;
      this.#last = 0;
      this.#epoch = epoch;
      return this.#call(() => this.#onGap?.(last));
    }
    this.#wasLost = false;
    this.#epoch = epoch;
    if (first > this.#last + 1) {
      this.#last = first - 1;
      this.#call(() => this.#onGap?.(last));
    }
    for (const { id, value } of entries) {
      if (this.#isOver) return;
      if (id <= this.#last) continue;
      this.#last = id;
      this.#call(() => this.#listener(value, id));
    }
    if (entries.length && this.#last < last) this.#isRung = true;
  }

  // The topic was lost or has expired, and has perhaps begun again. One that had no entry has lost none.
  #isLost({ last, epoch }: LogPage): boolean {
    return last < this.#last || !!this.#epoch && epoch !== this.#epoch;
  }

  // An error of one listener must not keep the others from their entries.
  #call(run: () => void): void {
    try {
      run();
    } catch (error) {
      console.error("A listener of a topic failed:", error);
    }
  }
}
