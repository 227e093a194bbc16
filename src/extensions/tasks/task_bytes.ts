/**
 * The bytes of one task, which count against the share of its client.
 */
import type { KeptBytes } from "../extension.ts";

/** Counts bytes against a client's share. Returns `undefined` if there is no room. */
export type Keep = (bytes: number) => KeptBytes | undefined;

export class TaskBytes {
  /** Counts bytes against the client's share. Set when the call becomes a task. */
  keep?: Keep;
  readonly #toTtl: () => number;
  #kept?: KeptBytes;
  #record = 0;
  #values = 0;
  /** Bytes that the task may store: the bytes in `#kept`, and the bytes with which the task was resumed. */
  #allowed = 0;

  /** `toTtl` returns the milliseconds after which the record expires. */
  constructor(toTtl: () => number) {
    this.#toTtl = toTtl;
  }

  /** Bytes of the values in the journal. */
  get values(): number {
    return this.#values;
  }

  /** Counts bytes that are about to be written. Returns `false` if there is no room, and then counts nothing. */
  reserve({ record = this.#record, values = this.#values }: Counted): boolean {
    const more = record + values - this.#allowed;
    if (this.keep && more > 0) {
      if (!(this.#kept ? this.#kept.grow(more) : this.#begin(this.keep(more)))) return false;
      this.#allowed += more;
    }
    this.#record = record;
    this.#values = values;
    return true;
  }

  /** Counts bytes that are already in the store, even if there is no room. */
  accept({ record, values = this.#values }: Counted & { readonly record: number }): void {
    if (this.reserve({ record, values })) return;
    this.#record = record;
    this.#values = values;
    this.#allowed = record + values;
  }

  /**
   * Counts the bytes of the ended task's record, which no longer contains parameters, questions, answers and values. If
   * there is little room left, keeps the old bytes, so that the client's next task is refused when it begins, instead
   * of failing for lack of room for its result.
   */
  acceptEnded(record: number): void {
    if (this.#kept?.grow(record)) this.#kept.resize(record);
    // The store keeps a record that is written after the time to live longer.
    this.#kept?.expireIn(this.#toTtl());
  }

  end(): void {
    this.#kept?.end();
  }

  #begin(kept: KeptBytes | undefined): boolean {
    kept?.expireIn(this.#toTtl());
    this.#kept = kept;
    return kept !== undefined;
  }
}

/** Bytes of a task. Members that are missing stay unchanged. */
interface Counted {
  readonly record?: number;
  readonly values?: number;
}
