/**
 * Measures JSON text before it is parsed.
 */

export interface JsonLimits {
  /** Maximum number of levels of nested objects and arrays. */
  readonly depth: number;
  /** Maximum number of JSON values, including nested values. */
  readonly values: number;
}

/** Measuring stops at the first exceeded limit. */
export interface JsonSize {
  readonly values: number;
  /** Number of empty objects and arrays among the values. */
  readonly empty: number;
  readonly excess?: keyof JsonLimits;
}

/** If the text is not JSON, measures the text up to an unterminated string, or up to its end. */
export function measureJson(text: string, { depth: maxLevels, values: maxValues }: JsonLimits): JsonSize {
  let depth = 0;
  // Each comma precedes another value, and each opening bracket precedes the first value inside the bracket. An empty
  // object or array has no such value, so its closing bracket subtracts one.
  let values = 1;
  let empty = 0;
  let opened = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Skip digits and spaces first, because they are the most frequent characters.
    if (code < 34 || code > 44 && code < 91) continue;
    if (code === 34) {
      i = findQuote(text, i + 1);
      if (i < 0) return { values, empty }; // The text ends within a string.
    } else if (code === 44) {
      // Compare the count with the limit only at a comma. After an opening bracket, the count may be too high by one,
      // because a closing bracket may follow immediately.
      if (++values > maxValues) break;
    } else if (code === 123 || code === 91) {
      if (++depth > maxLevels) return { values, empty, excess: "depth" };
      values++;
      opened = i;
    } else if (code === 125 || code === 93) {
      depth--;
      if (opened >= 0 && (opened === i - 1 || !text.slice(opened + 1, i).trim())) {
        values--;
        empty++;
      }
      opened = -1;
    }
  }
  return values > maxValues ? { values, empty, excess: "values" } : { values, empty };
}

/**
 * Returns the position of the quote that ends a string, or -1. Such a quote follows an even number of backslashes,
 * because a backslash escapes the next character.
 */
function findQuote(text: string, from: number): number {
  let slashes;
  do {
    from = slashes = text.indexOf('"', from);
    while (text.charCodeAt(slashes - 1) === 92) slashes--;
  } while ((from++ - slashes) % 2);
  return from - 1;
}
