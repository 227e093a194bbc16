/**
 * Ends a request when its signal aborts or its timeout expires, no matter what the request is waiting for: a response,
 * a user's answer, an extension that finishes the result, or middleware.
 */
import { startResponseTimer } from "../core/kit/timer.ts";

export interface DeadlineOptions {
  readonly method: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
  /** Milliseconds for which requests have waited for a user. The timeout does not include this time. */
  readonly waitedMs?: () => number;
}

/** @throws {DOMException} named `TimeoutError` after `timeoutMs`, or the reason of `signal`. */
export async function withDeadline<T>(
  { method, signal, timeoutMs, waitedMs = () => 0 }: DeadlineOptions,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  checkTimeout(timeoutMs, "timeoutMs");
  signal?.throwIfAborted();
  const stop = new AbortController();
  const { promise: gaveUp, reject } = Promise.withResolvers<never>();
  const giveUp = (reason: unknown) => {
    reject(reason);
    stop.abort(reason);
  };
  const onAbort = () => giveUp(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const stopTimer = startPatientTimer(
    timeoutMs,
    waitedMs,
    () => giveUp(new DOMException(`Cannot finish ${method}: no response within ${timeoutMs} ms`, "TimeoutError")),
  );
  try {
    return await Promise.race([run(stop.signal), gaveUp]);
  } finally {
    stopTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}

export interface TimeLimit {
  readonly ms: number;
  readonly signal?: AbortSignal;
  /** The message of the `TimeoutError` with which the work's signal aborts. */
  readonly state: string;
}

/** Runs `work` with a signal that aborts after `ms` milliseconds, or together with `signal`. */
export async function withTimeLimit<T>(
  { ms, signal, state }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const stopTimer = startResponseTimer(ms, () => late.abort(new DOMException(state, "TimeoutError")));
  try {
    return await work(signal ? AbortSignal.any([signal, late.signal]) : late.signal);
  } finally {
    stopTimer();
  }
}

/** @throws {RangeError} if the option is not a positive number or `Infinity`. */
export function checkTimeout(ms: number, name: string): void {
  if (ms > 0) return;
  throw new RangeError(`Cannot use ${name}: the value is ${ms}; use a positive number of milliseconds, or Infinity`);
}

/**
 * Minimum milliseconds by which a timer is extended if requests have waited for a user since the timer's last check.
 */
const LOOK_MS = 50;

/** Pauses while requests wait for a user, which `waitedMs` measures. Returns a function that cancels the timer. */
export function startPatientTimer(ms: number, waitedMs: () => number, onTime: () => void): () => void {
  let counted = waitedMs();
  const look = () => {
    const waited = waitedMs() - counted;
    if (!waited) return onTime();
    counted += waited;
    stopTimer = startResponseTimer(Math.max(waited, LOOK_MS), look);
  };
  let stopTimer = startResponseTimer(ms, look);
  return () => stopTimer();
}
