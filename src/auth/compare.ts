/**
 * Compares credentials in a time that does not depend on them.
 *
 * @module
 */

/** A known credential and what it stands for. */
export interface Known<T> {
  /** The credential, as text of bytes: characters up to U+00FF. */
  readonly secret: string;
  readonly value: T;
}

/** Known credentials, ready to be compared. */
export class KnownSecrets<T> {
  readonly #known: readonly Known<T>[];
  /** Length of the longest credential, plus one for a given one that is longer. */
  readonly #length: number;

  /** Throws if two credentials are the same. */
  constructor(known: readonly Known<T>[], state: string) {
    this.#known = known;
    this.#length = Math.max(0, ...known.map(({ secret }) => secret.length)) + 1;
    if (new Set(known.map(({ secret }) => secret)).size < known.length) {
      throw new TypeError(`${state}: two callers have the same secret; give each its own`);
    }
  }

  /**
   * Finds what a given credential stands for. Compares all bytes with all known credentials. So neither the position of
   * a difference nor the known credential that matches shows in the time.
   */
  find(given: string): T | undefined {
    const length = this.#length;
    let found = -1;
    for (let at = 0; at < this.#known.length; at++) {
      const { secret } = this.#known[at];
      let difference = secret.length ^ given.length;
      // Beyond the end, charCodeAt() returns NaN, which counts as 0.
      for (let i = 0; i < length; i++) difference |= secret.charCodeAt(i) ^ given.charCodeAt(i);
      // -1 if there is no difference, and else 0.
      const isEqual = ((difference | -difference) >>> 31) - 1;
      found = (found & ~isEqual) | (at & isEqual);
    }
    return this.#known[found]?.value;
  }
}
