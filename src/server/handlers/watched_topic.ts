/**
 * A topic that has subscribers, and whose extension has `watch` or `load`. Retries both functions, because a subscriber
 * that misses the last notification of a topic would wait forever.
 */
import { delay } from "../../core/kit/deadline.ts";
import { isMcpError } from "../../core/protocol/errors.ts";
import type { Clock } from "../../core/timers.ts";
import type { Published } from "../call/lives.ts";
import type { Awaitable } from "../engine/store.ts";

/** Called with each notification of a topic. */
export type Deliver = (published: Published) => void;

export interface WatchedParts {
  /** Key in the filter of `subscriptions/listen`, for error messages. */
  readonly key: string;
  readonly clock: Clock;
  readonly watch?: () => Awaitable<(() => unknown) | void>;
  readonly load?: () => Promise<Published | undefined>;
  /** Passes a notification to these subscribers. By default, passes the notification to all subscribers of the topic. */
  readonly deliver: (published: Published, to?: Iterable<Deliver>) => void;
  readonly report: (error: unknown) => void;
}

interface Waiting {
  readonly isForAll: boolean;
  readonly newcomers: ReadonlySet<Deliver>;
}

/** A topic from its first subscriber to its last subscriber. */
// Bound: `connections.streams`.
export class WatchedTopic {
  readonly #parts: WatchedParts;
  /** Aborts the waits before retries. */
  readonly #ending = new AbortController();
  readonly #starting: Promise<void>;
  #stop?: () => unknown;
  #isLoading = false;
  #isForAll = false;
  #newcomers = new Set<Deliver>();
  /** The newest notification that was published during the current load. */
  #published?: Published;

  /** Calls `watch`, and then loads the current notification. */
  constructor(parts: WatchedParts) {
    this.#parts = parts;
    this.#starting = this.#start();
  }

  /** Loads the current notification for a new subscriber. By default, loads the notification for all subscribers. */
  load(newcomer?: Deliver): void {
    if (!this.#parts.load || this.#ending.signal.aborted) return;
    if (newcomer) this.#newcomers.add(newcomer);
    else this.#isForAll = true;
    if (!this.#isLoading) void this.#loadAll(this.#parts.load);
  }

  /** Remembers that all subscribers have received a notification, because a load may return an older notification. */
  overtake(published: Published): void {
    if (this.#isLoading) this.#published = published;
  }

  /** Ends all retries. Waits for `watch`, and then calls the function that `watch` has returned. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#starting;
    await this.#stop?.();
  }

  async #start(): Promise<void> {
    const { key, watch, report } = this.#parts;
    const stop: unknown = watch && await this.#repeat(watch);
    if (stop !== undefined && typeof stop !== "function") {
      return report(
        new TypeError(
          `Cannot watch ${key}: watch did not return a function; return a function that stops watching, or nothing`,
        ),
      );
    }
    this.#stop = stop as (() => unknown) | undefined; // The cast is safe, because the check above returns for any other value.
    this.load();
  }

  // Loads one notification after another. Changes during a load cause one further load, however many changes follow.
  async #loadAll(load: () => Promise<Published | undefined>): Promise<void> {
    this.#isLoading = true;
    /** The notification that all subscribers have received instead of the last load. */
    let known: Published | undefined;
    while (this.#isForAll || this.#newcomers.size) {
      const waiting = this.#takeWaiting();
      const loaded = await this.#repeat(load);
      if (this.#ending.signal.aborted) break;
      const previous = known;
      known = this.#published;
      // The load may have begun before the published notification, or have found a state that is newer.
      if (known) this.#isForAll = true;
      else if (loaded) this.#pass(loaded, waiting, previous);
    }
    this.#isLoading = false;
    this.#published = undefined;
  }

  #takeWaiting(): Waiting {
    const waiting = { isForAll: this.#isForAll, newcomers: this.#newcomers };
    this.#isForAll = false;
    this.#newcomers = new Set();
    this.#published = undefined;
    return waiting;
  }

  #pass(loaded: Published, { isForAll, newcomers }: Waiting, known: Published | undefined): void {
    try {
      const isNew = isForAll && !(known && isSame(known, loaded));
      this.#parts.deliver(loaded, isNew ? undefined : newcomers);
    } catch (error) {
      this.#parts.report(error);
    }
  }

  /**
   * Calls a function until it succeeds, or until the topic has no subscribers left. Reports only the first error, because
   * the same error may occur in each attempt.
   */
  async #repeat<T>(run: () => Awaitable<T>): Promise<T | undefined> {
    const { clock, report } = this.#parts;
    const { signal } = this.#ending;
    for (let ms = RETRY_MS; !signal.aborted; ms = Math.min(2 * ms, MAX_RETRY_MS)) {
      try {
        return await run();
      } catch (error) {
        // An error for clients, such as of a limit, is no fault of the extension.
        if (ms === RETRY_MS && !isMcpError(error)) report(error);
      }
      await delay(ms, { signal, clock, background: true }).catch(() => {});
    }
  }
}

function isSame(known: Published, loaded: Published): boolean {
  return known.method === loaded.method && JSON.stringify(known.params) === JSON.stringify(loaded.params);
}

/** Milliseconds before the first retry. Each further retry doubles the time. */
const RETRY_MS = 1000;

/** Maximum milliseconds between two attempts. */
const MAX_RETRY_MS = 8000;
