/**
 * Counts what clients have in progress, with a share for each client and a reserve for those who have little.
 *
 * @module
 */

/** The bounds of a count. */
export interface ShareLimits {
  /** Maximum for one client. */
  readonly perClient: number;
  /** Maximum for all clients. The last quarter is for clients that have less than an eighth of their share. */
  readonly total: number;
}

/** Counts of clients. */
export class ClientShares {
  readonly #limits: ShareLimits;
  readonly #counts = new Map<string, number>();
  #total = 0;

  /** Creates empty counts. */
  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** Adds one for a client and returns `true`. Returns `false` at a limit. */
  take(client: string): boolean {
    const { perClient, total } = this.#limits;
    const count = this.#counts.get(client) ?? 0;
    const isSmall = count < perClient / 8;
    if (count >= perClient || this.#total >= (isSmall ? total : total * 3 / 4)) return false;
    this.#counts.set(client, count + 1);
    this.#total++;
    return true;
  }

  /** Subtracts one for a client. */
  give(client: string): void {
    const count = this.#counts.get(client);
    if (count === undefined) return;
    this.#total--;
    if (count > 1) this.#counts.set(client, count - 1);
    else this.#counts.delete(client);
  }

  /** Subtracts everything. */
  clear(): void {
    this.#counts.clear();
    this.#total = 0;
  }
}
