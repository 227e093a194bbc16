/**
 * Counts the bytes that clients make an instance write to a store, until they expire there.
 *
 * @module
 */
import type { Account, Accounts, Pot } from "../core/capacity/account.ts";
import type { Bounds } from "../core/capacity/limits.ts";
import { type Clock, systemClock } from "../core/capacity/timers.ts";

/** Bytes in a store that are charged to a client. */
interface Written {
  readonly account: Account;
  readonly bytes: number;
}

/** The bytes that clients have written to a store, and that have not expired. */
export class WrittenBytes {
  readonly #pot: Pot;
  readonly #clock: Clock;
  /** The written bytes, by the minute in which they expire. */
  readonly #expiring = new Map<number, Set<Written>>();

  constructor(accounts: Accounts, { replay }: Pick<Bounds, "replay">, clock: Clock = systemClock) {
    const [total, share] = [4 * replay.bytes, replay.bytes];
    this.#pot = accounts.pot({ name: "store.bytes", total, share, limitName: "replay.bytes", small: SMALL });
    this.#clock = clock;
  }

  /**
   * Counts a value that is about to be written. Returns a function to call when the value is replaced, or `undefined`
   * if the client has written too much.
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
        // Remove the charge, so that replacing the value later does not subtract its bytes again.
        expired.delete(written);
      }
    }
  }
}

const MINUTE_MS = 60_000;

/** Bytes that a client may take from the reserve: enough for a few sessions. */
const SMALL = 65_536;

/** Bytes that are stored besides a value: its key, its version and its seal. */
const OVERHEAD = 256;

// Sealing turns three bytes into four characters.
function toSealedBytes(value: unknown): number {
  return OVERHEAD + Math.ceil(new TextEncoder().encode(JSON.stringify(value)).length / 3) * 4 * 2;
}
