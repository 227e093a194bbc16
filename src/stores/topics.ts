/**
 * Reads the topics of a store when the engine reports new entries, and by polling, because a report may be missing.
 */
import { systemClock } from "../core/timers.ts";
import type { LogHead } from "../server/engine/store.ts";
import type { Subscription } from "./subscription.ts";

/** The store operations that topics need. These operations do not count towards the limit `pending`. */
export interface TopicSource {
  /** Returns the state of each topic, or `undefined` if the engine has no `heads`. */
  heads(topics: readonly string[]): Promise<readonly LogHead[] | undefined>;
  /** Returns a function that stops the listener, or `undefined` if the engine has no `listen`. */
  listen(onRing: (log: string) => void, onLost: (error?: unknown) => void): Promise<(() => void) | undefined>;
  /** Returns whether operations currently fail without reaching the engine. */
  isLost(): boolean;
  /** Called with `"lost"` and the error when the engine's listener is lost, and with `"back"` when a listener works. */
  onListening(state: "lost" | "back", error?: unknown): void;
}

/** Milliseconds between two reads of a topic while the engine has a listener. */
const LISTEN_POLL_MS = 1000;
/** Milliseconds between two reads of a topic while the engine has no listener. */
const POLL_MS = 50;
/** Milliseconds between two attempts to start a lost listener again. */
const LISTEN_AGAIN_MS = 1000;
/** Maximum number of concurrent reads of topics. */
const MAX_READS = 32;
/** Maximum number of topics that are read in a row before other work of the event loop can run. */
const MAX_IN_ROW = 200;
/** Maximum number of topics whose states one operation reads. */
const MAX_HEADS = 1000;

// Bound: `store.subscriptions`.
export class Topics {
  readonly #source: TopicSource;
  /** The option `pollMs`, or 0 for the default. */
  readonly #chosenMs: number;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  /** Subscriptions whose topic must be read, as soon as fewer than `MAX_READS` reads are in progress. */
  readonly #waiting = new Set<Subscription>();
  #reads = 0;
  /** Number of topics that were read since other work of the event loop could run. */
  #row = 0;
  #stopTurn?: () => void;
  #stopPolling?: () => void;
  #isComparing = false;
  /**
   * The current listener, which may still be starting. If this field contains another object after an asynchronous
   * step, the listener was replaced.
   */
  #listener?: Listener;
  #listenAt = 0;
  #isLost = false;
  #isClosed = false;

  constructor(source: TopicSource, pollMs: number) {
    this.#source = source;
    this.#chosenMs = pollMs;
  }

  /** Starts the listener, unless a listener already exists. Rejects if the listener cannot be started. */
  listen(): Promise<void> {
    const listener: Listener = this.#listener ??= {};
    return listener.started ??= this.#start(listener);
  }

