/**
 * Ends a request when its signal aborts or its timeout expires, whatever the request waits for: a response, an answer
 * of the user, an extension that finishes its result, or a function of `use`.
 *
 * @module
 */
import { checkTimeout, startPatientTimer } from "./delay.ts";

/** The conditions under which a request must end. */
export interface DeadlineOptions {
  /** The method of the request, for error messages. */
  readonly method: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
  /**
   * Returns the time for which requests of the connection have waited for a user, in milliseconds. The timeout does not
   * count this time.
   */
  readonly waitedMs?: () => number;
}

/**
 * Runs a request. Its signal aborts when the request has to end.
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
    () => giveUp(new DOMException(`Cannot finish ${method}: no response in ${timeoutMs} ms`, "TimeoutError")),
  );
  try {
    return await Promise.race([run(stop.signal), gaveUp]);
  } finally {
    stopTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}
