/**
 * Converts JSON values to a canonical form: equal values have the same JSON text.
 */
import { isObject } from "./jsonrpc.ts";

/**
 * Returns the canonical form of a value, which does not depend on the order of keys. An object becomes a list of keys
 * and values, because a sorted copy of an object with very many keys would take ten times as long to create and
 * serialize.
 */
export function toCanonical(value: unknown): unknown {
  if (Array.isArray(value)) return [0, value.map(toCanonical)];
  // JSON.parse returns -0 and Infinity for `-0` and `1e400`. JSON.stringify would write them as 0 and null, so that
  // different values would look equal.
  if (Object.is(value, -0)) return [2, "-0"];
  if (typeof value === "number" && !Number.isFinite(value)) return [2, String(value)];
  if (!isObject(value)) return value;
  const keys = Object.keys(value);
  // Sorting copies the keys, and the keys of most small objects are in order.
  if (keys.some((key, at) => at > 0 && keys[at - 1] > key)) keys.sort();
  const list: unknown[] = [1];
  for (const key of keys) list.push(key, toCanonical(value[key]));
  return list;
}

/**
 * Returns the canonical JSON text of a JSON value.
 *
 * @see RFC 8785
 */
export function toCanonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((each) => toCanonicalText(each)).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${toCanonicalText(value[key])}`).join()}}`;
}