  add(topic: string, subscription: Subscription): void {
    if (this.#isClosed) return;
    const subscriptions = this.#subscriptions.get(topic) ?? new Set();
    this.#subscriptions.set(topic, subscriptions.add(subscription));
    this.#poll();
  }

  remove(topic: string, subscription: Subscription): void {
    subscription.stop();
    this.#waiting.delete(subscription);
    const subscriptions = this.#subscriptions.get(topic);
    if (subscriptions?.delete(subscription) && !subscriptions.size) this.#subscriptions.delete(topic);
    if (!this.#subscriptions.size) this.#stop();
  }

  /** Starts the listener again, because the engine was replaced. */
  restart(): void {
    const listener = this.#listener;
    if (!listener) return;
    stopListener(listener);
    this.#dropListener(listener);
  }

  /** Ends all subscriptions. Settles when the engine's listener has stopped. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    for (const subscriptions of this.#subscriptions.values()) for (const each of subscriptions) each.stop();
    this.#subscriptions.clear();
    this.#waiting.clear();
    const listener = this.#listener;
    this.#listener = undefined;
    if (listener) await stopListener(listener);
  }

  async #start(listener: Listener): Promise<void> {
    const ring = (log: string) => {
      if (this.#listener === listener) { for (const each of this.#subscriptions.get(log) ?? []) this.#pull(each); }
    };
    const onLost = (error?: unknown) => {
      if (this.#listener !== listener || this.#isClosed) return;
      this.#isLost = true;
      this.#source.onListening("lost", error);
      this.#dropListener(listener);
    };
    try {
      listener.stop = await this.#source.listen(ring, onLost);
    } catch (error) {
      this.#forget(listener);
      throw error;
    }
    // Stop this listener if the engine was replaced or the store was closed while the listener started.
    if (this.#listener !== listener) return void stopListener(listener);
    listener.pollMs = listener.stop ? LISTEN_POLL_MS : POLL_MS;
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#source.onListening("back");
  }

  #dropListener(listener: Listener): void {
    this.#listenAt = systemClock.now() + LISTEN_AGAIN_MS;
    this.#forget(listener);
    // Restart the timer, because the polling interval is shorter without a listener.
    this.#stopPolling?.();
    this.#stopPolling = undefined;
    this.#poll();
  }

  #forget(listener: Listener): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  #stop(): void {
    this.#stopPolling?.();
    this.#stopTurn?.();
    this.#stopPolling = this.#stopTurn = undefined;
  }

  /** Checks all topics at the polling interval, for as long as there are subscriptions. */
  #poll(): void {
    if (!this.#subscriptions.size || this.#isClosed) return;
    const ms = this.#chosenMs || (this.#listener?.pollMs ?? POLL_MS);
    const poll = () => {
      this.#stopPolling = undefined;
      // The check also tests whether a lost engine responds again. Such tests run at most once per second, because
      // `isLost` returns `true` between two tests.
      if (!this.#source.isLost()) this.#check();
      this.#poll();
    };
    this.#stopPolling ??= systemClock.start(poll, ms, { background: true });
  }

  #check(): void {
    if (!this.#listener && systemClock.now() >= this.#listenAt) this.#listenAgain();
    if (!this.#isComparing && !this.#waiting.size) this.#compare();
  }

  #listenAgain(): void {
    this.#listenAt = systemClock.now() + LISTEN_AGAIN_MS;
    this.listen().then(() => this.#pullAll(), () => {});
  }

  // Compares the topics in slices, so that thousands of topics do not delay other store operations.
  async #compare(): Promise<void> {
    this.#isComparing = true;
    try {
      const topics = [...this.#subscriptions.keys()];
      for (let start = 0; start < topics.length; start += MAX_HEADS) {
        const slice = topics.slice(start, start + MAX_HEADS);
        const heads = await this.#source.heads(slice);
        if (!heads) return this.#pullAll();
        for (const [index, topic] of slice.entries()) {
          for (const each of this.#subscriptions.get(topic) ?? []) if (each.isBehind(heads[index])) this.#pull(each);
        }
      }
    } catch {
      // If the comparison fails, the topics are compared again at the next interval.
    } finally {
      this.#isComparing = false;
    }
  }

  #pullAll(): void {
    for (const subscriptions of this.#subscriptions.values()) for (const each of subscriptions) this.#waiting.add(each);
    this.#pullWaiting();
  }

  #pull(subscription: Subscription): void {
    this.#waiting.add(subscription);
    this.#pullWaiting();
  }

  #pullWaiting(): void {
    for (const subscription of this.#waiting) {
      if (this.#reads >= MAX_READS || this.#isClosed) return;
      if (++this.#row > MAX_IN_ROW) return this.#continueLater();
      this.#waiting.delete(subscription);
      this.#reads++;
      subscription.pull().finally(() => {
        this.#reads--;
        this.#pullWaiting();
      });
    }
    this.#row = 0;
  }

  #continueLater(): void {
    this.#stopTurn ??= systemClock.start(() => {
      this.#stopTurn = undefined;
      this.#row = 0;
      this.#pullWaiting();
    }, 0);
  }
}

// Stops a listener. Ignores errors, which occur if the listener's connection is lost.
async function stopListener({ stop }: Listener): Promise<void> {
  try {
    await stop?.();
  } catch {
    // A listener without a connection sends no further reports.
  }
}

/** A listener of the engine. `started` settles when the listener has started. */
interface Listener {
  started?: Promise<void>;
  stop?: () => void;
  pollMs?: number;
}
