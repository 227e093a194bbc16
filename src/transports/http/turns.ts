/**
 * Lets large requests in one at a time, so that small ones are served between them.
 *
 * @module
 */

import { FairQueue } from "../../core/fair_queue.ts";
import { bun, deno } from "../../runtime.ts";

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn begins, or when it is given up. The turn ends by itself with the turn of the event loop. */
  readonly begun: Promise<void>;
  /** Gives up a turn that has not begun. */
  readonly leave: () => void;
}

/** The turns of large requests. */
export class Turns {
  readonly #waiting = new FairQueue<() => void>();
  #isTaken = false;

  /** Waits for a turn. Clients take turns. */
  take(client: unknown): Turn {
    const { promise, resolve } = Promise.withResolvers<void>();
    // On Workers, a timer ends with its request, and no request can wait for another one.
    if (!deno && !bun) resolve();
    else if (!this.#isTaken) this.#begin(resolve);
    else return this.#wait(client, promise, resolve);
    return { begun: promise, leave: () => {} };
  }

  #wait(client: unknown, begun: Promise<void>, resolve: () => void): Turn {
    this.#waiting.add(client, resolve);
    const leave = () => {
      this.#waiting.delete(client, resolve);
      resolve();
    };
    return { begun, leave };
  }

  #begin(resolve: () => void): void {
    this.#isTaken = true;
    const since = performance.now();
    setTimeout(() => {
      // A small request needs several turns of the event loop: it arrives, its body is read, and it is answered.
      const took = performance.now() - since;
      if (took > LONG_MS && !this.#waiting.isEmpty) setTimeout(() => this.#next(), Math.min(took / 2, MAX_REST_MS));
      else this.#next();
    });
    resolve();
  }

  #next(): void {
    this.#isTaken = false;
    const next = this.#waiting.take();
    if (next) this.#begin(next);
  }
}

/** Milliseconds above which a turn is long. */
const LONG_MS = 5;
/** Maximum milliseconds between two turns. A handler that blocks the process makes a turn longer than its body does. */
const MAX_REST_MS = 100;
