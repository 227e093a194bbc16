/**
 * Estimates the memory that texts and messages take.
 *
 * @module
 */

const encoder = new TextEncoder();

/** Returns the bytes that a text takes in memory, at two bytes per character. */
export function toBytes(text: string): number {
  return text.length * 2;
}

/** Tests whether a text has at most `max` bytes in UTF-8. Encodes the text only if its length alone does not decide. */
export function isWithin(text: string, max: number): boolean {
  if (text.length > max) return false;
  return text.length * 3 <= max || encoder.encode(text).length <= max;
}

/**
 * Returns the bytes that a parsed message takes in memory: 2 per character, {@linkcode VALUE_BYTES} for each of at most
 * `max` values, and {@linkcode INDEX_BYTES} for each of the `indexes`, which are keys that are small integers.
 */
export function toWeight(text: string, { max, indexes }: { readonly max: number; readonly indexes: number }): number {
  if (text.length <= SHORT) return text.length * SHORT_BYTES + indexes * INDEX_BYTES;
  return toBytes(text) + VALUE_BYTES * max + indexes * INDEX_BYTES;
}

/**
 * Counts the keys that are small integers, escaped or not. A JavaScript engine may allocate as much memory for such a
 * key as for an array of that length.
 */
export function countIndexes(text: string): number {
  return text.match(INDEXES)?.length ?? 0;
}

const INDEXES = /"(?:\d|\\u003\d){1,4}"\s*:/g;
/** Minimum length of a key with its value and separators, in characters. */
export const KEY_LENGTH = 6;
/** Bytes of an object with one key such as "999". Measured on Bun: 8,300. */
const INDEX_BYTES = 8300;

/**
 * Length, in characters, up to which texts are weighed without a scan, because a scan takes more time than it saves.
 */
export const SHORT = 1024;
/** Bytes of a value in an object or array. Measured on Deno and Bun: 56 to 130. */
const VALUE_BYTES = 140;
/** Upper bound in bytes per character of a text without small-integer keys, such as `{},{},{},`. */
const SHORT_BYTES = Math.ceil(VALUE_BYTES / 3) + 2;
/** Bytes per character of the largest possible short message, in which all keys are small integers. */
export const MAX_BYTES = SHORT_BYTES + Math.ceil(INDEX_BYTES / KEY_LENGTH);
