/**
 * Counts the calls of each client across all instances.
 *
 * The store has one log per client and period. For each call, the server appends an entry to the log. The store returns
 * the number of the entry as its id, so each call requires only one store operation.
 */
import type { Call } from "../../server/call/call.ts";
import { isPrincipal } from "../../server/call/client_key.ts";
import type { SharedStore } from "../../server/call/shared_values.ts";
import type { Rate } from "./rate.ts";

interface Taken {
  /** Key of the client, which is the same on all instances. */
  readonly client: string;
  /** Time of day in milliseconds. */
  readonly now: number;
}

export class SharedRate {
  readonly #rate: Rate;
  /** Name of the rate, which is the same on all instances. */
  readonly #name: string;
  readonly #max: number;
  /**
   * The clients that this instance has counted in the store in the current period, each with whether it has no calls
   * left. The server rejects calls from a client without calls left without a store operation.
   */
  #principals = new Map<string, boolean>();
  #others = new Map<string, boolean>();
  #period = -1;

  /** `max` is the number of new logs in the store per period: `limits.rates.clients`. */
  constructor(rate: Rate, name: string, max: number) {
    this.#rate = rate;
    this.#name = name;
    this.#max = max;
  }

  /**
   * Counts a call of the client with the key `client`. Returns the milliseconds until the next period if the call
   * exceeds the rate. Returns 0 if the call is within the rate, if the store does not respond, or if the store already
   * has logs of too many clients. In the last two cases, only the rate of this instance applies. `now` is the time of day
   * in milliseconds.
   *
   * Rejects with the error for the client, code -31503, if the client has used up its share of the store. If such a call
   * ran without being counted, a client could exceed the rate by filling its share.
   */
  async count(store: SharedStore, call: Call, { client, now }: Taken): Promise<number> {
    const { calls, perMs } = this.#rate;
    const period = Math.floor(now / perMs);
    if (period !== this.#period) {
      this.#period = period;
      this.#principals = new Map();
      this.#others = new Map();
    }
    const waitMs = Math.max(1, Math.ceil((period + 1) * perMs - now));
    const counted = isPrincipal(client) ? this.#principals : this.#others;
    const isSpent = counted.get(client);
    if (isSpent) return waitMs;
    // A caller with many addresses can reach this bound, and nobody else is refused because of it: the buckets of this
    // instance limit all further addresses together to the rate of one client.
    if (isSpent === undefined && counted.size >= this.#max) return 0;
    counted.set(client, false);
    const shared = store.by(call.link.account);
    const number = await shared.attempt("append", async () => {
      const log = await shared.hashForAllPaths("rate", JSON.stringify([this.#name, client, period]));
      // Keep the log for two periods, because the clock of another instance may be slow by up to one period.
      return await shared.append(log, "", { ttlMs: 2 * perMs, max: 1 });
    });
    if (number === undefined || number <= calls) return 0;
    counted.set(client, true);
    return waitMs;
  }
}
