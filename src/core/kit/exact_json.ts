/**
 * Reads and writes JSON with whole numbers beyond 2^53, which JavaScript would round.
 */

/**
 * Whether a JSON text may contain such a number. A quick test, because few texts do. Digits after a point do not count,
 * because most fractions have 16 or more of them.
 */
export function mayRound(text: string): boolean {
  return /(?:^|[\s:,[-])\d{16}/.test(text);
}

/**
 * Parses JSON. Whole numbers that JavaScript cannot represent become what `toValue` returns for their digits. Fractions
 * and numbers with an exponent are rounded, as everywhere.
 *
 * @throws {SyntaxError} if the text is not JSON.
 */
export function parseExactly(text: string, toValue: (digits: string) => unknown): unknown {
  if (!mayRound(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const { source = "" } = context ?? {};
    return /^-?\d+$/.test(source) ? toValue(source) : value;
  });
}

/** Returns a value that `JSON.stringify` writes as these digits, without quotes. */
export function toRawNumber(digits: string): unknown {
  // The types of TypeScript do not have this function yet.
  return Reflect.get(JSON, "rawJSON")(digits);
}
