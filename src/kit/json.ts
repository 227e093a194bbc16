/**
 * Values that were parsed from JSON.
 *
 * @module
 */

/** Whether a value is a JSON object: not null, and not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
