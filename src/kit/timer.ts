/**
 * Timers that keep the process alive, because the program awaits a promise that depends on them.
 *
 * @module
 */

/** The longest delay of a timer in milliseconds. The runtimes fire a longer timer immediately. */
const MAX_MS = 2 ** 31 - 1;

/** Calls `onTime` once after `ms` milliseconds, or never for `Infinity`. Returns a function that cancels it. */
export function startTimer(ms: number, onTime: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(onTime, Math.min(ms, MAX_MS));
  return () => clearTimeout(timer);
}
