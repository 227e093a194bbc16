/**
 * Reads a topic as it grows.
 *
 * @module
 */
import type { Awaitable, LogPage, SubscribeOptions, TopicListener } from "../core/store.ts";

/** One subscription to a topic. It knows the last entry that its listener got. */
export class Subscription {
  readonly #read: (after: number) => Awaitable<LogPage>;
  readonly #listener: TopicListener;
  readonly #onGap?: (last: number) => void;
  #last = 0;
  #isStarted = false;
  #isOver = false;
  #isReading = false;
  /** Whether another read was requested during the current one. */
  #isRung = false;

  /** Creates a subscription that has not started. */
  constructor(read: (after: number) => Awaitable<LogPage>, listener: TopicListener, { onGap }: SubscribeOptions) {
    this.#read = read;
    this.#listener = listener;
    this.#onGap = onGap;
  }

  /** Starts after the entry with this id. */
  start(last: number): void {
    this.#last = last;
    this.#isStarted = true;
    this.pull();
  }

  /** Ends the subscription. */
  stop(): void {
    this.#isOver = true;
  }

  /** Reads new entries. A second call during a read makes it read once more. */
  pull(): void {
    this.#isRung = true;
    if (!this.#isStarted || this.#isReading) return;
    this.#isReading = true;
    this.#readAll();
  }

  // A failed read is repeated when the topic is read at the next interval.
  #readAll(): void {
    try {
      while (this.#isRung && !this.#isOver) {
        this.#isRung = false;
        const page = this.#read(this.#last);
        // Also catches an engine that returns a malformed page.
        if (page instanceof Promise) {
          return void page.then((page) => this.#continue(page)).catch(() => this.#finish());
        }
        this.#take(page);
      }
    } catch {
      // The store is closed or lost.
    }
    this.#finish();
  }

  #continue(page: LogPage): void {
    this.#take(page);
    this.#readAll();
  }

  #finish(): void {
    this.#isReading = false;
  }

  #take({ entries, first, last }: LogPage): void {
    if (this.#isOver) return;
    if (last < this.#last) {
      // The topic has expired, and perhaps begun again.
      this.#last = 0;
      this.#isRung = last > 0;
      return this.#call(() => this.#onGap?.(last));
    }
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

  // An error of one listener must not keep the others from their entries.
  #call(run: () => void): void {
    try {
      run();
    } catch (error) {
      console.error("A listener of a topic failed:", error);
    }
  }
}
