/**
 * Reads the new entries of a topic.
 *
 * @module
 */
import type { Awaitable, LogHead, LogPage, SubscribeOptions, TopicListener } from "../core/store.ts";

/** One subscription to a topic. It stores the id of the last entry that its listener received. */
export class Subscription {
  readonly #read: (after: number) => Awaitable<LogPage>;
  readonly #listener: TopicListener;
  readonly #onGap?: (last: number) => void;
  #last = 0;
  /** The epoch of the topic. `undefined` until it is known. */
  #epoch?: string;
  #isStarted = false;
  #isOver = false;
  #isReading = false;
  /** Whether another read was requested during the current one. */
  #isRung = false;
  /** Whether the last read found that the topic was lost. */
  #wasLost = false;

  /** Creates a subscription. Call `start` to start it. */
  constructor(read: (after: number) => Awaitable<LogPage>, listener: TopicListener, { onGap }: SubscribeOptions) {
    this.#read = read;
    this.#listener = listener;
    this.#onGap = onGap;
  }

  /** Starts after the entry with the id `last`. `epoch` is the epoch of the log, if it is known. */
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

  /** Whether the topic has entries that the listener has not received. */
  isBehind({ last, epoch }: LogHead): boolean {
    return this.#isStarted && (last !== this.#last || epoch !== this.#epoch);
  }

  /** Reads new entries. If called during a read, reads once more after it. */
  pull(): Awaitable<void> {
    this.#isRung = true;
    if (!this.#isStarted || this.#isReading) return;
    this.#isReading = true;
    return this.#readAll();
  }

  // If a read fails, the topic is read again at the next interval.
  #readAll(): Awaitable<void> {
    try {
      while (this.#isRung && !this.#isOver) {
        this.#isRung = false;
        const page = this.#read(this.#last);
        // The catch also handles an engine that returns a malformed page.
        if (page instanceof Promise) return page.then((page) => this.#continue(page)).catch(() => this.#finish());
        this.#take(page);
      }
    } catch {
      // The store is closed or lost; the topic is read again at the next interval.
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
      // The log is a new one, so read it from its start. Do so only once: if the epoch of an engine changes with each
      // read, the topic is read again at the next interval.
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

  // Tests whether the topic was lost or has expired, and may have begun again.
  #isLost({ last, epoch }: LogPage): boolean {
    return last < this.#last || !!this.#epoch && epoch !== this.#epoch;
  }

  // Catch the error of a listener, because other listeners must still receive their entries.
  #call(run: () => void): void {
    try {
      run();
    } catch (error) {
      console.error("A listener of a topic failed:", error);
    }
  }
}
