/**
 * The values and charges that belong to one server, such as the state of a quota on this server.
 *
 * @module
 */
import type { Account, Pot } from "./capacity/account.ts";
import { type Charge, type ChargeOptions, Charges } from "./capacity/charges.ts";
import type { Ticker } from "./capacity/timers.ts";

/** What belongs to one server. All paths of a server share it. */
export class ServerState {
  readonly #values = new WeakMap<object, unknown>();
  readonly #charges: Charges;

  constructor(ticker: Ticker) {
    this.#charges = new Charges(ticker);
  }

  /**
   * Returns the server's value for `key`. Calls `make` to create the value if the server has none. The value exists as
   * long as the server and the key.
   */
  slot<T extends object>(key: object, make: () => T): T {
    // The cast is safe, because each key is used for only one type of value.
    const known = this.#values.get(key) as T | undefined;
    if (known) return known;
    const value = make();
    this.#values.set(key, value);
    return value;
  }

  /** See {@linkcode Charges.keep}. */
  keep(
    account: Account,
    amounts: readonly (readonly [pot: Pot, amount: number])[],
    options?: ChargeOptions,
  ): Charge | undefined {
    return this.#charges.keep(account, amounts, options);
  }
}
