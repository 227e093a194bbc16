/**
 * Tells promises from other values.
 *
 * @module
 */

/** Tests for something to await. Query builders are thenables but not promises. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === "function";
}
