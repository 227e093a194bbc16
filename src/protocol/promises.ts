/**
 * Recognizes promises.
 *
 * @module
 */

/** Tests whether a value can be awaited. This includes thenables, such as query builders, which are not promises. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === "function";
}

/**
 * Tests for a promise where only a synchronous value is allowed, such as a promise returned by a synchronous function
 * of the author. Ignores its rejection, because an unhandled rejection would end the process.
 */
export function isStrayPromise(value: unknown): boolean {
  const isStray = isPromiseLike(value);
  if (isStray) Promise.resolve(value).catch(() => {});
  return isStray;
}
