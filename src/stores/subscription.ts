/**
 * Reads new entries of a topic, and passes them to a listener.
 */
import type { LogHead, LogPage, ReadOptions, SubscribeOptions, TopicListener } from "../server/engine/store.ts";
import { PageSize } from "./page_size.ts";

export type ReadTopic = (options: ReadOptions) => Promise<LogPage>;

/** A subscription to a topic. Keeps the id of the last entry that its listener has received. */
export class Subscription {
  readonly #read: ReadTopic;
  readonly #page = new PageSize();
  readonly #listener: TopicListener;
  readonly #onGap?: (last: number) => void;
  #last = 0;
  /** The epoch of the topic. `undefined` until the first read, if `start` received no epoch. */
  #epoch?: string;
  #isStarted = false;
  #isOver = false;
  #isReading = false;
  /** Whether another read was requested during the current read. */
  #isRung = false;
  /** Whether the last read found that the topic was lost. */
  #wasLost = false;
  /** The number of reads of the next entry that have failed although the engine responds. */
  #failures = 0;

  /** Creates a subscription. The subscription reads nothing until `start` is called. */
  constructor(read: ReadTopic, listener: TopicListener, { onGap }: SubscribeOptions) {
    this.#read = read;
    this.#listener = listener;
    this.#onGap = onGap;
  }

  /**
   * Starts with the first entry after the id `last`. `epoch` is the epoch of the log, if known. If the place was just
   * read (`isCurrent`), the log can have further entries only if `pull` was called since.
   */
  start(
    { last, epoch }: { readonly last: number; readonly epoch?: string },
    { isCurrent }: { readonly isCurrent: boolean },
  ): void {
    this.#last = last;
    this.#epoch = epoch;
    this.#isStarted = true;
    if (!isCurrent || this.#isRung) this.pull();
  }

  stop(): void {
    this.#isOver = true;
  }

  isBehind({ last, epoch }: LogHead): boolean {
    return this.#isStarted && (last !== this.#last || epoch !== this.#epoch);
  }

  /** Reads new entries. If a read is in progress, another read follows it. */
  async pull(): Promise<void> {
    this.#isRung = true;
    if (!this.#isStarted || this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#isRung && !this.#isOver) {
        this.#isRung = false;
        this.#receive(await this.#read({ after: this.#last, limit: this.#page.size }));
      }
    } catch {
      // The next poll reads the topic again, with a smaller page.
      if (!this.#page.fail() && !this.#isOver) await this.#skipUnreadable();
    } finally {
      this.#isReading = false;
    }
  }

  // Skip an entry that cannot be read although the engine responds. Otherwise no later entry would ever be read.
  async #skipUnreadable(): Promise<void> {
    // If the engine does not respond, the size of the entry is not the reason.
    const head = await this.#read({ after: this.#last, limit: 0 }).catch(() => {});
    if (!head || this.#isOver || head.last <= this.#last || ++this.#failures < SKIPPED_AFTER) return;
    this.#failures = 0;
    this.#last++;
    callListener(() => this.#onGap?.(head.last));
  }

  #receive(page: LogPage): void {
    const { entries, first, last, epoch } = page;
    if (entries.length) this.#page.succeed(entries.reduce((sum, { value }) => sum + value.length, 0));
    this.#failures = 0;
    if (this.#isOver) return;
    if (this.#isLost(page)) {
      // The log was lost or replaced, so read the log from its start. Do so immediately only once, because a faulty
      // engine may return another epoch on each read. After that, the next poll reads the topic again.
      this.#isRung = last > 0 && !this.#wasLost;
      this.#wasLost = true;
      this.#last = 0;
      this.#epoch = epoch;
      return callListener(() => this.#onGap?.(last));
    }
    this.#wasLost = false;
    this.#epoch = epoch;
    if (first > this.#last + 1) {
      this.#last = first - 1;
      callListener(() => this.#onGap?.(last));
    }
    for (const { id, value } of entries) {
      if (this.#isOver) return;
      if (id <= this.#last) continue;
      this.#last = id;
      callListener(() => this.#listener(value, id));
    }
    if (entries.length && this.#last < last) this.#isRung = true;
  }

  // Tests whether the topic's log was lost or has expired, and may have been replaced by a new log.
  #isLost({ last, epoch }: LogPage): boolean {
    return last < this.#last || !!this.#epoch && epoch !== this.#epoch;
  }
}

/** Calls a listener. Reports its error, because other listeners must still receive their entries. */
export function callListener(run: () => void): void {
  try {
    run();
  } catch (error) {
    console.error("A topic listener failed:", error);
  }
}

/** Number of failed reads after which an entry is skipped. */
const SKIPPED_AFTER = 3;
