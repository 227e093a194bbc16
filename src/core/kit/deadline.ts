/**
 * Waits that end at a limit: after a time, or when a signal aborts.
 */
import { MAX_MS, startResponseTimer, systemTimers, type TimerSource } from "./timer.ts";

export interface WaitOptions {
  /** Ends the wait with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Defaults to `setTimeout`, whose timer keeps the process alive. */
  readonly clock?: TimerSource;
  /** Whether the process can exit during the wait. Requires a `clock` that supports it. Defaults to `false`. */
  readonly background?: boolean;
}

export type DeadlineOptions<L> =
  & WaitOptions
  & (Timeout<L> | { readonly ms?: undefined; readonly onTimeout?: undefined });

interface Timeout<L> {
  /** Milliseconds after which the wait ends. `Infinity` means never. Times above 24 days are shortened to 24 days. */
  readonly ms: number;
  /** Called when the time is over. The wait ends with the value that it returns, or with the error that it throws. */
  readonly onTimeout: () => L;
}

/**
 * Settles like `work`, but at the latest when the time is over or the signal aborts. A process that was blocked waits
 * longer (see {@linkcode startResponseTimer}). Removes the timer and the listener as soon as the wait ends. Ignores an
 * error of `work` after the wait has ended.
 *
 * @throws the reason of `signal`, or the error of `onTimeout`.
 */
export async function deadline<T, const L = never>(
  work: T | PromiseLike<T>,
  { ms = Infinity, onTimeout, signal, clock = systemTimers, background }: DeadlineOptions<L>,
): Promise<T | L> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<L>();
  const expire = () => {
    try {
      if (onTimeout) resolve(onTimeout());
    } catch (error) {
      reject(error);
    }
  };
  const onAbort = () => reject(signal?.reason);
  const stopTimer = startResponseTimer(ms, expire, { clock, background });
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted) onAbort();
  try {
    return await Promise.race([work, ended]);
  } finally {
    stopTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Waits `ms` milliseconds. Rejects with the reason of `signal` if the signal aborts earlier. */
export async function delay(
  ms: number,
  { signal, clock = systemTimers, background }: WaitOptions = {},
): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const stopTimer = ms === Infinity ? () => {} : clock.start(resolve, Math.min(ms, MAX_MS), { background });
  try {
    await deadline(over, { signal });
  } finally {
    stopTimer();
  }
}
