/**
 * Limits the work for requests whose caller is not known yet, in number and in time.
 *
 * @module
 */
import type { Account, Accounts, Pot, PotName, PotOptions } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";

/** A request whose caller is not known yet. */
export interface Entering {
  /** Address of the client, if known. */
  readonly peer?: string;
  /** Account of the client, if known. */
  readonly account?: Account;
}

/** Work that takes longer than `auth.timeoutMs`. */
export const TOO_SLOW = new Error("Cannot admit a caller: it took too long");

/** Work that has not ended when the server closes. */
export const CLOSED = new Error("Cannot admit a caller: the server is closing");

/** Limits work that takes time, such as authentications, by the bounds of `auth`. */
export class AuthenticationLimits {
  readonly #core: Core;
  readonly #accounts: Accounts;
  /** The requests that wait. */
  readonly #pot: Pot;
  /** Ends each wait with an error. */
  readonly #stops = new Set<(error: Error) => void>();
  #isClosed = false;

  /** Creates limits with a pot of their own. */
  constructor(core: Core, accounts: Accounts, pot: PotOptions) {
    this.#core = core;
    this.#accounts = accounts;
    this.#pot = accounts.pot(pot);
  }

  /** Tests whether no more work may start for a request. Fast while nothing waits. */
  isFull(entry: Entering): boolean {
    return this.#pot.used > 0 && !this.#pot.makeRoom(this.#toAccount(entry), 1);
  }

  /**
   * Waits for work, up to `auth.timeoutMs`. Work that never settles must not hold its place forever.
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

  /** Ends all waits, also later ones. The timer that would end them stops with the server. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop(CLOSED);
  }

  // An unknown address has no share of its own.
  #toAccount({ account, peer }: Entering): Account {
    return account ?? this.#accounts.find(peer === undefined ? undefined : `peer ${peer}`);
  }
}

/** Returns the pot for work that the bounds of `auth` bounds. */
export function toAuthPot({ limits: { auth } }: Core, name: PotName): PotOptions {
  const { running: total, runningPerPeer: share } = auth;
  return { name, total, share, limitName: "auth.running", shareName: "auth.runningPerPeer" };
}
