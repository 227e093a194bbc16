/**
 * Runs a few jobs at a time, and lets others wait in order.
 *
 * @module
 */

/** The places of jobs that run at the same time. */
export class AnswerSlots {
  readonly #size: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /** Makes places for `size` jobs. */
  constructor(size: number) {
    this.#size = size;
  }

  /** How many jobs wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs a job when a place is free, until it settles. Throws the reason of `signal` if that aborts before. */
  async run<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      signal.throwIfAborted();
      return await job();
    } finally {
      this.#release();
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#running < this.#size) return void this.#running++;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      this.#waiting.delete(resolve);
      reject(signal.reason);
    };
    this.#waiting.add(resolve);
    signal.addEventListener("abort", giveUp);
    await promise.finally(() => signal.removeEventListener("abort", giveUp));
  }

  /** Gives the place to the job that waits longest. */
  #release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      return next();
    }
    this.#running--;
  }
}
