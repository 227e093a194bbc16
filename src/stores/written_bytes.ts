/**
 * Counts what clients make an instance write to a store, until it expires there.
 *
 * @module
 */
import type { Account, Accounts, Pot } from "../core/capacity/account.ts";
import type { Bounds } from "../core/capacity/limits.ts";
import { type Clock, systemClock } from "../core/capacity/timers.ts";

/** Something in a store that counts for a client. */
interface Written {
  readonly account: Account;
  readonly bytes: number;
}

/** What clients have written to a store, and has not expired. */
export class WrittenBytes {
  readonly #pot: Pot;
  readonly #clock: Clock;
  /** What expires in each minute. */
  readonly #expiring = new Map<number, Set<Written>>();

  constructor(accounts: Accounts, { replay }: Pick<Bounds, "replay">, clock: Clock = systemClock) {
    const [total, share] = [4 * replay.bytes, replay.bytes];
    this.#pot = accounts.pot({ name: "store.bytes", total, share, limitName: "replay.bytes", small: SMALL });
    this.#clock = clock;
  }

  /**
   * Counts what is about to be written. Returns a function for when it is replaced, or `undefined` if the client has
   * written too much.
   */
  take(account: Account, value: unknown, ttlMs: number): (() => void) | undefined {
    this.#forget();
    const bytes = toSealedBytes(value);
    if (!this.#pot.take(account, bytes)) return;
    const written = { account, bytes };
    const minute = Math.ceil((this.#clock.now() + ttlMs) / MINUTE_MS);
    const expiring = this.#expiring.get(minute) ?? new Set();
    this.#expiring.set(minute, expiring.add(written));
    return () => {
      if (expiring.delete(written)) this.#pot.give(account, bytes);
    };
  }

  #forget(): void {
    const now = this.#clock.now() / MINUTE_MS;
    for (const [minute, expired] of this.#expiring) {
      if (minute > now) continue;
      this.#expiring.delete(minute);
      for (const written of expired) {
        this.#pot.give(written.account, written.bytes);
        // It may be replaced later.
        expired.delete(written);
      }
    }
  }
}

const MINUTE_MS = 60_000;

/** Bytes with which a client may use the reserve: a few sessions. */
const SMALL = 65_536;

/** Bytes that are stored besides a value: its key, its version and the seal. */
const OVERHEAD = 256;

// Sealing makes four characters of three bytes.
function toSealedBytes(value: unknown): number {
  return OVERHEAD + Math.ceil(new TextEncoder().encode(JSON.stringify(value)).length / 3) * 4 * 2;
}
