/**
 * Recognizes promises.
 *
 * @module
 */

/** Tests for something to await. Query builders are thenables but not promises. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === "function";
}

/**
 * Tests for a promise where none may be, such as one that a synchronous function of the author returned. Its rejection is
 * ignored, because otherwise it would end the process.
 */
export function isStrayPromise(value: unknown): boolean {
  const isStray = isPromiseLike(value);
  if (isStray) Promise.resolve(value).catch(() => {});
  return isStray;
}
