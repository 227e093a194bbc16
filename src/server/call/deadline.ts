/**
 * Exact timeouts of calls.
 */
import type { Call, Deadline } from "./call.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Ticker, Timeout } from "../../core/timers.ts";

/** Unless `isTotal` is set, does not count the time in which the client answers questions. */
export function startDeadline(call: Call, ticker: Ticker, ms: number, isTotal?: boolean): void {
  call.deadline = new ExactDeadline(call, ticker, ms, isTotal);
}

/**
 * Runs a handler of a call whose time is already limited, such as one of several handlers. If the handler starts with a
 * timeout of its own, this timeout applies instead of the timeout of the call until the handler has ended.
 */
export function runLimited<T>(call: Call, ticker: Ticker, run: () => T | Promise<T>): T | Promise<T> {
  const { deadline } = call;
  call.limitTime(undefined);
  const running = run();
  // Read the timeout here, because a layer of the handler sets the timeout when the handler starts.
  const { timeoutMs } = call;
  return timeoutMs === undefined ? running : untilDone(call, ticker, { running, deadline, timeoutMs });
}

/** A handler that has started with a timeout of its own. `deadline` is the timeout of its call. */
interface Limited<T> {
  readonly running: T | Promise<T>;
  readonly deadline: Deadline | undefined;
  readonly timeoutMs: number;
}

async function untilDone<T>(call: Call, ticker: Ticker, { running, deadline, timeoutMs }: Limited<T>): Promise<T> {
  deadline?.stop();
  startDeadline(call, ticker, timeoutMs);
  try {
    return await running;
  } finally {
    call.deadline?.stop();
    call.deadline = deadline;
    // Otherwise a timeout of Infinity would also apply to what follows, such as `limit` of the next handler.
    call.limitTime(undefined);
    if (call.ended) deadline?.stop();
    else if (!call.asking) deadline?.start();
  }
}

interface StepParts {
  readonly ticker: Ticker;
  readonly limits: Pick<Bounds, "calls">;
}

/**
 * Settles like `step`, which decides whether a call may run, such as `allow`. Cancels the call if the step takes longer
 * than `calls.timeoutMs`, because a step that never settles would otherwise hold a slot forever.
 *
 * @throws the reason as soon as the call is cancelled.
 */
export async function untilDecided<T>(
  call: Call,
  step: T | Promise<T>,
  { ticker, limits: { calls: { timeoutMs } } }: StepParts,
): Promise<T> {
  const timeout = ticker.startTimeout(timeoutMs, () => call.timeOut(timeoutMs, "calls.timeoutMs"));
  try {
    return await call.untilCancelled(Promise.resolve(step));
  } finally {
    ticker.cancel(timeout);
  }
}

class ExactDeadline implements Deadline {
  readonly #call: Call;
  readonly #ticker: Ticker;
  readonly #ms: number;
  readonly #isTotal?: boolean;
  #left: number;
  #timeout?: Timeout;

  constructor(call: Call, ticker: Ticker, ms: number, isTotal?: boolean) {
    this.#call = call;
    this.#ticker = ticker;
    this.#ms = this.#left = ms;
    this.#isTotal = isTotal;
    if (isTotal || !call.asking) this.start();
  }

  start(): void {
    if (this.#call.ended || this.#timeout) return;
    const limit = this.#ms === this.#call.timeoutMs ? "handler.timeoutMs" : "calls.timeoutMs";
    this.#timeout = this.#ticker.startTimeout(this.#left, () => this.#call.timeOut(this.#ms, limit));
  }

  stop(): void {
    if (!this.#timeout || this.#isTotal && !this.#call.ended) return;
    this.#ticker.cancel(this.#timeout);
    this.#left = this.#timeout.due - this.#ticker.clock.now();
    this.#timeout = undefined;
  }
}
