/**
 * How long a call may be silent.
 *
 * @module
 */
import { startTimer } from "../../client/delay.ts";

/** Waits for a server, but not for ever. */
export interface CallTimeout {
  /** Aborted when the server has been silent for too long. */
  readonly signal: AbortSignal;
  /** The server has said something. */
  renew(): void;
  /** Runs what the user takes the time for: the server is not waited for meanwhile. */
  holdFor<T>(work: () => Promise<T>): Promise<T>;
  /** The answer is there. */
  stop(): void;
}

/** Begins to wait. */
export function startCallTimeout(ms: number): CallTimeout {
  const late = new AbortController();
  const reason = new DOMException(`it has said nothing for ${ms / 1000} s`, "TimeoutError");
  let held = 0;
  let stopTimer = () => {};

  function renew(): void {
    stopTimer();
    if (!held) stopTimer = startTimer(ms, () => late.abort(reason));
  }

  async function holdFor<T>(work: () => Promise<T>): Promise<T> {
    held++;
    stopTimer();
    try {
      return await work();
    } finally {
      held--;
      renew();
    }
  }

  renew();
  return { signal: late.signal, renew, holdFor, stop: () => stopTimer() };
}
