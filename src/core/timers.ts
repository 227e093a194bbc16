/**
 * The clock, and the single timer that a server uses for all timeouts.
 */
import { startBackgroundTimer, workers } from "./runtime.ts";

/** The source of time. A test can pass a clock that the test controls. */
export interface Clock {
  /** Returns a monotonic time in milliseconds. */
  now(): number;
  /** Returns the wall-clock time in milliseconds since 1970. */
  date(): number;
  /**
   * Runs `job` once after `ms` milliseconds. Returns a function that cancels the job. With `background`, the timer does
   * not keep the process alive.
   */
  start(job: () => void, ms: number, options?: { readonly background?: boolean }): () => void;
}

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

/** Returns the milliseconds until the next check, or `undefined` if no further check is needed. */
export type Sweep = (now: number) => number | undefined;

/** A function to call at a given time, unless the timeout is cancelled first. */
export interface Timeout {
  readonly due: number;
  readonly onTimeout: () => void;
  /** Stops the timer of this timeout. `undefined` if the timeout shares the timer of the server. */
  readonly stop?: () => void;
}

/**
 * One timer for all timeouts of a server. A timer per request would take a third of the request's time, and thousands
 * of idle streams with a timer each would keep the process awake.
 *
 * The timer keeps the process alive only while a timeout or an awaited sweep is scheduled, because a promise may wait
 * for this timeout or sweep, such as the promise for the result of a call. All other sweeps only free memory.
 */
// Bound: a sweep per part of the server, and a timeout per call or stream that its pot counts.
export class Ticker {
  readonly clock: Clock;
  /**
   * Whether each timeout has a timer of its own, because the shared timer would end with the request that has started
   * it. On Workers, no further timeout would then be called.
   */
  readonly isPerRequest: boolean;
  readonly #sweeps = new Map<Sweep, number>();
  readonly #awaited = new Set<Sweep>();
  readonly #timeouts = new Set<Timeout>();
  readonly #runTimeouts: Sweep = (now) => {
    let next = Infinity;
    for (const timeout of this.#timeouts) {
      if (timeout.due > now) next = Math.min(next, timeout.due - now);
      else if (this.#timeouts.delete(timeout)) timeout.onTimeout();
    }
    return next === Infinity ? undefined : next;
  };
  #stop = () => {};
  #at = Infinity;
  /** Whether the current timer lets the process exit. */
  #isBackground = false;
  #closed = false;

  /** The ticker starts no timer until a job is scheduled. */
  constructor(clock: Clock) {
    this.clock = clock;
    this.isPerRequest = workers && clock === systemClock;
  }

  now(): number {
    return this.clock.now();
  }

  get size(): number {
    return this.#sweeps.size + this.#timeouts.size;
  }

  /** Runs `sweep` within `ms` milliseconds. An awaited sweep keeps the process alive until no check is needed. */
  schedule(sweep: Sweep, ms: number, options?: { readonly isAwaited?: boolean }): void {
    const due = this.clock.now() + ms;
    if (this.#closed || (this.#sweeps.get(sweep) ?? Infinity) <= due) return;
    this.#sweeps.set(sweep, due);
    if (options?.isAwaited) this.#awaited.add(sweep);
    this.#arm(due);
  }

  /** Schedules `onTimeout` to run once after `ms` milliseconds. `Infinity` means never. */
  startTimeout(ms: number, onTimeout: () => void): Timeout {
    const timeout = { due: this.clock.now() + ms, onTimeout };
    if (ms === Infinity) return timeout;
    if (this.isPerRequest) {
      const stop = this.clock.start(() => this.#closed || onTimeout(), toDelay(ms));
      return { ...timeout, stop };
    }
    this.#timeouts.add(timeout);
    this.schedule(this.#runTimeouts, ms);
    if (this.#isBackground && !this.#closed) this.#arm(this.#at);
    return timeout;
  }

  /**
   * Schedules `end` for the time at which credentials expire, in milliseconds since 1970. `undefined` means never.
   * Returns a function that cancels the timeout.
   */
  startExpiry(expiresAt: number | undefined, end: () => void): () => void {
    if (expiresAt === undefined) return () => {};
    return this.start(end, expiresAt - this.clock.date());
  }

  start(job: () => void, ms: number): () => void {
    const timeout = this.startTimeout(ms, job);
    return () => this.cancel(timeout);
  }

  cancel(timeout: Timeout): void {
    timeout.stop?.();
    this.#timeouts.delete(timeout);
    // Let the timer fire soon, because a timer for cancelled timeouts would keep an idle process alive. Do not stop the
    // timer, because the next timeout is often set immediately. This way, a timer is started at most once per
    // DROPPED_MS.
    if (!this.#timeouts.size && this.#sweeps.has(this.#runTimeouts)) this.schedule(this.#runTimeouts, DROPPED_MS);
  }

  /** Stops the timer permanently, and cancels all jobs. */
  close(): void {
    this.#closed = true;
    this.#stop();
    this.#sweeps.clear();
    this.#awaited.clear();
    this.#timeouts.clear();
  }

  #arm(at: number): void {
    const isBackground = !this.#timeouts.size && !this.#awaited.size;
    if (at >= this.#at && (isBackground || !this.#isBackground)) return;
    this.#stop();
    this.#at = Math.min(at, this.#at);
    this.#isBackground = isBackground;
    const ms = toDelay(this.#at - this.clock.now());
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

/** Limits a delay, because setTimeout() fires immediately if the delay is 2^31 ms or more. */
function toDelay(ms: number): number {
  return Math.min(Math.max(1, ms), 2 ** 31 - 1);
}

/** Milliseconds for which the timer may keep the process alive after the last timeout was cancelled. */
const DROPPED_MS = 100;
