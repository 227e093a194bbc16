/**
 * Charges a client for the entries of a log in the store.
 */
import type { Charge } from "../server/capacity/charges.ts";
import type { Clock } from "../core/timers.ts";

export interface LogChargeParts {
  readonly clock: Clock;
  /** Milliseconds after the last entry at which the log expires. */
  readonly ttlMs: number;
  readonly max: number;
  /** Charges bytes. Returns `undefined` if there is no room. */
  readonly keep: (bytes: number) => Charge | undefined;
}

interface ChargedEntry {
  readonly id: number;
  readonly bytes: number;
  /** Time at which the entry was appended. */
  readonly at: number;
}

/**
 * The charge for a log that only one process writes. Each entry is charged until it was dropped or trimmed, or until the
 * log has expired, because every entry lets the whole log live longer.
 */
export class LogCharge {
  readonly #parts: LogChargeParts;
  #charge?: Charge;
  /** Time at which the log expires. */
  #until = -Infinity;
  /** The entries in the log, oldest first. */
  // Bound: `store.bytes`.
  #entries: ChargedEntry[] = [];
  /** Bytes that may be in the log, but that do not belong to an entry yet. */
  #added = 0;

  constructor(parts: LogChargeParts) {
    this.#parts = parts;
  }

  /** Whether the log may exist. */
  get isOpen(): boolean {
    return this.#parts.clock.now() < this.#until;
  }

  /** Charges the bytes of an entry that is about to be appended. Returns `false` if there is no room. */
  add(bytes: number): boolean {
    if (!this.isOpen) this.#reset();
    const hasRoom = this.#charge ? this.#charge.grow(bytes) : !!(this.#charge = this.#parts.keep(bytes));
    if (!hasRoom) return false;
    this.#added += bytes;
    this.#renew();
    return true;
  }

  /**
   * Counts an entry that has been appended, and releases the entries that the log has dropped. If an earlier write has
   * failed, its bytes may be in the log too, so they are released together with this entry. Returns the id before which
   * the log should be trimmed, or `undefined`. Call `release` when the log was trimmed.
   */
  countAppended(id: number): number | undefined {
    const { clock, ttlMs, max } = this.#parts;
    const now = clock.now();
    this.#entries.push({ id, bytes: this.#added, at: now });
    this.#added = 0;
    this.release(id - max + 1);
    this.#renew();
    // Trim many entries at once, because trimming costs an operation.
    if (this.#entries[0].at > now - 2 * ttlMs) return;
    return this.#entries.find(({ at }) => at > now - ttlMs)?.id;
  }

  /** Releases the entries whose id is lower than `before`. */
  release(before: number): void {
    if (!this.#entries.length || this.#entries[0].id >= before) return;
    const kept = this.#entries.filter(({ id }) => id >= before);
    this.#entries = kept;
    this.#charge?.resize(kept.reduce((sum, { bytes }) => sum + bytes, this.#added));
  }

  #reset(): void {
    this.#charge?.end();
    this.#charge = undefined;
    this.#entries = [];
    this.#added = 0;
  }

  #renew(): void {
    const { clock, ttlMs } = this.#parts;
    this.#charge?.expireIn(ttlMs);
    this.#until = clock.now() + ttlMs;
  }
}
