/**
 * The bytes that a client is charged for one task, until the task expires.
 *
 * @module
 */
import type { WrappedCall } from "../extension.ts";

/** The bytes that are kept for one task. */
export class Charge {
  /** Dropped when the task has ended, because it would keep the call in memory. */
  #keep?: WrappedCall["keep"];
  #releases: (() => void)[] = [];

  /** Creates a charge of nothing. `keep` takes bytes of the client's share. */
  constructor(keep: WrappedCall["keep"]) {
    this.#keep = keep;
  }

  /** Adds bytes. Returns `false` if there is no room. */
  grow(bytes: number): boolean {
    const release = this.#keep?.(bytes);
    if (release) this.#releases.push(release);
    return release !== undefined;
  }

  /** Replaces everything by what is left of an ended task, if there is room for both at once. */
  finish(bytes: number): void {
    const before = this.#releases;
    this.#releases = [];
    // First, because a client that holds nothing is forgotten.
    if (this.grow(bytes)) before.forEach((release) => release());
    else this.#releases = before;
    this.#keep = undefined;
  }

  /** Gives everything back. */
  end(): void {
    for (const release of this.#releases.splice(0)) release();
  }
}

/** Estimates the bytes that a value takes in memory, where a character has two. */
export function toBytes(value: unknown): number {
  return 2 * (JSON.stringify(value)?.length ?? 0);
}
