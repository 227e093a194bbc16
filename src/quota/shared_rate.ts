/**
 * Counts the calls of each client across all instances.
 *
 * The store has one log per client and period. For each call, the server appends an entry to the log. The store returns
 * the number of the entry as its id, so each call requires only one store operation.
 *
 * @module
 */
import type { Call } from "../core/call/call.ts";
import type { SharedStore } from "../core/call/shared_values.ts";
import type { Rate } from "./rate.ts";

/** A call that is about to be counted. */
interface Taken {
  /** Key of the client, which is the same on all instances. */
  readonly client: string;
  /** Time of day in milliseconds. */
  readonly now: number;
}

/** Counts the calls for one rate, per client and across all instances. */
export class SharedRate {
  readonly #rate: Rate;
  /** Name of the rate, which is the same on all instances. */
  readonly #name: string;
  /**
   * Clients that have no calls left in the current period. The server rejects calls from these clients without a store
   * operation.
   */
  #spent = new Set<string>();
  #period = -1;

  constructor(rate: Rate, name: string) {
    this.#rate = rate;
    this.#name = name;
  }

  /**
   * Counts a call of the client with the key `client`. Returns the milliseconds until the next period if the call
   * exceeds the rate. Returns 0 if the call is within the rate, or if the store does not respond. `now` is the time of
   * day in milliseconds.
   *
   * Rejects with the error for the client, code -31503, if the client has used up its share of the store. If such a call
   * ran without being counted, a client could exceed the rate by filling its share.
   */
  async take(store: SharedStore, call: Call, { client, now }: Taken): Promise<number> {
    const { calls, perMs } = this.#rate;
    const period = Math.floor(now / perMs);
    if (period !== this.#period) {
      this.#period = period;
      this.#spent = new Set();
    }
    const waitMs = Math.max(1, Math.ceil((period + 1) * perMs - now));
    if (this.#spent.has(client)) return waitMs;
    const shared = store.by(call.link.account);
    const number = await shared.attempt("append", async () => {
      const log = await shared.hash("rate", JSON.stringify([this.#name, client, period]));
      // Keep the log for two periods, because the clock of another instance may be slow by up to one period.
      return await shared.append(log, "", { ttlMs: 2 * perMs, max: 1 });
    });
    if (number === undefined || number <= calls) return 0;
    if (this.#spent.size < MAX_SPENT) this.#spent.add(client);
    return waitMs;
  }
}

/**
 * Maximum size of `#spent`. To reject a call from a client that is not in `#spent`, the server needs a store operation.
 */
const MAX_SPENT = 10_000;
