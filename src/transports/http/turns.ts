/**
 * Lets large requests in one at a time, so that small ones are served between them.
 *
 * @module
 */

/** A place in the queue. */
export interface Turn {
  /** Settles when the turn begins, or when it is given up. The turn ends by itself with the turn of the event loop. */
  readonly begun: Promise<void>;
  /** Gives up a turn that has not begun. */
  readonly leave: () => void;
}

/** The turns of large requests. */
export class Turns {
  /** Waiting requests by client, the oldest first. The client that has waited for longest is first. */
  readonly #waiting = new Map<unknown, Set<() => void>>();
  #isTaken = false;

  /** Waits for a turn. Clients take turns. */
  take(client: unknown): Turn {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (!this.#isTaken) {
      this.#begin(resolve);
      return { begun: promise, leave: () => {} };
    }
    const own = this.#waiting.get(client) ?? new Set();
    this.#waiting.set(client, own.add(resolve));
    const leave = () => {
      if (own.delete(resolve) && !own.size) this.#waiting.delete(client);
      resolve();
    };
    return { begun: promise, leave };
  }

  #begin(resolve: () => void): void {
    this.#isTaken = true;
    const since = performance.now();
    setTimeout(() => {
      // A small request needs several turns of the event loop: it arrives, its body is read, and it is answered.
      const took = performance.now() - since;
      if (took > LONG_MS && this.#waiting.size) setTimeout(() => this.#next(), took / 2);
      else this.#next();
    });
    resolve();
  }

  #next(): void {
    this.#isTaken = false;
    for (const [client, own] of this.#waiting) {
      const [first] = own;
      own.delete(first);
      // The next turn belongs to another client, if one waits.
      this.#waiting.delete(client);
      if (own.size) this.#waiting.set(client, own);
      return this.#begin(first);
    }
  }
}

/** Milliseconds above which a turn is long. */
const LONG_MS = 5;
