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
  /** The bytes of all known credentials, each filled up to the same length. */
  readonly #bytes: Uint8Array;
  /** Length of the longest credential, plus one for a given one that is longer. */
  readonly #length: number;
  /** The bytes of the given credential. */
  readonly #given: Uint8Array;

  /**
   * Creates the list. `state` begins the messages of its errors.
   *
   * @throws {TypeError} if there is no credential, or two are the same.
   */
  constructor(known: readonly Known<T>[], state: string) {
    if (!known.length) {
      throw new TypeError(`${state}: there are none, so that nobody could call; add one, or pass a function`);
    }
    if (new Set(known.map(({ secret }) => secret)).size < known.length) {
      throw new TypeError(`${state}: two callers have the same secret; give each its own`);
    }
    this.#known = known;
    this.#length = Math.max(...known.map(({ secret }) => secret.length)) + 1;
    this.#given = new Uint8Array(this.#length);
    this.#bytes = new Uint8Array(this.#length * known.length);
    known.forEach(({ secret }, at) => write(secret, this.#bytes.subarray(at * this.#length)));
  }

  /**
   * Finds what a given credential stands for. Compares all bytes with all known credentials. So neither the position of
   * a difference nor the known credential that matches shows in the time.
   */
  find(given: string): T | undefined {
    const known = this.#known;
    const bytes = this.#bytes;
    const own = this.#given;
    const length = own.length;
    write(given, own);
    let found = -1;
    for (let at = 0, from = 0; at < known.length; at++, from += length) {
      let difference = known[at].secret.length ^ given.length;
      for (let i = 0; i < length; i++) difference |= bytes[from + i] ^ own[i];
      // -1 if there is no difference, and else 0.
      const isEqual = ((difference | -difference) >>> 31) - 1;
      found = (found & ~isEqual) | (at & isEqual);
    }
    own.fill(0);
    return known[found]?.value;
  }
}

/** Maximum length of a remembered header, in characters. */
const MAX_REMEMBERED = 256;

/**
 * Remembers the last accepted header and its value. Most requests repeat it, so they skip parsing and comparison.
 */
export class LastAccepted<T> {
  /** Character codes of the header, padded with zeros. */
  readonly #codes: Uint16Array = new Uint16Array(MAX_REMEMBERED);
  #length = -1;
  #value?: T;

  /** Remembers a header whose credential was just verified. */
  remember(header: string, value: T): void {
    if (header.length > MAX_REMEMBERED) return;
    this.#codes.fill(0);
    for (let i = 0; i < header.length; i++) this.#codes[i] = header.charCodeAt(i);
    this.#length = header.length;
    this.#value = value;
  }

  /** Returns the value of a header. Takes constant time for headers of the same length. */
  find(header: string): T | undefined {
    const { length } = header;
    if (length > MAX_REMEMBERED) return;
    const codes = this.#codes;
    let difference = this.#length ^ length;
    for (let i = 0; i < length; i++) difference |= codes[i] ^ header.charCodeAt(i);
    return difference ? undefined : this.#value;
  }
}

function write(secret: string, to: Uint8Array): void {
  const end = Math.min(secret.length, to.length);
  for (let i = 0; i < end; i++) to[i] = secret.charCodeAt(i);
}
