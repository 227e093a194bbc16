/**
 * Lets large requests in one at a time, so that small ones are served between them.
 *
 * @module
 */

/** Ends a wait. */
type Begin = () => void;

/** The turns of large requests. A turn ends by itself with the turn of the event loop. */
export class Turns {
  /** Waiting requests by client, the oldest first. The client that has waited for longest is first. */
  readonly #waiting = new Map<unknown, Begin[]>();
  #isTaken = false;

  /** Waits for a turn. Clients take turns. */
  async take(client: unknown): Promise<void> {
    if (!this.#isTaken) return this.#begin();
    const { promise, resolve } = Promise.withResolvers<void>();
    const own = this.#waiting.get(client);
    if (own) own.push(resolve);
    else this.#waiting.set(client, [resolve]);
    await promise;
  }

  #begin(): void {
    this.#isTaken = true;
    const since = performance.now();
    setTimeout(() => {
      // A small request needs several turns of the event loop: it arrives, its body is read, and it is answered.
      const took = performance.now() - since;
      if (took > LONG_MS && this.#waiting.size) setTimeout(() => this.#next(), took / 2);
      else this.#next();
    });
  }

  #next(): void {
    this.#isTaken = false;
    const [first] = this.#waiting;
    if (!first) return;
    const [client, own] = first;
    const [begin, ...rest] = own;
    this.#waiting.delete(client);
    if (rest.length) this.#waiting.set(client, rest);
    this.#begin();
    begin();
  }
}

/** Milliseconds above which a turn is long. */
const LONG_MS = 5;
