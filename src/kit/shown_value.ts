/**
 * Formats values of options for error messages.
 *
 * @module
 */

/** Formats a value for an error message. Quotes strings, so that `"5"` and `5` differ. */
export function showValue(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 200)) : String(value);
}
