/**
 * Returns whether a copy by way of JSON is the same as the original value. Members that are `undefined` count as absent,
 * because code that reads an absent member gets `undefined` too.
 */
export function isSameJson(data: unknown, copy: unknown): boolean {
  if (typeof data !== "object" || data === null) return Object.is(data, copy);
  if (typeof copy !== "object" || copy === null || Array.isArray(data) !== Array.isArray(copy)) return false;
  const prototype: unknown = Object.getPrototypeOf(data);
  const isPlain = Array.isArray(data) || prototype === Object.prototype || prototype === null;
  const copied = new Map(Object.entries(copy));
  // JSON has `null` in place of a hole of an array.
  const isWhole = !Array.isArray(data) || Object.keys(data).length === data.length;
  return isPlain && isWhole && Object.entries(data).every(([name, value]) => isSameJson(value, copied.get(name)));
}

/** Returns `undefined` if the value is no JSON, such as a function or a cycle. */
export function toJsonText(data: unknown): string | undefined {
  try {
    return JSON.stringify(data);
  } catch {
    // The value has a circular reference or contains a bigint.
  }
}
