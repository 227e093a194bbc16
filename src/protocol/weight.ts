/**
 * What texts and messages take in memory.
 *
 * @module
 */

const encoder = new TextEncoder();

/** Bytes that one text takes in memory: at most two a character. */
export function toBytes(text: string): number {
  return text.length * 2;
}

/** Whether a text has at most `most` bytes in UTF-8. A text that is far from it is not encoded. */
export function isWithin(text: string, most: number): boolean {
  if (text.length > most) return false;
  return text.length * 3 <= most || encoder.encode(text).length <= most;
}

/**
 * Bytes that a message takes once it is parsed: two a character, {@linkcode VALUE_BYTES} for each of its values, of
 * which there are `most` at most, and {@linkcode INDEX_BYTES} for each of its `indexes`.
 */
export function toWeight(text: string, { most, indexes }: { readonly most: number; readonly indexes: number }): number {
  if (text.length <= SHORT) return text.length * SHORT_BYTES + indexes * INDEX_BYTES;
  // Every value but the first of each level follows a comma. Those in texts count as well, which costs a text little.
  const values = 1 + count(text, ",") + count(text, "{") + count(text, "[");
  return toBytes(text) + VALUE_BYTES * Math.min(values, most) + indexes * INDEX_BYTES;
}

/** How many keys of a message are small numbers, for which an engine may make room as for the items of an array. */
export function countIndexes(text: string): number {
  return text.match(INDEXES)?.length ?? 0;
}

const INDEXES = /"\d{1,4}"\s*:/g;
/** Characters that a key takes at least, with its value and what parts it from the next. */
export const KEY_LENGTH = 6;
/** Bytes of an object with one key such as "999": measured at 8,300 on Bun. */
const INDEX_BYTES = 8300;

/** Characters up to which counting values would cost more than it tells. */
export const SHORT = 1024;
/** Bytes of a value with its place in an object or array: measured at 56 to 130, on both runtimes. */
const VALUE_BYTES = 140;
/** Bytes a character of a text such as `{},{},{},`. */
const SHORT_BYTES = Math.ceil(VALUE_BYTES / 3) + 2;
/** Bytes a character of the worst short message, whose keys are all small numbers. */
export const MOST_BYTES = SHORT_BYTES + Math.ceil(INDEX_BYTES / KEY_LENGTH);

function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) found++;
  return found;
}
