/**
 * Estimates the memory that texts and messages take.
 */

const encoder = new TextEncoder();

/** Returns the bytes that a text takes in memory, at two bytes per character. */
export function toBytes(text: string): number {
  return text.length * 2;
}

/**
 * Tests whether a text has at most `max` bytes in UTF-8. Encodes the text only if the number of characters does not
 * determine the result.
 */
export function isWithin(text: string, max: number): boolean {
  if (text.length > max) return false;
  return text.length * 3 <= max || encoder.encode(text).length <= max;
}

/**
 * Returns the bytes that a parsed message takes in memory: 2 per character, {@linkcode VALUE_BYTES} for each of `max`
 * values, and {@linkcode INDEX_BYTES} for each of `indexes` keys that are small integers. For a short text, returns an
 * upper bound that does not depend on `max`.
 */
export function toWeight(text: string, { max, indexes }: { readonly max: number; readonly indexes: number }): number {
  if (text.length <= SHORT) return text.length * SHORT_BYTES + indexes * INDEX_BYTES;
  return toBytes(text) + VALUE_BYTES * max + indexes * INDEX_BYTES;
}

/**
 * Counts the keys that are small integers, escaped or not. A JavaScript engine may allocate as much memory for a key
 * such as "999" as for an array of this length.
 */
export function countIndexes(text: string): number {
  return text.match(INDEXES)?.length ?? 0;
}

const INDEXES = /"(?:\d|\\u003\d){1,4}"\s*:/g;
/** Minimum length, in characters, of a small-integer key with its value and separators. */
export const KEY_LENGTH = 6;
/** Bytes of an object with one key such as "999". Measured on Bun: 8,300. */
const INDEX_BYTES = 8300;

/** Length, in characters, up to which texts are weighed by their length alone, because counting takes too long. */
export const SHORT = 1024;
/** Bytes of a value in an object or array. Measured on Deno and Bun: 56 to 130. */
const VALUE_BYTES = 140;
/**
 * Upper bound of the bytes per character of a text without small-integer keys. The text with the most bytes is
 * `{},{},{},…`.
 */
const SHORT_BYTES = Math.ceil(VALUE_BYTES / 3) + 2;
/** Bytes per character of the largest possible short message, in which all keys are small integers. */
export const MAX_BYTES = SHORT_BYTES + Math.ceil(INDEX_BYTES / KEY_LENGTH);
