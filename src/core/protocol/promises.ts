/** Whether a value can be awaited: a promise, or another thenable, such as a query builder. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === "function";
}

/**
 * Returns a promise that the author's code may await later, or never. An unhandled rejection would end the process.
 * Whoever awaits the promise still gets the error.
 */
export function toHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * Whether a value is a promise, for places that allow only synchronous values. Ignores a rejection of the promise,
 * because an unhandled rejection would end the process.
 */
export function isStrayPromise(value: unknown): boolean {
  const isStray = isPromiseLike(value);
  if (isStray) Promise.resolve(value).catch(() => {});
  return isStray;
}

/** Maximum number of values that are searched for promises. */
const MAX_VALUES = 10_000;

/** Ignores rejections of all promises in a value, because an unhandled rejection would end the process. */
export function ignoreRejections(value: unknown): void {
  const found = new Set<unknown>([value]);
  try {
    // The loop also visits the values that its body adds to the set.
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
