/**
 * Timers that keep the process alive, because a promise that the program awaits depends on each of them.
 *
 * @module
 */

/** A longer timer would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** Calls `onTime` once after `ms` milliseconds, or never for `Infinity`. Returns a function that cancels it. */
export function startTimer(ms: number, onTime: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(onTime, Math.min(ms, MAX_MS));
  return () => clearTimeout(timer);
}
