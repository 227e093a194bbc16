/**
 * Exact timeouts of calls.
 *
 * @module
 */
import type { Call, Deadline } from "./call.ts";
import type { Ticker, Timeout } from "../capacity/timers.ts";

/** Cancels a call after `ms` milliseconds, not counting the time in which the client answers questions. */
export function startDeadline(call: Call, ticker: Ticker, ms: number): void {
  call.deadline = new ExactDeadline(call, ticker, ms);
}

class ExactDeadline implements Deadline {
  readonly #call: Call;
  readonly #ticker: Ticker;
  readonly #ms: number;
  #left: number;
  #timeout?: Timeout;

  constructor(call: Call, ticker: Ticker, ms: number) {
    this.#call = call;
    this.#ticker = ticker;
    this.#ms = this.#left = ms;
    if (!call.asking) this.start();
  }

  start(): void {
    if (this.#call.ended || this.#timeout) return;
    const limit = this.#ms === this.#call.timeoutMs ? "handler.timeoutMs" : "calls.timeoutMs";
    this.#timeout = this.#ticker.startTimeout(this.#left, () => this.#call.timeOut(this.#ms, limit));
  }

  stop(): void {
    if (!this.#timeout) return;
    this.#ticker.cancel(this.#timeout);
    this.#left = Math.max(0, this.#timeout.due - this.#ticker.clock.now());
    this.#timeout = undefined;
  }
}
