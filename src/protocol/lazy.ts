/**
 * Loads parts on first use.
 *
 * @module
 */

/** Returns a function that loads something once. A failed load is tried again by the next caller. */
export function lazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () =>
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
}
