/**
 * Ends a request when its signal aborts or its timeout expires, no matter what the request is waiting for: a response,
 * a user's answer, an extension that finishes the result, or middleware.
 *
 * @module
 */
import { checkTimeout, startPatientTimer } from "./delay.ts";

export interface DeadlineOptions {
  /** The method of the request, for error messages. */
  readonly method: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
  /**
   * Returns the total milliseconds for which requests of the connection have waited for a user. The timeout does not
   * include this time.
   */
  readonly waitedMs?: () => number;
}

/**
 * Runs a request, with a signal that aborts when the request must end.
 *
 * @throws {DOMException} named `TimeoutError` after `timeoutMs`, or the reason of `signal`.
 */
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
