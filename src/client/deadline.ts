/**
 * Ends a request when its signal aborts or its time is over, whatever it waits for: a response, an answer of the user,
 * an extension that finishes its result, or a function of `use`.
 *
 * @module
 */
import { checkTimeout } from "./delay.ts";
import { startTimer } from "../kit/timer.ts";

/** When a request must end. */
export interface DeadlineOptions {
  /** The method of the request, for the error. */
  readonly method: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
}

/**
 * Runs a request. Its signal aborts when the request has to end.
 *
 * @throws {DOMException} named `TimeoutError` after `timeoutMs`, or the reason of `signal`.
 */
export async function withDeadline<T>(
  { method, signal, timeoutMs }: DeadlineOptions,
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
  const stopTimer = startTimer(
    timeoutMs,
    () => giveUp(new DOMException(`Cannot finish ${method}: no response in ${timeoutMs} ms`, "TimeoutError")),
  );
  try {
    return await Promise.race([run(stop.signal), gaveUp]);
  } finally {
    stopTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}
