/**
 * Tests HTTP tokens.
 */

/** Tests whether `value` is an HTTP token, such as a header name. */
export function isToken(value: unknown): boolean {
  return typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value);
}
