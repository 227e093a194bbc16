/**
 * Work with a store that is repeated until it succeeds.
 */
import type { Clock } from "../core/timers.ts";

/** Milliseconds between a failed attempt and the next attempt. */
const RETRY_MS = 1000;

/** Runs one attempt at a time. Retries in the background after an attempt has failed. */
export class Repeated {
  readonly #clock: Clock;
  readonly #attempt: () => Promise<boolean>;
  readonly #renewMs?: number;
  #isWanted = false;
  #isClosed = false;
  #running?: Promise<boolean>;
  /** Stops the timer for the next attempt. */
  #stop?: () => void;

  /**
   * @param attempt Resolves to whether it has succeeded. Never rejects.
   * @param renewMs Milliseconds after which a successful attempt is repeated. Defaults to never.
   */
  constructor(clock: Clock, attempt: () => Promise<boolean>, renewMs?: number) {
    this.#clock = clock;
    this.#attempt = attempt;
    this.#renewMs = renewMs;
  }

  /** Whether a timer starts the next attempt. */
  get isWaiting(): boolean {
    return !!this.#stop;
  }

  /** Starts an attempt, or returns the attempt in progress. */
  run(): Promise<boolean> {
    return this.#running ??= this.#run();
  }

  /** Starts an attempt. If an attempt is in progress and succeeds, another attempt follows it. */
  again(): Promise<boolean> {
    this.#isWanted = true;
    return this.run();
  }

  /** Starts an attempt after `ms` milliseconds, unless a timer is already set. */
  later(ms: number = RETRY_MS): void {
    if (!this.#isClosed) this.#stop ??= this.#clock.start(() => void this.run(), ms, { background: true });
  }

  /** Starts no further attempts. Settles when no attempt is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop?.();
    await this.#running;
  }

  async #run(): Promise<boolean> {
    this.#stop?.();
    this.#stop = undefined;
    let isDone = false;
    do {
      this.#isWanted = false;
      isDone = !this.#isClosed && await this.#attempt();
    } while (isDone && this.#isWanted);
    this.#running = undefined;
    if (!isDone) this.later();
    else if (this.#renewMs !== undefined) this.later(this.#renewMs);
    return isDone;
  }
}
