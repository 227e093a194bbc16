/**
 * A timeout that does not count the time in which a server waits for an answer.
 */
import type { Clock } from "../core/timers.ts";

export class ActiveTimer {
  readonly #clock: Clock;
  readonly #onTime: () => void;
  #leftMs: number;
  #pauses = 0;
  #startedAt = 0;
  #stop = () => {};

  /** Without `ms`, the timer never ends. */
  constructor(clock: Clock, ms: number | undefined, onTime: () => void) {
    this.#clock = clock;
    this.#leftMs = ms ?? Infinity;
    this.#onTime = onTime;
    this.#run();
  }

  pause(): void {
    if (this.#pauses++) return;
    this.#stop();
    this.#leftMs -= this.#clock.now() - this.#startedAt;
  }

  resume(): void {
    if (!--this.#pauses) this.#run();
  }

  /** Ends the timer. */
  stop(): void {
    this.#stop();
    this.#leftMs = Infinity;
  }

  /** Does not count the time until `wait` settles. */
  async without<T>(wait: () => Promise<T>): Promise<T> {
    this.pause();
    try {
      return await wait();
    } finally {
      this.resume();
    }
  }

  #run(): void {
    if (this.#leftMs === Infinity) return;
    this.#startedAt = this.#clock.now();
    this.#stop = this.#clock.start(this.#onTime, Math.max(0, this.#leftMs));
  }
}
