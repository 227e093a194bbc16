/**
 * Delivers the notifications of an extension that belong to a handler only to subscribers that may call the handler.
 */
import type { HandlerCall, Published } from "../call/lives.ts";
import type { Deliver } from "./topics.ts";

/** Checks the subscriber of one subscription before each notification that belongs to a handler. */
export class CheckedDelivery {
  readonly #deliver: Deliver;
  readonly #mayCall: (handler: HandlerCall) => Promise<boolean>;
  /** Notifications that wait for the check, by method and topic. */
  readonly #waiting = new Map<string, Published>();
  #isChecking = false;
  #isOver = false;

  /** Calls `deliver` with the notifications of handlers for which `mayCall` resolves to `true`. */
  constructor(deliver: Deliver, mayCall: (handler: HandlerCall) => Promise<boolean>) {
    this.#deliver = deliver;
    this.#mayCall = mayCall;
  }

  deliver(published: Published): void {
    if (!published.handler) return this.#deliver(published);
    this.#waiting.set(`${published.method} ${published.topic}`, published);
    if (!this.#isChecking) void this.#checkAll();
  }

  /** Delivers no more notifications. */
  stop(): void {
    this.#isOver = true;
    this.#waiting.clear();
  }

  // Checks one notification after another, so that they stay in order. Meanwhile, only the newest notification per
  // method and topic waits.
  async #checkAll(): Promise<void> {
    this.#isChecking = true;
    for (const [key, published] of this.#waiting) {
      this.#waiting.delete(key);
      const mayGet = !published.handler || await this.#mayCall(published.handler);
      if (mayGet && !this.#isOver) this.#deliver(published);
    }
    this.#isChecking = false;
  }
}
