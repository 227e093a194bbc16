/**
 * Limits the number of concurrent authentications and of delayed requests, and the duration of each of them.
 */
import type { Account, Accounts, Pot, PotName, PotOptions } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";

/** The client of a request whose caller is not known yet. */
export interface Entering {
  readonly peer?: string;
  readonly account?: Account;
}

/** A pot, and the maximum duration of the work that it counts, in milliseconds. */
interface LimitedPot extends PotOptions {
  readonly timeoutMs?: number;
}

export const TOO_SLOW = new Error("Cannot authenticate a caller: the authentication took too long");

export const CLOSED = new Error("Cannot authenticate a caller: the server is closing");

/** Applies the `auth` limits to asynchronous work, such as authentications, and to delayed requests. */
export class AuthenticationLimits {
  readonly #core: Core;
  readonly #accounts: Accounts;
  readonly #pot: Pot;
  readonly #timeoutMs: number;
  // Bound: the pot, which counts each wait.
  readonly #stops = new Set<(error: Error) => void>();
  #isClosed = false;

  /** `timeoutMs` defaults to `auth.timeoutMs`. */
  constructor(core: Core, accounts: Accounts, { timeoutMs = core.limits.auth.timeoutMs, ...pot }: LimitedPot) {
    this.#core = core;
    this.#accounts = accounts;
    this.#pot = accounts.pot(pot);
    this.#timeoutMs = timeoutMs;
  }

  isFull(entry: Entering): boolean {
    return this.#pot.used > 0 && !this.#pot.makeRoom(this.#toAccount(entry), 1);
  }

  /**
   * Waits for `work`, at most `timeoutMs` milliseconds, because work that never settles would count towards the limits
   * forever.
   *
   * @throws {Error} `TOO_SLOW`, or `CLOSED`.
   */
  async wait<T>(work: PromiseLike<T>, entry: Entering): Promise<T> {
    const { ticker } = this.#core;
    const account = this.#toAccount(entry);
    this.#pot.add(account);
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const timeout = ticker.startTimeout(this.#timeoutMs, () => reject(TOO_SLOW));
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

  /** Ends all current waits and all future waits with an error, because the timers stop when the server closes. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop(CLOSED);
  }

  // A client without a known address has no share of its own.
  #toAccount({ account, peer }: Entering): Account {
    return account ?? this.#accounts.find(peer === undefined ? undefined : `peer ${peer}`);
  }
}

export function toAuthPot({ limits: { auth } }: Core, name: PotName): PotOptions {
  const { running: total, runningPerPeer: share } = auth;
  return { name, total, share, limitName: "auth.running", shareName: "auth.runningPerPeer" };
}

export function toDelayPot({ limits: { auth } }: Core): LimitedPot {
  const { delayed: total, delayedPerPeer: share, delayMs: timeoutMs } = auth;
  return { name: "auth.delayed", total, share, shareName: "auth.delayedPerPeer", timeoutMs };
}
