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

/** Maximum number of values that are searched for promises. */
const MAX_VALUES = 10_000;

/**
 * Ignores the rejections of promises within a value that a handler returned, because an unhandled rejection would end
 * the process.
 */
export function ignoreRejections(value: unknown): void {
  const found = new Set<unknown>([value]);
  try {
    // The loop also reaches values that are added while it runs.
    for (const each of found) {
      if (each instanceof Promise) each.catch(() => {});
      else for (const part of toParts(each)) if (typeof part === "object" && found.size < MAX_VALUES) found.add(part);
    }
  } catch {
    // A getter of the author may throw. The code that reads the value next reports the error.
  }
}

function toParts(value: unknown): Iterable<unknown> {
  if (typeof value !== "object" || value === null) return [];
  if (value instanceof Map || value instanceof Set) return value.values();
  const isPlain = Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
  return isPlain ? Object.values(value) : [];
}
