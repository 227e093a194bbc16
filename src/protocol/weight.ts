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
 * Bytes that a message takes once it is parsed: two a character, and {@linkcode VALUE_BYTES} for each value. For a short
 * text, {@linkcode SHORT_BYTES} a character is near enough.
 */
export function toWeight(text: string): number {
  // Every value but the first of each level follows a comma. Those in texts count as well, which costs a text little.
  return toBytes(text) + VALUE_BYTES * (1 + count(text, ",") + count(text, "{") + count(text, "["));
}

/** Characters up to which counting values would cost more than it tells. */
export const SHORT = 1024;
/** Bytes of a value with its place in an object or array: measured at 56 to 130, on both runtimes. */
const VALUE_BYTES = 140;
/** Bytes a character of a text such as `{},{},{},`. */
export const SHORT_BYTES = Math.ceil(VALUE_BYTES / 3) + 2;

function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) found++;
  return found;
}
