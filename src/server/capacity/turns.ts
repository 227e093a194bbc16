/**
 * Runs expensive steps of requests one at a time, such as parsing a large body, so that other requests are served
 * between them.
 */

import { FairQueue } from "./fair_queue.ts";
import { bun, deno, node } from "../../core/runtime.ts";

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn starts, or when `leave` is called. */
  readonly begun: Promise<void>;
  /** Does nothing if the turn has started. */
  readonly leave: () => void;
}

/**
 * A turn can have two steps, such as parsing and running. Call {@linkcode Turns.pause} between them, and {@linkcode
 * Turns.end} after the last step. After a long step, the event loop serves other requests for half as long as the step
 * took.
 */
export class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #tick = () => this.#goOn();
  /** The timer that starts the next step. Set during a turn, and while the event loop serves small requests. */
  #timer?: ReturnType<typeof setTimeout>;
  /**
   * Whether a step is running. Otherwise `pause` and `end` do nothing. A message that is larger than its declared
   * length has no turn, and must not pause or end the turn of another message.
   */
  #isRunning = false;
  #hasPaused = false;
  /** Time in milliseconds at which the current step, or the series of short steps, started. */
  #since = 0;
  #pausedUntil = 0;
  #resume?: () => void;

  /** The queue serves the clients round robin. */
  enqueue(client: unknown): Turn {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    // Do not queue on Workers, because a timer there ends with its request, so that a request cannot wait for the timer
    // of another request.
    if (!deno && !bun && !node) resolve();
    else if (this.#timer === undefined && performance.now() >= this.#pausedUntil) this.#begin(resolve);
    else {
      this.#waiting.add(client, resolve);
      this.#timer ??= this.#startPause(this.#pausedUntil - performance.now());
      const leave = () => {
        this.#waiting.delete(client, resolve);
        resolve();
      };
      return { begun, leave };
    }
    return { begun, leave: () => {} };
  }

  /** Returns a promise that settles when the second step can start, if other requests are served before. */
  pause(): Promise<void> | undefined {
    if (!this.#isRunning || this.#isShort()) return;
    this.#isRunning = false;
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  /** Ends the turn. If `end` is not called, the turn ends with the current iteration of the event loop. */
  end(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    if (this.#waiting.isEmpty) return this.#stop();
    const next = this.#isShort() ? this.#waiting.dequeue() : undefined;
    if (next) this.#run(next);
  }

  /** Tests whether all steps since the event loop last served other requests took less than `SHORT_MS` in total. */
  #isShort(): boolean {
    return performance.now() - this.#since < SHORT_MS;
  }

  #begin(resolve: () => void): void {
    this.#since = performance.now();
    this.#hasPaused = false;
    this.#timer = setTimeout(this.#tick);
    this.#run(resolve);
  }

  #run(resolve: () => void): void {
    this.#isRunning = true;
    resolve();
  }

  // Stops the timer, because a timer without a waiting request would keep the process alive. A request that arrives
  // soon after a long step still waits until `#pausedUntil`.
  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pausedUntil = this.#isShort() ? 0 : performance.now() + this.#toPauseMs();
  }

  /** Returns the number of milliseconds for which the event loop serves other requests after the current step. */
  #toPauseMs(): number {
    return Math.min((performance.now() - this.#since) / 2, MAX_PAUSE_MS);
  }

  #startPause(ms: number): ReturnType<typeof setTimeout> {
    this.#hasPaused = true;
    return setTimeout(this.#tick, Math.max(0, ms));
  }

  // Starts the next step, after a pause if the last step was long. The pause needs a new timer, because the current
  // timer was set before the long step, and is due as soon as the step ends. A small request needs several turns of the
  // event loop, to arrive, to be read, and to be answered.
  #goOn(): void {
    this.#isRunning = false;
    if (!this.#hasPaused && !this.#isShort()) {
      this.#timer = this.#startPause(this.#toPauseMs());
      return;
    }
    const next = this.#resume ?? this.#waiting.dequeue();
    this.#timer = this.#resume = undefined;
    if (next) this.#begin(next);
  }
}

/**
 * Maximum total duration in milliseconds of consecutive steps in the same turn of the event loop. With bodies of 20
 * KiB, measurements gave 3,000 requests per second, but only 330 with a new turn of the event loop after each step.
 */
const SHORT_MS = 0.5;
/**
 * Maximum pause between two steps, in milliseconds. A limit is needed, because the pause is half as long as the
 * previous step, and a handler may block the process for a long time.
 */
const MAX_PAUSE_MS = 100;
