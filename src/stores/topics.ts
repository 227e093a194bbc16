/**
 * Reads the topics of a store when the engine reports new entries. Also polls at an interval, in case a report was
 * lost.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";
import type { Awaitable, LogHead, LogPage } from "../core/store.ts";
import type { Subscription } from "./subscription.ts";

/** The operations of a store that topics need. They do not count towards the limit `pending`. */
export interface TopicSource {
  /** Reads the entries of a topic after an id. */
  read(topic: string, after: number): Awaitable<LogPage>;
  /** Returns the states of topics, or `undefined` if the engine cannot read several states at once. */
  heads(topics: readonly string[]): Awaitable<readonly LogHead[] | undefined>;
  /**
   * Starts the listener of the engine. Returns a function that stops the listener, or `undefined` if the engine has no
   * listener.
   */
  listen(onRing: (log: string) => void, onLost: (error?: unknown) => void): Awaitable<(() => void) | undefined>;
  /** Whether operations currently fail without an attempt. */
  isLost(): boolean;
  /** Called when the listener of the engine is lost, with its error, and when the listener is back. */
  onListening(state: "lost" | "back", error?: unknown): void;
}

/** Milliseconds between two reads of a topic while the engine has a listener. */
const LISTEN_POLL_MS = 1000;
/** Milliseconds between two reads of a topic while the engine has no listener. */
const POLL_MS = 50;
/** Milliseconds after which a lost listener is started again. */
const LISTEN_AGAIN_MS = 1000;
/** Maximum number of concurrent reads of topics. */
const MAX_READS = 32;
/** Maximum number of topics that are read in a row before other work gets a turn. */
const MAX_IN_ROW = 200;
/** Maximum number of topics whose states are read at once. */
const MAX_HEADS = 1000;

/** The subscriptions of a store, by topic. */
export class Topics {
  readonly #source: TopicSource;
  /** The polling interval in milliseconds that the author has set, or 0 for the default. */
  readonly #chosenMs: number;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  /** Subscriptions to read when other reads have ended. */
  readonly #waiting = new Set<Subscription>();
  #reads = 0;
  #stopTurn?: () => void;
  #stopPolling?: () => void;
  #isComparing = false;
  /**
   * The current listener, or the promise of a listener that is starting. A different object means that the listener was
   * replaced.
   */
  #listener?: Listener;
  #listenAt = 0;
  #isLost = false;
  #isClosed = false;

  constructor(source: TopicSource, pollMs: number) {
    this.#source = source;
    this.#chosenMs = pollMs;
  }

  /** Listens for new entries. Rejects if the listener cannot be started. */
  listen(): Awaitable<void> {
    if (this.#listener) return this.#listener.started;
    const listener: Listener = { started: undefined };
    this.#listener = listener;
    try {
      listener.started = this.#start(listener);
      return listener.started;
    } catch (error) {
      this.#forget(listener);
      throw error;
    }
  }

  /** Adds a subscription, and reads its topic from now on. */
  add(topic: string, subscription: Subscription): void {
    if (this.#isClosed) return;
    const subscriptions = this.#subscriptions.get(topic) ?? new Set();
    this.#subscriptions.set(topic, subscriptions.add(subscription));
    this.#poll();
  }

  /** Ends a subscription. */
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
    this.#lose(listener);
  }

  /** Ends all subscriptions. Settles when the listener of the engine has stopped. */
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

  #start(listener: Listener): Awaitable<void> {
    const ring = (log: string) => {
      if (this.#listener === listener) { for (const each of this.#subscriptions.get(log) ?? []) this.#pull(each); }
    };
    const onLost = (error?: unknown) => {
      if (this.#listener !== listener || this.#isClosed) return;
      this.#isLost = true;
      this.#source.onListening("lost", error);
      this.#lose(listener);
    };
    const stop = this.#source.listen(ring, onLost);
    if (!(stop instanceof Promise)) return this.#use(listener, stop);
    return stop.then((stop) => this.#use(listener, stop), (error) => {
      this.#forget(listener);
      throw error;
    });
  }

  #use(listener: Listener, stop: (() => void) | undefined): void {
    // Stop a listener that started too late: the engine was replaced, or the store was closed.
    listener.stop = stop;
    if (this.#listener !== listener) return void stopListener(listener);
    listener.pollMs = stop ? LISTEN_POLL_MS : POLL_MS;
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#source.onListening("back");
  }

  #lose(listener: Listener): void {
    this.#listenAt = systemClock.now() + LISTEN_AGAIN_MS;
    this.#forget(listener);
    // Restart the timer, because without a listener the interval is shorter.
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

  /** Checks all topics after the interval, and again as long as there are subscriptions. */
  #poll(): void {
    if (!this.#subscriptions.size || this.#isClosed) return;
    const ms = this.#chosenMs || (this.#listener?.pollMs ?? POLL_MS);
    const poll = () => {
      this.#stopPolling = undefined;
      // The check also tests whether the engine is back. While the engine is lost, this happens at most once per
      // second.
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
    const listen = async () => await this.listen();
    listen().then(() => this.#pullAll(), () => {});
  }

  // Compares topics in slices, so that thousands of topics leave time for other operations of the store.
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
    let row = 0;
    for (const subscription of this.#waiting) {
      if (this.#reads >= MAX_READS || this.#isClosed) return;
      if (++row > MAX_IN_ROW) return this.#continueLater();
      this.#waiting.delete(subscription);
      const done = subscription.pull();
      if (!(done instanceof Promise)) continue;
      this.#reads++;
      done.finally(() => {
        this.#reads--;
        this.#pullWaiting();
      });
    }
  }

  #continueLater(): void {
    this.#stopTurn ??= systemClock.start(() => {
      this.#stopTurn = undefined;
      this.#pullWaiting();
    }, 0);
  }
}

// Ignore the error of a listener whose connection is lost.
async function stopListener({ stop }: Listener): Promise<void> {
  try {
    await stop?.();
  } catch {
    // A listener without a connection sends no further reports.
  }
}

/** A listener of the engine, or its start. */
interface Listener {
  started: Awaitable<void>;
  stop?: () => void;
  pollMs?: number;
}
