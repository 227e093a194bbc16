/**
 * Timers and delays. They keep the process alive, because a promise that the program awaits depends on each of them.
 * Each one is cancelled as soon as the promise settles.
 *
 * @module
 */
import { startTimer } from "../kit/timer.ts";

/** Checks a timeout option. @throws {RangeError} if it is not a positive number or `Infinity`. */
export function checkTimeout(ms: number, name: string): void {
  if (ms > 0) return;
  throw new RangeError(`Cannot wait for ${name}: ${ms} is not a positive number of milliseconds, or Infinity`);
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
