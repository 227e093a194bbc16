/**
 * Lets large requests in one at a time, so that small ones are served between them.
 *
 * @module
 */

import { FairQueue } from "../../core/fair_queue.ts";
import { bun, deno } from "../../runtime.ts";

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn begins, or when it is given up. */
  readonly begun: Promise<void>;
  /** Gives up a turn that has not begun. */
  readonly leave: () => void;
}

/** The small requests that come between turns. */
export interface SmallRequests {
  /** Number of those that have arrived so far. */
  readonly arrived: number;
  /** Whether the bodies of some are being read. */
  readonly areArriving: boolean;
}

/**
 * The turns of large requests.
 *
 * A turn has steps, such as parsing and running. Report the end of each with {@linkcode Turns.pause} or
 * {@linkcode Turns.end}. After a long step the event loop serves small requests. Short turns follow one another at once.
 */
export class Turns {
  readonly #waiting = new FairQueue<() => void>();
  readonly #small: SmallRequests;
  /** Number of small requests that had arrived before. */
  #known = 0;
  readonly #tick = () => this.#goOn();
  /** Lets in the next request. It runs while a turn does, and while requests wait. */
  #timer?: ReturnType<typeof setTimeout>;
  /**
   * Whether a turn has begun, and has neither paused nor ended. A message whose declared length was too small has no
   * turn, and must not pause or end one that has paused.
   */
  #isRunning = false;
  /** Whether the event loop was idle since the last step. */
  #hasRested = false;
  /** Begin and end of the latest step or of several short ones, in milliseconds. */
  #since = 0;
  #until = -Infinity;
  /** Until when small requests are expected. */
  #expected = 0;
  #resume?: () => void;

  /** Creates an empty queue. */
  constructor(small: SmallRequests) {
    this.#small = small;
  }

  /** Waits for a turn. Clients take turns. */
  take(client: unknown): Turn {
    const { promise, resolve } = Promise.withResolvers<void>();
    // On Workers, a timer ends with its request, and no request can wait for another one.
    if (!deno && !bun) resolve();
    else if (this.#timer === undefined && !this.#mustRest()) this.#begin(resolve);
    else return this.#wait(client, promise, resolve);
    return { begun: promise, leave: () => {} };
  }

  /** Ends a step of the turn. Returns a promise for the next one, if small requests come first. */
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
    const next = this.#isShort() ? this.#waiting.take() : undefined;
    if (next) this.#run(next);
    else if (this.#waiting.isEmpty) this.#stop();
  }

  #wait(client: unknown, begun: Promise<void>, resolve: () => void): Turn {
    this.#waiting.add(client, resolve);
    this.#timer ??= setTimeout(this.#tick);
    const leave = () => {
      this.#waiting.delete(client, resolve);
      resolve();
    };
    return { begun, leave };
  }

  /** Tests whether the steps since the last rest were short, and notes that one has ended. */
  #isShort(): boolean {
    this.#until = performance.now();
    return this.#until - this.#since < SHORT_MS;
  }

  /** Tests whether the last steps were long and have just ended, so that small requests come first. */
  #mustRest(): boolean {
    const took = this.#until - this.#since;
    return took > SHORT_MS && performance.now() - this.#until < Math.max(GAP_MS, Math.min(took / 10, MAX_REST_MS));
  }

  #begin(resolve: () => void): void {
    const now = performance.now();
    // Steps that follow one another at once count as one.
    if (now - this.#until > GAP_MS) this.#since = now;
    this.#hasRested = false;
    this.#timer = setTimeout(this.#tick);
    this.#run(resolve);
  }

  #run(resolve: () => void): void {
    this.#isRunning = true;
    resolve();
  }

  // No timer outlives the requests, because it would keep a process alive, and a test would report it.
  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  // A small request needs several turns of the event loop: it arrives, its body is read, and it is answered. The timer
  // was set before the step, so it may be due as soon as the step ends.
  #goOn(): void {
    const now = performance.now();
    // Nobody has reported its end. Measured once: otherwise it would seem to last for as long as small bodies arrive.
    if (this.#isRunning) this.#until = now;
    this.#isRunning = false;
    const took = this.#until - this.#since;
    const { arrived, areArriving } = this.#small;
    if (arrived > this.#known) this.#expected = now + EXPECTED_MS;
    this.#known = arrived;
    const isLong = took > LONG_MS;
    if (!this.#hasRested && (isLong || took > SHORT_MS && now < this.#expected)) {
      this.#hasRested = true;
      // With nothing in the queue, a short rest suffices, and a client that is alone loses less.
      const rest = isLong ? Math.min(took / (this.#waiting.isEmpty ? 10 : 2), MAX_REST_MS) : 0;
      this.#timer = setTimeout(this.#tick, Math.max(0, rest - (now - this.#until)));
    } else if (areArriving && now - this.#until < Math.min(took, MAX_REST_MS)) {
      this.#timer = setTimeout(this.#tick);
    } else this.#next();
  }

  #next(): void {
    const next = this.#resume ?? this.#waiting.take();
    this.#timer = this.#resume = undefined;
    this.#until = -Infinity;
    if (next) this.#begin(next);
  }
}

/** Milliseconds below which one turn may follow another one in the same turn of the event loop. */
const SHORT_MS = 0.5;
/** Milliseconds after which the event loop has probably served other requests. */
const GAP_MS = 1;
/** Milliseconds above which a step is long. */
const LONG_MS = 5;
/** Maximum milliseconds between two turns. A handler that blocks the process makes a turn longer than its body does. */
const MAX_REST_MS = 100;
/** Milliseconds for which more small requests are expected after one. Without them, most steps need no rest. */
const EXPECTED_MS = 250;
