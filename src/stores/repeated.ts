/**
 * Work with a store that is repeated until it succeeds.
 */
import type { Clock } from "../core/timers.ts";

/** Options of {@linkcode Repeated}. */
export interface RepeatedOptions {
  /** Milliseconds between a failed attempt and the next attempt. Defaults to 1000. */
  readonly retryMs?: number;
  /** Milliseconds after which a successful attempt is repeated. Defaults to never. */
  readonly renewMs?: number;
}

/** Runs one attempt at a time. Retries in the background after an attempt has failed. */
export class Repeated {
  readonly #clock: Clock;
  readonly #attempt: () => Promise<boolean>;
  readonly #options: RepeatedOptions;
  #isWanted = false;
  #isClosed = false;
  #running?: Promise<boolean>;
  /** Stops the timer for the next attempt. */
  #stop?: () => void;

  /** `attempt` resolves to whether it has succeeded, and never rejects. */
  constructor(clock: Clock, attempt: () => Promise<boolean>, options: RepeatedOptions = {}) {
    this.#clock = clock;
    this.#attempt = attempt;
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
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

  /** Starts an attempt later, unless a timer is already set. */
  later(ms: number | undefined = this.#options.retryMs ?? 1000): void {
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
    const { renewMs } = this.#options;
    if (!isDone || renewMs !== undefined) this.later(isDone ? renewMs : undefined);
    return isDone;
  }
}
