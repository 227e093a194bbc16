/**
 * Timers for promises that the program awaits. Unlike background timers, these timers keep the process alive.
 */

/** Maximum delay of a timer in milliseconds. With a longer delay, the runtimes fire the timer immediately. */
export const MAX_MS = 2 ** 31 - 1;

/** Calls `onTime` once, or never if `ms` is `Infinity`. Returns a function that cancels the timer. */
export function startTimer(ms: number, onTime: () => void): () => void {
  if (ms === Infinity) return () => {};
  const timer = setTimeout(onTime, Math.min(ms, MAX_MS));
  return () => clearTimeout(timer);
}

export interface TimerSource {
  /** Returns a monotonic time in milliseconds. */
  now(): number;
  /** Runs `job` once. Returns a function that cancels it. */
  start(job: () => void, ms: number, options?: { readonly background?: boolean }): () => void;
}

/** Starts timers with `setTimeout`, which keep the process alive. */
export const systemTimers: TimerSource = {
  now: () => performance.now(),
  start: (job, ms) => startTimer(ms, job),
};

/** Minimum number of milliseconds by which a timer is late if the process was blocked. */
const BLOCKED_MS = 50;

/**
 * Starts a timer for a response that should arrive within `ms` milliseconds. Calls `onTime` when the time is over.
 * Returns a function that cancels the timer.
 *
 * A process that is blocked, by its own code or by an overloaded machine, cannot read responses. When it continues, due
 * timers may fire before it reads the responses that have arrived. Therefore a timer that fires late waits once more, for
 * as long as it is late, but at most `ms`.
 */
export function startResponseTimer(
  ms: number,
  onTime: () => void,
  { clock = systemTimers, background }: { readonly clock?: TimerSource; readonly background?: boolean } = {},
): () => void {
  const due = clock.now() + ms;
  const onDue = () => {
    const late = clock.now() - due;
    if (late < BLOCKED_MS) onTime();
    else stop = clock.start(onTime, Math.min(late, ms), { background });
  };
  let stop = ms === Infinity ? () => {} : clock.start(onDue, Math.min(ms, MAX_MS), { background });
  return () => stop();
}
