/**
 * The ledger of a server: amounts that are charged to clients until they are released or expire.
 */
import type { Account, Drop, Holding, Pot } from "./account.ts";
import type { ServerState } from "./server_state.ts";
import type { Sweep, Ticker } from "../../core/timers.ts";

export type Amounts = readonly (readonly [pot: Pot, amount: number])[];

export interface ChargeOptions {
  /** Milliseconds after which the charge expires. By default, the charge never expires. */
  readonly ttlMs?: number;
  /**
   * Releases the resource of a charge that has expired, or that is evicted to make room for other clients. Returns
   * `false` if the resource is in use. Without this function, the charge cannot be evicted.
   */
  readonly drop?: Drop;
}

/** The server whose clients are charged. All paths of a server share one ledger. */
export interface Charging {
  readonly state: ServerState;
  readonly ticker: Ticker;
}

export function keep(
  { state, ticker }: Charging,
  account: Account,
  amounts: Amounts,
  options?: ChargeOptions,
): Charge | undefined {
  return state.slot(Charges, () => new Charges(ticker)).keep(account, amounts, options);
}

export class Charges {
  readonly #ticker: Ticker;
  /** The charges that expire, keyed by the time at which they expire, in milliseconds of the monotonic clock. */
  // Bound: the pots of the charges.
  readonly #expiring = new Map<number, Set<Charge>>();
  readonly #sweep: Sweep = (now) => {
    let next = Infinity;
    for (const [due, charges] of this.#expiring) {
      if (due > now) {
        next = Math.min(next, due - now);
        continue;
      }
      this.#expiring.delete(due);
      for (const charge of charges) charge.expire();
    }
    return next === Infinity ? undefined : next;
  };

  constructor(ticker: Ticker) {
    this.#ticker = ticker;
  }

  /**
   * Charges an amount of each pot to a client. Returns `undefined` without a charge if one of the pots has no room.
   */
  keep(account: Account, amounts: Amounts, { ttlMs, drop }: ChargeOptions = {}): Charge | undefined {
    const holdings: Holding[] = [];
    const charge = new Charge(this, holdings, drop);
    const lose = drop && (() => charge.lose());
    for (const [pot, amount] of amounts) {
      const holding = pot.keep(account, amount, lose);
      if (!holding) return void holdings.forEach((holding) => holding.end());
      holdings.push(holding);
    }
    if (ttlMs !== undefined) charge.expireIn(ttlMs);
    return charge;
  }

  /** Returns the charges that expire at the same time. */
  expireIn(ttlMs: number, charge: Charge): Set<Charge> {
    const now = this.#ticker.clock.now();
    // Round the time up, so that the ledger contains few different times.
    const step = ttlMs > MINUTE_MS ? MINUTE_MS : SECOND_MS;
    const due = Math.ceil((now + ttlMs) / step) * step;
    const charges = this.#expiring.get(due) ?? new Set();
    this.#expiring.set(due, charges.add(charge));
    this.#ticker.schedule(this.#sweep, due - now);
    return charges;
  }
}

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;

/** Amounts of one or more pots that are charged to a client. */
export class Charge {
  readonly #charges: Charges;
  readonly #holdings: readonly Holding[];
  readonly #drop?: Drop;
  /** The charges that expire at the same time. */
  #expiring?: Set<Charge>;

  /** Called only by {@linkcode Charges.keep}. */
  constructor(charges: Charges, holdings: readonly Holding[], drop?: Drop) {
    this.#charges = charges;
    this.#holdings = holdings;
    this.#drop = drop;
  }

  get account(): Account {
    return this.#holdings[0].account;
  }

  /** Returns `false` without a change if one of the pots has no room. */
  grow(amount: number): boolean {
    for (const [at, holding] of this.#holdings.entries()) {
      if (holding.grow(amount)) continue;
      for (const grown of this.#holdings.slice(0, at)) grown.add(-amount);
      return false;
    }
    return true;
  }

  /** Returns `false` without a change if one of the pots has no room. */
  resize(amount: number): boolean {
    const more = amount - this.#holdings[0].amount;
    if (more > 0) return this.grow(more);
    for (const holding of this.#holdings) holding.add(more);
    return true;
  }

  /**
   * Lets the charge expire after `ttlMs` milliseconds, rounded up to a whole second, or to a whole minute if `ttlMs` is
   * longer than a minute. Replaces an earlier expiry.
   */
  expireIn(ttlMs: number): void {
    this.#expiring?.delete(this);
    this.#expiring = this.#charges.expireIn(ttlMs, this);
  }

  /** Marks the amounts as used by the client with `account`. */
  use(account: Account): void {
    for (const holding of this.#holdings) holding.use(account);
  }

  expire(): void {
    this.#drop?.();
    this.end();
  }

  /** Called because one of the pots needs the room. Returns `false` if the resource is in use. */
  lose(): boolean {
    if (!this.#drop?.()) return false;
    this.end();
    return true;
  }

  /** Does nothing if they have already been released. */
  end(): void {
    this.#expiring?.delete(this);
    for (const holding of this.#holdings) holding.end();
    this.account.signalRoom();
  }
}
