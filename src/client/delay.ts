/**
 * Timers and delays. They keep the process alive, because the program awaits promises that depend on these timers. Each
 * timer is cancelled as soon as it is no longer needed.
 *
 * @module
 */
import { startTimer } from "../kit/timer.ts";

/**
 * Checks a timeout option.
 *
 * @throws {RangeError} if the option is not a positive number or `Infinity`.
 */
export function checkTimeout(ms: number, name: string): void {
  if (ms > 0) return;
  throw new RangeError(`Cannot use ${name}: the value is ${ms}; use a positive number of milliseconds, or Infinity`);
}

/**
 * Minimum milliseconds by which a timer is extended if requests have waited for a user since the timer's last check.
 */
const LOOK_MS = 50;

/**
 * Starts a timer that pauses while requests wait for a user. `waitedMs` returns the total time of this waiting. Returns
 * a function that cancels the timer.
 */
export function startPatientTimer(ms: number, waitedMs: () => number, onTime: () => void): () => void {
  let counted = waitedMs();
  const look = () => {
    const waited = waitedMs() - counted;
    if (!waited) return onTime();
    counted += waited;
    stopTimer = startTimer(Math.max(waited, LOOK_MS), look);
  };
  let stopTimer = startTimer(ms, look);
  return () => stopTimer();
}

/** Resolves when `work` settles, but at the latest after `ms` milliseconds. */
export async function settleWithin(work: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const stopTimer = startTimer(ms, late.resolve);
  await Promise.race([work, late.promise]).finally(stopTimer);
}

/** Resolves after `ms` milliseconds. If `signal` aborts earlier, rejects with the signal's reason. */
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
