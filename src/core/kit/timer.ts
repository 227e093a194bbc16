/**
 * Timers for promises that the program awaits. Unlike background timers, these timers keep the process alive.
 */

/** Maximum delay of a timer in milliseconds. With a longer delay, the runtimes fire the timer immediately. */
export const MAX_MS = 2 ** 31 - 1;

/**
 * Calls `onTime` once after `ms` milliseconds, or never if `ms` is `Infinity`. Returns a function that cancels the
 * timer.
 */
export function startTimer(ms: number, onTime: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(onTime, Math.min(ms, MAX_MS));
  return () => clearTimeout(timer);
}
