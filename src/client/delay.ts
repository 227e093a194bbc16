/**
 * Timers and delays. They keep the process alive, because a promise that the program awaits depends on each of them.
 * Each one is cancelled as soon as the promise settles.
 *
 * @module
 */

/** A longer timer would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** Checks a timeout option. @throws {RangeError} if it is not a positive number or `Infinity`. */
export function checkTimeout(ms: number, name: string): void {
  if (ms > 0) return;
  throw new RangeError(`Cannot wait for ${name}: ${ms} is not a positive number of milliseconds, or Infinity`);
}

/**
 * Calls `onTime` once after `ms` milliseconds, or never for `Infinity`. Returns a function that cancels it.
 */
export function startTimer(ms: number, onTime: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(onTime, Math.min(ms, MAX_MS));
  return () => clearTimeout(timer);
}

/** Settles after `ms` milliseconds. Throws the reason of `signal` if that is aborted first. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) {
    reject(signal.reason);
    return promise;
  }
  const stop = () => {
    stopTimer();
    reject(signal?.reason);
  };
  const stopTimer = startTimer(ms, () => {
    signal?.removeEventListener("abort", stop);
    resolve();
  });
  signal?.addEventListener("abort", stop, { once: true });
  return promise;
}
