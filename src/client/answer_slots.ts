/**
 * Runs a limited number of jobs at a time. Further jobs wait in order.
 *
 * @module
 */

/** Limits how many jobs run at the same time. Each running job takes a slot. */
export class AnswerSlots {
  readonly #size: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /** Creates `size` slots, which is the number of jobs that may run at the same time. */
  constructor(size: number) {
    this.#size = size;
  }

  /** Number of jobs that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Runs a job when a slot is free, and frees the slot when the job settles. Throws the reason of `signal` if it aborts
   * before the job starts.
   */
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

  /** Gives the slot to the job that has waited longest. */
  #release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      return next();
    }
    this.#running--;
  }
}
