/**
 * A timeout that restarts whenever the server sends something.
 *
 * @module
 */
import { startTimer } from "../timer.ts";

/** A running timeout. */
export interface SilenceTimeout {
  /** Aborts when the server has sent nothing for the whole time. */
  readonly signal: AbortSignal;
  /** Starts the time again, because the server has sent something. */
  restart(): void;
  /** Stops the time while `work` runs, such as while the user answers a question. */
  pauseWhile<T>(work: () => Promise<T>): Promise<T>;
  /** Ends the timeout. */
  stop(): void;
}

/** Starts a timeout of `ms` milliseconds. */
export function startSilenceTimeout(ms: number): SilenceTimeout {
  const controller = new AbortController();
  const reason = new DOMException(`it has sent nothing for ${ms / 1000} s`, "TimeoutError");
  let pauses = 0;
  let stopTimer = () => {};

  function restart(): void {
    stopTimer();
    if (!pauses) stopTimer = startTimer(ms, () => controller.abort(reason));
  }

  async function pauseWhile<T>(work: () => Promise<T>): Promise<T> {
    pauses++;
    stopTimer();
    try {
      return await work();
    } finally {
      pauses--;
      restart();
    }
  }

  restart();
  return { signal: controller.signal, restart, pauseWhile, stop: () => stopTimer() };
}
