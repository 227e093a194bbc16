/**
 * Counts what each client uses of a small number of places, of which no client may use all.
 */

/**
 * The shares of the clients. A client is any key, or `undefined` for the only client of a process, which has no share.
 */
export class ClientShares {
  readonly #max: number;
  // Bound: the places that the owner counts.
  readonly #used = new Map<unknown, number>();

  /**
   * Of at least four places, a client may use three quarters, rounded up. Fewer places have no shares, because a server
   * with a single client would lose up to half of them.
   */
  constructor(total: number) {
    this.#max = total < 4 ? total : Math.ceil(total * 0.75);
  }

  hasRoom(client: unknown): boolean {
    return client === undefined || (this.#used.get(client) ?? 0) < this.#max;
  }

  add(client: unknown): void {
    this.#used.set(client, (this.#used.get(client) ?? 0) + 1);
  }

  remove(client: unknown): void {
    const left = (this.#used.get(client) ?? 1) - 1;
    if (left) this.#used.set(client, left);
    else this.#used.delete(client);
  }
}
