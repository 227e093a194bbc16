/**
 * Limits the number and the time of checks for requests whose caller is not yet known.
 *
 * @module
 */
import type { Account, Accounts, Pot, PotName, PotOptions } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";

/** A request whose caller is not yet known. */
export interface Entering {
  /** Address of the client, if known. */
  readonly peer?: string;
  /** Account of the client, if known. */
  readonly account?: Account;
}

/** The error for work that takes longer than `auth.timeoutMs`. */
export const TOO_SLOW = new Error("Cannot admit a caller: it took too long");

/** The error for work that has not ended when the server closes. */
export const CLOSED = new Error("Cannot admit a caller: the server is closing");

/** Applies the `auth` limits to asynchronous work, such as authentications. */
export class AuthenticationLimits {
  readonly #core: Core;
  readonly #accounts: Accounts;
  /** The pot of requests whose work is in progress. */
  readonly #pot: Pot;
  /** Functions that end each wait with an error. */
  readonly #stops = new Set<(error: Error) => void>();
  #isClosed = false;

  /** Creates limits with a separate pot. */
  constructor(core: Core, accounts: Accounts, pot: PotOptions) {
    this.#core = core;
    this.#accounts = accounts;
    this.#pot = accounts.pot(pot);
  }

  /** Tests whether no more work may start for a request. Fast while no work is in progress. */
  isFull(entry: Entering): boolean {
    return this.#pot.used > 0 && !this.#pot.makeRoom(this.#toAccount(entry), 1);
  }

  /**
   * Waits for work, up to `auth.timeoutMs`, because work that never settles must not hold its place forever.
   *
   * @throws {Error} `TOO_SLOW`, or `CLOSED`.
   */
  async wait<T>(work: PromiseLike<T>, entry: Entering): Promise<T> {
    const { ticker, limits: { auth: { timeoutMs } } } = this.#core;
    const account = this.#toAccount(entry);
    this.#pot.add(account);
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const timeout = ticker.startTimeout(timeoutMs, () => reject(TOO_SLOW));
    this.#stops.add(reject);
    if (this.#isClosed) reject(CLOSED);
    try {
      return await Promise.race([work, stopped]);
    } finally {
      this.#stops.delete(reject);
      ticker.cancel(timeout);
      this.#pot.give(account);
    }
  }

  /** Ends all waits, including later ones, because the timer that would end them stops with the server. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop(CLOSED);
  }

  // Only a client with a known address has a share.
  #toAccount({ account, peer }: Entering): Account {
    return account ?? this.#accounts.find(peer === undefined ? undefined : `peer ${peer}`);
  }
}

/** Returns the options of the pot for work to which the `auth` limits apply. */
export function toAuthPot({ limits: { auth } }: Core, name: PotName): PotOptions {
  const { running: total, runningPerPeer: share } = auth;
  return { name, total, share, limitName: "auth.running", shareName: "auth.runningPerPeer" };
}
