/**
 * Looks at JSON text before anything is made of it. Loaded by what needs it.
 *
 * @module
 */

/** Limits of a JSON text. */
export interface JsonTextLimits {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** JSON values, including nested ones. */
  readonly values: number;
  /** Keys that are small integers: one engine allocates room for them as for the items of an array. */
  readonly indexes: number;
}

/** The counts of a JSON text, up to the first limit that it exceeds. */
export interface JsonTextSize {
  readonly values: number;
  readonly indexes: number;
  readonly excess?: keyof JsonTextLimits;
}

/** Measures a text. Looks at each character once. */
export function measureJson(text: string, most: JsonTextLimits): JsonTextSize {
  let depth = 0;
  let values = 1;
  let indexes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const from = i++;
      for (let its = text.charCodeAt(i); i < text.length && its !== QUOTE; its = text.charCodeAt(++i)) {
        if (its === BACKSLASH) i++;
      }
      if (i - from < LONGEST_INDEX && INDEX.test(text.slice(from + 1, i)) && isKey(text, i + 1)) indexes++;
    } else if (code === COMMA) values++;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      values++;
      depth++;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
    const excess = depth > most.depth
      ? "depth"
      : values > most.values
      ? "values"
      : indexes > most.indexes
      ? "indexes"
      : undefined;
    if (excess) return { values, indexes, excess };
  }
  return { values, indexes };
}

/** Whether the string that ends here is a key. */
function isKey(text: string, end: number): boolean {
  COLON_NEXT.lastIndex = end;
  return COLON_NEXT.test(text);
}

const INDEX = /^(?:\d|\\u003\d){1,4}$/;
const COLON_NEXT = /\s*:/y;
const LONGEST_INDEX = 26;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
