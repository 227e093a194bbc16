/**
 * Time, and the one timer that everything waits on.
 *
 * @module
 */
import { startBackgroundTimer } from "../runtime.ts";

/** Where the library reads the time; tests pass one they can turn. */
export interface Clock {
  /** Milliseconds that only grow; they do not jump when the system's clock is set. */
  now(): number;
  /** Milliseconds since 1970, for what other machines must read. */
  date(): number;
  /**
   * Runs `job` once after `ms` milliseconds, and returns a function that cancels it. With `background`, the process may
   * exit before.
   */
  start(job: () => void, ms: number, options?: { readonly background?: boolean }): () => void;
}

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  start: (job, ms, options) => {
    if (options?.background) return startBackgroundTimer(job, ms);
    const timer = setTimeout(job, ms);
    return () => clearTimeout(timer);
  },
};

const BACKGROUND = { background: true };

/** Looks after many things at once; says in how many milliseconds it wants to look again, or nothing. */
export type Sweep = (now: number) => number | undefined;

/** Something that happens at a time unless it is dropped before. */
export interface Alarm {
  readonly due: number;
  readonly ring: () => void;
}

/**
 * One timer for all waiting. A timer per request would cost a third of the request, and thousands of idle streams
 * with a timer each would never let the process sleep.
 *
 * The timer keeps the process alive only while an alarm or an awaited sweep is set, because a promise that somebody
 * awaits may depend on it, such as the result of a call that times out. Nobody awaits the other sweeps: they tidy up.
 */
export class Ticker {
  readonly clock: Clock;
  readonly #sweeps = new Map<Sweep, number>();
  readonly #awaited = new Set<Sweep>();
  readonly #alarms = new Set<Alarm>();
  readonly #ring: Sweep = (now) => {
    let next = Infinity;
    for (const alarm of this.#alarms) {
      if (alarm.due > now) next = Math.min(next, alarm.due - now);
      else if (this.#alarms.delete(alarm)) alarm.ring();
    }
    return next === Infinity ? undefined : next;
  };
  #stop = () => {};
  #at = Infinity;
  /** Whether the timer lets the process exit. */
  #isBackground = false;
  #closed = false;

  /** A ticker on a clock; it holds no timer until something waits. */
  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** How many jobs wait. */
  get size(): number {
    return this.#sweeps.size + this.#alarms.size;
  }

  /** Has `sweep` run in `ms` at the latest. An awaited one keeps the process alive until it wants to look no more. */
  wake(sweep: Sweep, ms: number, options?: { readonly isAwaited?: boolean }): void {
    const due = this.clock.now() + ms;
    if (this.#closed || (this.#sweeps.get(sweep) ?? Infinity) <= due) return;
    this.#sweeps.set(sweep, due);
    if (options?.isAwaited) this.#awaited.add(sweep);
    this.#arm(due);
  }

  /** Rings once after `ms`, unless it is dropped. `Infinity` never rings. */
  alarm(ms: number, ring: () => void): Alarm {
    const alarm = { due: this.clock.now() + ms, ring };
    if (ms === Infinity) return alarm;
    this.#alarms.add(alarm);
    this.wake(this.#ring, ms);
    if (this.#isBackground && !this.#closed) this.#arm(this.#at);
    return alarm;
  }

  /** Forgets an alarm. */
  drop(alarm: Alarm): void {
    this.#alarms.delete(alarm);
    // A timer set for what was dropped would keep a process alive that has nothing else to do. It is moved and not
    // stopped, because the next alarm is often set at once: so a held timer is replaced at most once in that time.
    if (!this.#alarms.size && this.#sweeps.has(this.#ring)) this.wake(this.#ring, DROPPED_MS);
  }

  /** Stops for good. */
  close(): void {
    this.#closed = true;
    this.#stop();
    this.#sweeps.clear();
    this.#awaited.clear();
    this.#alarms.clear();
  }

  #arm(at: number): void {
    const isBackground = !this.#alarms.size && !this.#awaited.size;
    if (at >= this.#at && (isBackground || !this.#isBackground)) return;
    this.#stop();
    this.#at = Math.min(at, this.#at);
    this.#isBackground = isBackground;
    // A delay of 2^31 or more would ring at once.
    const ms = Math.min(Math.max(1, this.#at - this.clock.now()), 2 ** 31 - 1);
    this.#stop = this.clock.start(() => this.#tick(), ms, isBackground ? BACKGROUND : undefined);
  }

  #tick(): void {
    this.#at = Infinity;
    this.#isBackground = false;
    const now = this.clock.now();
    for (const [sweep, due] of this.#sweeps) {
      if (due > now) continue;
      this.#sweeps.delete(sweep);
      const next = sweep(now);
      if (next !== undefined) this.#sweeps.set(sweep, Math.min(this.#sweeps.get(sweep) ?? Infinity, now + next));
      else if (!this.#sweeps.has(sweep)) this.#awaited.delete(sweep);
    }
    if (!this.#closed && this.#sweeps.size) this.#arm(Math.min(...this.#sweeps.values()));
  }
}

/** How long the timer may outlast the last alarm. */
const DROPPED_MS = 100;

/**
 * Finds what stays for longer than a period: items that are there for one to two of them. Adding and deleting read no
 * time and set no timer of their own, and what leaves soon costs garbage collection nothing.
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

  /** Adds an item. Somebody waits for what it stands for, so it keeps the process alive. */
  add(item: T): void {
    this.#young.add(item);
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#ticker.wake(this.#sweep, this.#periodMs, AWAITED);
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
