/**
 * A queue in which clients take turns.
 *
 * @module
 */

/** Waiting items, by client. The client whose last turn is longest ago comes first, with its oldest item. */
export class FairQueue<T> {
  readonly #items = new Map<unknown, Set<T>>();

  /** Whether no item waits. */
  get isEmpty(): boolean {
    return !this.#items.size;
  }

  /** Adds an item. */
  add(client: unknown, item: T): void {
    const own = this.#items.get(client);
    if (own) own.add(item);
    else this.#items.set(client, new Set([item]));
  }

  /** Removes an item that no longer waits. */
  delete(client: unknown, item: T): void {
    const own = this.#items.get(client);
    if (own?.delete(item) && !own.size) this.#items.delete(client);
  }

  /** Removes and returns the first item. */
  take(): T | undefined {
    for (const [client, own] of this.#items) {
      const [first] = own;
      own.delete(first);
      this.#items.delete(client);
      if (own.size) this.#items.set(client, own);
      return first;
    }
  }
}
