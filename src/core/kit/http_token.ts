/** Tests whether `value` is an HTTP token, such as a header name. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value);
}
