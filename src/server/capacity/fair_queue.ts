/**
 * A round-robin queue, in which each client gets its turn.
 */

/**
 * `dequeue` returns the oldest item of the client whose last turn was longest ago, among the clients that are ready.
 */
export class FairQueue<T> {
  // Bound: the owner counts what waits.
  readonly #items = new Map<unknown, Set<T>>();

  get isEmpty(): boolean {
    return !this.#items.size;
  }

  /** Returns the number of items of a client. */
  count(client: unknown): number {
    return this.#items.get(client)?.size ?? 0;
  }

  /** Adds an item behind the client's other items. */
  add(client: unknown, item: T): void {
    const own = this.#items.get(client);
    if (own) own.add(item);
    else this.#items.set(client, new Set([item]));
  }

  /** Does nothing if the item is not in the queue. */
  delete(client: unknown, item: T): void {
    const own = this.#items.get(client);
    if (own?.delete(item) && !own.size) this.#items.delete(client);
  }

  /** Skips each client whose oldest item is not ready. Returns `undefined` if no item is left or ready. */
  dequeue(isReady?: (item: T) => boolean): T | undefined {
    for (const [client, own] of this.#items) {
      const [first] = own;
      if (isReady && !isReady(first)) continue;
      own.delete(first);
      this.#items.delete(client);
      if (own.size) this.#items.set(client, own);
      return first;
    }
  }
}
