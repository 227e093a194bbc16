/**
 * Recognizes promises, and loads parts on first use.
 *
 * @module
 */

/** Tests for something to await. Query builders are thenables but not promises. */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof Object(value).then === "function";
}

/** Returns a function that loads something once. A failed load is tried again by the next caller. */
export function lazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () =>
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
}
