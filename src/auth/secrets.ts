/**
 * Finds callers by their secrets. Compares digests instead of secrets, so that the response time reveals nothing about
 * a secret.
 */

export interface Known<T> {
  /** The secret as text with one character per byte, up to U+00FF. */
  readonly secret: string;
  readonly value: T;
}

/** Keeps only a digest of each secret. */
export class KnownSecrets<T> {
  readonly #known: ReadonlyMap<string, T>;

  /**
   * Error messages begin with `state`.
   *
   * @throws {TypeError} if there are no secrets, or if two secrets are the same.
   */
  constructor(known: readonly Known<T>[], state: string) {
    if (!known.length) {
      throw new TypeError(
        `${state}: the object is empty, so no request could be authenticated; add a caller, or pass a function`,
      );
    }
    this.#known = new Map(known.map(({ secret, value }) => [digest(secret), value]));
    if (this.#known.size < known.length) {
      throw new TypeError(`${state}: a secret occurs twice; give each caller a different secret`);
    }
  }

  find(given: string): T | undefined {
    return this.#known.get(digest(given));
  }

  /** The values of all secrets, without duplicates. */
  get values(): readonly T[] {
    return [...new Set(this.#known.values())];
  }
}

// The constants of SHA-256: the first 32 bits of the fractional parts of the cube roots of the first 64 primes
// (`ROUNDS`), and of the square roots of the first 8 primes (`INITIAL`). The constants are computed, because a wrong
// digit in a table would be easy to overlook.
const ROUNDS = new Int32Array(64);
const INITIAL = new Int32Array(8);
for (let n = 2, count = 0; count < 64; n++) {
  if (isPrime(n)) {
    if (count < 8) INITIAL[count] = toFraction(Math.sqrt(n));
    ROUNDS[count++] = toFraction(Math.cbrt(n));
  }
}

function isPrime(n: number): boolean {
  for (let by = 2; by * by <= n; by++) if (n % by === 0) return false;
  return true;
}

function toFraction(root: number): number {
  return (root % 1) * 2 ** 32 | 0;
}

const words = new Int32Array(64);

/**
 * Returns the SHA-256 digest of a text with one character per byte, as 16 characters of 16 bits. Does not use
 * WebCrypto, because `crypto.subtle.digest` is asynchronous and would delay every request.
 */
export function digest(text: string): string {
  const state = INITIAL.slice();
  const { length } = text;
  const blocks = (length + 72) >>> 6;
  for (let block = 0; block < blocks; block++) {
    for (let at = 0; at < 16; at++) words[at] = readWord(text, block * 64 + at * 4);
    if (block === blocks - 1) words[15] = length * 8;
    mix(state);
  }
  words.fill(0);
  return String.fromCharCode(...new Uint16Array(state.buffer));
}

// Returns a word of the padded text: the text, then a one bit, then zeros.
function readWord(text: string, from: number): number {
  let word = 0;
  for (let at = from; at < from + 4; at++) {
    word = word << 8 | (at < text.length ? text.charCodeAt(at) & 255 : at === text.length ? 128 : 0);
  }
  return word;
}

function mix(state: Int32Array): void {
  for (let at = 16; at < 64; at++) {
    const early = words[at - 15];
    const late = words[at - 2];
    const first = rotate(early, 7) ^ rotate(early, 18) ^ early >>> 3;
    const second = rotate(late, 17) ^ rotate(late, 19) ^ late >>> 10;
    words[at] = (words[at - 16] + first | 0) + (words[at - 7] + second | 0) | 0;
  }
  let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (let at = 0; at < 64; at++) {
    const choice = e & f ^ ~e & g;
    const majority = a & b ^ a & c ^ b & c;
    const left =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) | 0) + (choice + (ROUNDS[at] + words[at] | 0) | 0) | 0;
    const right = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority | 0;
    h = g;
    g = f;
    f = e;
    e = d + left | 0;
    d = c;
    c = b;
    b = a;
    a = left + right | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

function rotate(word: number, by: number): number {
  return word >>> by | word << 32 - by;
}
