/**
 * Counts the bytes that this process keeps for the idempotency keys of clients, until the keys expire.
 *
 * @module
 */
import type { Account, Pot } from "../core/capacity/account.ts";
import type { Bounds } from "../core/capacity/limits.ts";

/** The bytes that are kept for one key. */
export interface KeptBytes {
  /** Reserves more bytes, for the text of a result. Returns `false` if a limit is exceeded. */
  grow(text: string): boolean;
  /** Sets the time at which the bytes are released, in milliseconds of the monotonic clock. */
  expireAt(time: number): void;
  /** Releases the bytes. */
  end(): void;
}

/** The bytes that are kept for all keys. */
export class KeptKeys {
  /** The keys with an expiry, and the time at which each key expires. */
  readonly #expiring = new Map<KeptBytes, number>();

  /** Reserves the bytes of a key. Returns `undefined` if a limit is exceeded. */
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

  /** Releases the bytes of expired keys. Returns whether keys remain that have not expired yet. */
  sweep(now: number): boolean {
    for (const [kept, time] of this.#expiring) if (time <= now) kept.end();
    return this.#expiring.size > 0;
  }
}

/**
 * The bytes that one key takes from the limit for keys and, if the server has no store, from the memory limit of the
 * client.
 */
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

/** Bytes that a key needs in addition to its result, for its record and its map entries. */
const KEY_BYTES = 512;

/** Clients that hold more bytes than this cannot use the reserve. The amount suffices for a few keys. */
const SMALL = 65_536;
