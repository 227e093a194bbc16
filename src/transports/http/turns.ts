/**
 * Lets large requests in one at a time, so that small ones are served between them.
 *
 * @module
 */

import { FairQueue } from "../../core/capacity/fair_queue.ts";
import { bun, deno, node } from "../../runtime.ts";

/** Bytes above which a body waits for its turn, because parsing and validating it may take milliseconds. */
export const HEAVY = 16_384;

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn begins, or when it is given up. */
  readonly begun: Promise<void>;
  /** Gives up a turn that has not begun. */
  readonly leave: () => void;
}

/**
 * The turns of large requests.
 *
 * A turn has two steps: parsing, and running. Report the end of each with {@linkcode Turns.pause} and
 * {@linkcode Turns.end}. After a step that was not short, the event loop serves other requests for half of its time.
 */
export class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #tick = () => this.#goOn();
  /** Lets in the next step. It is set while a turn runs, and while the event loop serves small requests. */
  #timer?: ReturnType<typeof setTimeout>;
  /**
   * Whether a turn has begun, and has neither paused nor ended. A message whose declared length was too small has no
   * turn, and must not pause or end one that has paused.
   */
  #isRunning = false;
  #hasRested = false;
  /** Begin of the current step, or of several short ones, in milliseconds. */
  #since = 0;
  #restUntil = 0;
  /** Begins the second step of a turn. */
  #resume?: () => void;

  /** Waits for a turn. Clients take turns. */
  take(client: unknown): Turn {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    // On Workers, a timer ends with its request, and no request can wait for another one.
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

  /** Ends the first step of the turn. Returns a promise for the next one, if small requests come first. */
  pause(): Promise<void> | undefined {
    if (!this.#isRunning || this.#isShort()) return;
    this.#isRunning = false;
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  /** Ends the turn. If nobody calls this, it ends with the turn of the event loop. */
  end(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    if (this.#waiting.isEmpty) return this.#stop();
    const next = this.#isShort() ? this.#waiting.take() : undefined;
    if (next) this.#run(next);
  }

  /** Tests whether the steps since the event loop last served others were short. */
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

  // No timer outlives the requests, because it would keep a process alive, and a test would report it. A request that
  // comes soon after a long step waits for the rest of the time.
  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#restUntil = this.#isShort() ? 0 : performance.now() + this.#toRest();
  }

  /** Returns how long the event loop serves others after the current step, in milliseconds. */
  #toRest(): number {
    return Math.min((performance.now() - this.#since) / 2, MAX_REST_MS);
  }

  #rest(ms: number): ReturnType<typeof setTimeout> {
    this.#hasRested = true;
    return setTimeout(this.#tick, Math.max(0, ms));
  }

  // The first timer was set before the step, so it may be due as soon as the step ends. A small request needs several
  // turns of the event loop: it arrives, its body is read, and it is answered.
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
 * Milliseconds below which one step may follow another one in the same turn of the event loop. If the event loop came
 * between all of them, 330 bodies of 20 KiB were served per second, and 3,000 otherwise.
 */
const SHORT_MS = 0.5;
/**
 * Maximum milliseconds between two steps, which are half of what the first one took. A handler that blocks the process
 * makes a step longer than its body does.
 */
const MAX_REST_MS = 100;
