/**
 * Counts the memory of one task against the client's share, until the task expires.
 *
 * @module
 */
import type { WrappedCall } from "../extension.ts";

/** The bytes that count against the client's share of memory because of one task. */
export class Charge {
  /**
   * Reserves bytes of the client's share. Cleared when the task has ended, because the function keeps the call in
   * memory.
   */
  #keep?: WrappedCall["keep"];
  #releases: (() => void)[] = [];

  /** Creates an empty charge. `keep` reserves bytes of the client's share. */
  constructor(keep: WrappedCall["keep"]) {
    this.#keep = keep;
  }

  /** Reserves more bytes. Returns `false` without reserving bytes if a limit would be exceeded. */
  grow(bytes: number): boolean {
    const release = this.#keep?.(bytes);
    if (release) this.#releases.push(release);
    return release !== undefined;
  }

  /**
   * Replaces the reserved bytes with `bytes`, the size of the ended task. For a moment, the old and the new bytes are
   * both reserved. If their sum would exceed a limit, the charge stays unchanged.
   */
  finish(bytes: number): void {
    const before = this.#releases;
    this.#releases = [];
    // Reserve the new bytes before releasing the old bytes, because the server forgets a client that has no reserved
    // bytes.
    if (this.grow(bytes)) before.forEach((release) => release());
    else this.#releases = before;
    this.#keep = undefined;
  }

  /** Releases all reserved bytes. */
  end(): void {
    for (const release of this.#releases.splice(0)) release();
  }
}

/** Estimates the size of a value in memory, as two bytes per character of its JSON. */
export function toBytes(value: unknown): number {
  return 2 * (JSON.stringify(value)?.length ?? 0);
}
