/**
 * Ids of recently used sessions whose state is not in memory.
 *
 * @module
 */

/** An id counts as recent for this many milliseconds after its last use. */
const RECENT_MS = 60_000;
/** Maximum number of ids that are kept per client. */
const PER_CLIENT = 1024;
/** Maximum number of ids that are kept for all clients together. */
const TOTAL = 16_384;

/** Recent ids, grouped by client. */
export class RecentIds {
  /**
   * Maps each client to a map from its ids to the time of their last use. The first client is the client that has not
   * added an id for the longest time. The first id of a client is its oldest id.
   */
  readonly #clients = new Map<string, Map<string, number>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an id. `now` is the time at which the id was used, on the monotonic clock. */
  add(client: string, id: string, now: number): void {
    const ids = this.#clients.get(client) ?? new Map<string, number>();
    this.#clients.delete(client);
    this.#clients.set(client, ids);
    if (!ids.delete(id)) this.#size++;
    ids.set(id, now);
    this.#dropOld(client, ids, now);
    if (ids.size > PER_CLIENT) this.#dropOldest(client, ids);
    if (this.#size > TOTAL) this.#makeRoom();
  }

  // Drop an id of the client with the most ids. If the oldest id of all clients were dropped, a client with many ids
  // could evict the ids of other clients.
  #makeRoom(): void {
    let fullest: readonly [client: string, ids: Map<string, number>] | undefined;
    for (const each of this.#clients) if (each[1].size > (fullest?.[1].size ?? 0)) fullest = each;
    if (fullest) this.#dropOldest(...fullest);
  }

  delete(client: string, id: string): void {
    const ids = this.#clients.get(client);
    if (!ids?.delete(id)) return;
    this.#size--;
    if (!ids.size) this.#clients.delete(client);
  }

  /** Returns whether the id was used recently. `now` is a time on the monotonic clock. */
  has(client: string, id: string, now: number): boolean {
    const used = this.#clients.get(client)?.get(id);
    return used !== undefined && now - used <= RECENT_MS;
  }

  /** Drops ids that are no longer recent. */
  sweep(now: number): void {
    for (const [client, ids] of this.#clients) this.#dropOld(client, ids, now);
  }

  #dropOld(client: string, ids: Map<string, number>, now: number): void {
    for (const used of ids.values()) {
      if (now - used <= RECENT_MS) return;
      this.#dropOldest(client, ids);
    }
  }

  #dropOldest(client: string, ids: Map<string, number>): void {
    for (const id of ids.keys()) return this.delete(client, id);
  }
}
