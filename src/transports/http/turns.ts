/**
 * Runs large requests one at a time, so that small requests are served between them.
 *
 * @module
 */

import { FairQueue } from "../../core/capacity/fair_queue.ts";
import { bun, deno, node } from "../../runtime.ts";

/** Size in bytes from which a body waits for its turn, because parsing and validating it may take milliseconds. */
export const HEAVY = 16_384;

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn begins, or when the request leaves the queue. */
  readonly begun: Promise<void>;
  /** Leaves the queue, if the turn has not begun. */
  readonly leave: () => void;
}

/**
 * The turns of large requests.
 *
 * A turn has two steps: parsing, and running. Report the end of each step with {@linkcode Turns.pause} and {@linkcode
 * Turns.end}. After a step that was not short, the event loop serves other requests for half as long as the step took.
 */
export class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #tick = () => this.#goOn();
  /** The timer that begins the next step. Set while a turn runs, and while the event loop serves small requests. */
  #timer?: ReturnType<typeof setTimeout>;
  /**
   * Whether a turn has begun, and has neither paused nor ended. A message that is larger than its declared length has
   * no turn, and must not pause or end the turn of another message.
   */
  #isRunning = false;
  #hasRested = false;
  /** Start time in milliseconds: of the current step, or of the first step in a series of short steps. */
  #since = 0;
  #restUntil = 0;
  /** Begins the second step of a turn that has paused. */
  #resume?: () => void;

  /** Queues a request for its turn. The clients in the queue take turns. */
  take(client: unknown): Turn {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    // On Workers, a timer ends with its request, so no request can wait for another request's timer.
    if (!deno && !bun && !node) resolve();
    else if (this.#timer === undefined && performance.now() >= this.#restUntil) this.#begin(resolve);
    else {
      this.#waiting.add(client, resolve);
      this.#timer ??= this.#rest(this.#restUntil - performance.now());
      const leave = () => {
        this.#waiting.delete(client, resolve);
        resolve();
      };
      return { begun, leave };
    }
    return { begun, leave: () => {} };
  }

  /** Ends the first step of the turn. Returns a promise for the second step if small requests are served first. */
  pause(): Promise<void> | undefined {
    if (!this.#isRunning || this.#isShort()) return;
    this.#isRunning = false;
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  /** Ends the turn. Without this call, the turn ends with the current turn of the event loop. */
  end(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    if (this.#waiting.isEmpty) return this.#stop();
    const next = this.#isShort() ? this.#waiting.take() : undefined;
    if (next) this.#run(next);
  }

  /** Tests whether the steps since the event loop last served other requests were short together. */
  #isShort(): boolean {
    return performance.now() - this.#since < SHORT_MS;
  }

  #begin(resolve: () => void): void {
    this.#since = performance.now();
    this.#hasRested = false;
    this.#timer = setTimeout(this.#tick);
    this.#run(resolve);
  }

  #run(resolve: () => void): void {
    this.#isRunning = true;
    resolve();
  }

  // Stop the timer, because a timer that outlives the requests would keep the process alive. A request that arrives
  // soon after a long step waits for the remaining time.
  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#restUntil = this.#isShort() ? 0 : performance.now() + this.#toRest();
  }

  /** Returns the milliseconds for which the event loop serves other requests after the current step. */
  #toRest(): number {
    return Math.min((performance.now() - this.#since) / 2, MAX_REST_MS);
  }

  #rest(ms: number): ReturnType<typeof setTimeout> {
    this.#hasRested = true;
    return setTimeout(this.#tick, Math.max(0, ms));
  }

  // After a long step, pause before the next step: the timer was set before the long step, so it may be due as soon as
  // that step ends. A small request needs several turns of the event loop: it arrives, its body is read, and the server
  // responds.
  #goOn(): void {
    this.#isRunning = false;
    if (!this.#hasRested && !this.#isShort()) {
      this.#timer = this.#rest(this.#toRest());
      return;
    }
    const next = this.#resume ?? this.#waiting.take();
    this.#timer = this.#resume = undefined;
    if (next) this.#begin(next);
  }
}

/**
 * Maximum total duration, in milliseconds, of steps that follow each other in the same turn of the event loop. Measured
 * with bodies of 20 KiB: 3,000 per second, or 330 per second with a turn of the event loop after each step.
 */
const SHORT_MS = 0.5;
/**
 * Maximum pause between two steps, in milliseconds. The pause is half as long as the previous step, so a handler that
 * blocks the process would otherwise cause a very long pause.
 */
const MAX_REST_MS = 100;
