/**
 * Counts the bytes that this process keeps for the idempotency keys of clients, until they expire.
 *
 * @module
 */
import type { Account, Pot } from "../core/capacity/account.ts";
import type { Bounds } from "../core/capacity/limits.ts";

/** What is kept for one key. */
export interface KeptBytes {
  /** Takes more for a result. Returns `false` if there is no room. */
  grow(text: string): boolean;
  /** Gives it back at a time of the monotonic clock. */
  expireAt(time: number): void;
  /** Gives it back. */
  end(): void;
}

/** Everything that is kept for keys. */
export class KeptKeys {
  /** What expires, and when. */
  readonly #expiring = new Map<KeptBytes, number>();

  /** Takes room for a key. Returns `undefined` if there is none. */
  take(account: Account, { idempotency }: Bounds, isInMemory: boolean): KeptBytes | undefined {
    const total = idempotency.bytes;
    const pot = account.pot({ name: "idempotency.bytes", total, share: Math.ceil(total / 4), small: SMALL });
    const room = new Kept(account, pot, isInMemory);
    if (!room.take(KEY_BYTES)) return;
    const kept: KeptBytes = {
      grow: (text) => room.take(2 * text.length),
      expireAt: (time) => void this.#expiring.set(kept, time),
      end: () => {
        this.#expiring.delete(kept);
        room.end();
      },
    };
    return kept;
  }

  /** Gives back what has expired. Returns whether anything is left that will. */
  sweep(now: number): boolean {
    for (const [kept, time] of this.#expiring) if (time <= now) kept.end();
    return this.#expiring.size > 0;
  }
}

/** What one key takes of the pot, and of the memory of the process. */
class Kept {
  readonly #account: Account;
  readonly #pot: Pot;
  readonly #isInMemory: boolean;
  #bytes = 0;

  constructor(account: Account, pot: Pot, isInMemory: boolean) {
    this.#account = account;
    this.#pot = pot;
    this.#isInMemory = isInMemory;
  }

  take(bytes: number): boolean {
    if (!this.#pot.take(this.#account, bytes)) return false;
    if (this.#isInMemory && !this.#account.hold(bytes)) {
      this.#pot.give(this.#account, bytes);
      return false;
    }
    this.#bytes += bytes;
    return true;
  }

  end(): void {
    if (!this.#bytes) return;
    this.#pot.give(this.#account, this.#bytes);
    if (this.#isInMemory) this.#account.free(this.#bytes);
    this.#bytes = 0;
  }
}

/** Bytes that a key takes beside its result: its record, and its place among others. */
const KEY_BYTES = 512;

/** Bytes with which a client may use the reserve: a few keys. */
const SMALL = 65_536;
