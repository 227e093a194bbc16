/**
 * The bytes that a client is charged for one task, until the task expires.
 *
 * @module
 */
import type { WrappedCall } from "../extension.ts";

/** The bytes that a client is charged for one task. */
export class Charge {
  /**
   * Takes bytes of the client's share. The field is removed when the task has ended, because the function would keep
   * the call in memory.
   */
  #keep?: WrappedCall["keep"];
  #releases: (() => void)[] = [];

  /** Creates an empty charge. `keep` takes bytes of the client's share. */
  constructor(keep: WrappedCall["keep"]) {
    this.#keep = keep;
  }

  /** Charges more bytes. Returns `false` if a limit is exceeded. */
  grow(bytes: number): boolean {
    const release = this.#keep?.(bytes);
    if (release) this.#releases.push(release);
    return release !== undefined;
  }

  /**
   * Replaces the charge with the bytes of the ended task. The charge stays as it is if the limit has no room for both
   * at once.
   */
  finish(bytes: number): void {
    const before = this.#releases;
    this.#releases = [];
    // Charge the new bytes before releasing the old bytes, because a client without any charge is forgotten.
    if (this.grow(bytes)) before.forEach((release) => release());
    else this.#releases = before;
    this.#keep = undefined;
  }

  /** Releases all bytes. */
  end(): void {
    for (const release of this.#releases.splice(0)) release();
  }
}

/** Estimates the bytes that a value takes in memory, with two bytes for each character of its JSON. */
export function toBytes(value: unknown): number {
  return 2 * (JSON.stringify(value)?.length ?? 0);
}
