/**
 * Waiting. These timers keep the process alive, because a promise that the program awaits depends on each of them: they
 * end requests, connecting and closing, or take a stream up again. Each one is cancelled as soon as the promise settles.
 *
 * @module
 */

/** A timer for longer than this would ring at once. */
const MOST_MS = 2 ** 31 - 1;

/** Rings once after `ms`, or never for `Infinity`; gives the function that stops it. */
export function startTimer(ms: number, ring: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(ring, Math.min(ms, MOST_MS));
  return () => clearTimeout(timer);
}

/** Settles after `ms`; throws the reason of `signal` when that is aborted before. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) {
    reject(signal.reason);
    return promise;
  }
  const stop = () => {
    clearTimeout(timer);
    reject(signal?.reason);
  };
  const timer = setTimeout(() => {
    signal?.removeEventListener("abort", stop);
    resolve();
  }, ms);
  signal?.addEventListener("abort", stop, { once: true });
  return promise;
}
