/**
 * Keeps the ends of sessions that the store has not confirmed, and retries until the store confirms them.
 */
import type { Account, Pot } from "../server/capacity/account.ts";
import { type Charge, type Charging, keep } from "../server/capacity/charges.ts";
import { Repeated } from "./repeated.ts";

/** The end of a session, and the state of writing it to the store. */
interface PendingEnd {
  readonly charge: Charge;
  /** Writes the end to the store. Resolves to `false` if the store did not confirm the write. */
  readonly write: () => Promise<boolean>;
  /** The attempt in progress. */
  writing?: Promise<boolean>;
  /** Whether the client was already told that the end is pending. */
  isLate?: boolean;
  /** Whether the store has confirmed the end. */
  isWritten?: boolean;
}

/** A session that is about to end. */
interface Ending extends Pick<PendingEnd, "write"> {
  readonly account: Account;
  readonly pot: Pot;
}

/**
 * Milliseconds for which an end is kept if the store confirmed it only after the client's request. A client that
 * retries the request within this time gets a confirmation.
 */
const KEPT_MS = 60_000;

export class UnwrittenEnds {
  // Bound: `sessions.ending`.
  readonly #ends = new Map<string, PendingEnd>();
  readonly #server: Charging;
  readonly #attempts: Repeated;

  constructor(server: Charging) {
    this.#server = server;
    this.#attempts = new Repeated(server.ticker.clock, () => this.#writeAll());
  }

  /**
   * Returns `"waiting"` if the end of the session is pending, or `"ended"` if the store confirmed the end only after
   * the client's request. Returns `undefined` for all other sessions.
   */
  find(key: string): "ended" | "waiting" | undefined {
    const end = this.#ends.get(key);
    return end && (end.isWritten ? "ended" : "waiting");
  }

  /** Reserves a place for an end. Returns `false` if too many ends of this client, or of all clients, are pending. */
  reserve(key: string, { account, pot, write }: Ending): boolean {
    if (this.#ends.has(key)) return true;
    // Make room by dropping the client's ends that the store has confirmed, because the client may never retry their
    // requests.
    if (!pot.hasShare(account)) this.#findWritten(account)?.charge.expire();
    const drop = () => this.find(key) === "ended" && this.#ends.delete(key);
    const charge = keep(this.#server, account, [[pot, 1]], { drop });
    return !!charge && !!this.#ends.set(key, { charge, write });
  }

  /**
   * Writes the end for which a place was reserved. If the store does not confirm the end, resolves to `false`, and the
   * end stays pending.
   */
  async write(key: string): Promise<boolean> {
    const end = this.#ends.get(key);
    if (!end || end.isWritten) return true;
    const isWritten = await this.#attempt(key, end);
    if (!isWritten) this.#attempts.later();
    return isWritten;
  }

  /** Tries once more to write each pending end. Returns the number of ends that could not be written. */
  async close(): Promise<number> {
    await this.#attempts.close();
    await this.#writeAll();
    return [...this.#ends.values()].filter(({ isWritten }) => !isWritten).length;
  }

  async #attempt(key: string, end: PendingEnd): Promise<boolean> {
    const isWritten = await (end.writing ??= end.write());
    end.writing = undefined;
    if (!isWritten) {
      end.isLate = true;
    } else if (!end.isLate) {
      // Drop the end, because its request succeeds and needs no retry.
      this.#ends.delete(key);
      end.charge.end();
    } else if (!end.isWritten) {
      // Keep a late end for the client's retry.
      end.isWritten = true;
      end.charge.expireIn(KEPT_MS);
    }
    return isWritten;
  }

  // Writes one end after another. Stops at the first failure, because the remaining ends would probably fail too.
  async #writeAll(): Promise<boolean> {
    for (const [key, end] of this.#ends) {
      if (!end.isWritten && !await this.#attempt(key, end)) return false;
    }
    return true;
  }

  #findWritten(account: Account): PendingEnd | undefined {
    return [...this.#ends.values()].find(({ charge, isWritten }) => isWritten && charge.account.key === account.key);
  }
}
