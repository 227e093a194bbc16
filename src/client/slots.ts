/** Runs at most `size` jobs at the same time, in the order in which they arrived. Each running job occupies a slot. */
export class Slots {
  readonly #size: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** If `signal` aborts before the job starts, rejects with the signal's reason. */
  async run<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#acquire(signal);
    try {
      signal.throwIfAborted();
      return await job();
    } finally {
      this.#release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
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

  #release(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      return next();
    }
    this.#running--;
  }
}
