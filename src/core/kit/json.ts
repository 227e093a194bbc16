/**
 * Parses JSON, and tests and reads values that were parsed from JSON.
 */

/** Tests whether a value is a JSON object, which is neither `null` nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses JSON. Returns `undefined` if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the value to which keys lead. Returns `undefined` if there is none. Inherited properties do not count. */
export function readAt(value: unknown, keys: readonly (string | number)[]): unknown {
  return keys.reduce(
    (at, key) => typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined,
    value,
  );
}
