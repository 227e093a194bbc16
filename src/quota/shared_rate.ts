/**
 * Counts the calls of a client on all instances together.
 *
 * Each call appends to a log of the present period. The id that the store returns is the number of the call, so that a
 * call takes one operation.
 *
 * @module
 */
import type { SharedLogs } from "../core/call/shared_values.ts";
import type { Rate } from "./rate.ts";

/** The calls of all clients in one rate, on all instances. */
export class SharedRate {
  readonly #rate: Rate;
  /** Name of the rate, which all instances give it. */
  readonly #name: string;
  /** The clients that have no calls left in a period, so that refusing them costs the store nothing. */
  #spent = new Set<string>();
  #period = -1;

  /** Creates the counts of one rate. */
  constructor(rate: Rate, name: string) {
    this.#rate = rate;
    this.#name = name;
  }

  /**
   * Counts a call. Returns the milliseconds until the next period if it is one too many, and 0 otherwise, also if the
   * store does not answer. `now` is the time of day.
   */
  async take(shared: SharedLogs, client: string, now: number): Promise<number> {
    const { calls, perMs } = this.#rate;
    const period = Math.floor(now / perMs);
    if (period !== this.#period) {
      this.#period = period;
      this.#spent = new Set();
    }
    const waitMs = Math.max(1, Math.ceil((period + 1) * perMs - now));
    if (this.#spent.has(client)) return waitMs;
    const number = await shared.attempt("append", async () => {
      const log = await shared.hash("rate", JSON.stringify([this.#name, client, period]));
      // Another instance may be late by as much as a period.
      return await shared.append(log, "", { ttlMs: 2 * perMs, max: 1 });
    });
    if (number === undefined || number <= calls) return 0;
    if (this.#spent.size < MAX_SPENT) this.#spent.add(client);
    return waitMs;
  }
}

/** Clients that are remembered. Beyond it, refusing one costs an operation. */
const MAX_SPENT = 10_000;
