/**
 * Delivers notifications only to subscribers that may see the extension and may call the notification's handler.
 */
import type { HandlerCall } from "../call/handler_call.ts";
import type { Published } from "../call/lives.ts";
import type { Deliver } from "./watched_topic.ts";

export class CheckedDelivery {
  readonly #deliver: Deliver;
  readonly #mayCall: (handler: HandlerCall) => Promise<boolean>;
  readonly #findShown: () => (() => boolean | Promise<boolean>) | undefined;
  /** Notifications that wait for the check, by method and topic. */
  // Bound: one per topic of the subscription.
  readonly #waiting = new Map<string, Published>();
  #isChecking = false;
  #isOver = false;

  /** `findShown` returns `undefined` if the extension exists for everybody. */
  constructor(
    deliver: Deliver,
    mayCall: (handler: HandlerCall) => Promise<boolean>,
    findShown: () => (() => boolean | Promise<boolean>) | undefined,
  ) {
    this.#deliver = deliver;
    this.#mayCall = mayCall;
    this.#findShown = findShown;
  }

  deliver(published: Published): void {
    if (!published.handler && !this.#findShown()) return this.#deliver(published);
    this.#waiting.set(`${published.method} ${published.topic}`, published);
    if (!this.#isChecking) void this.#checkAll();
  }

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
      const isShown = await this.#findShown()?.() ?? true;
      const mayGet = isShown && (!published.handler || await this.#mayCall(published.handler));
      if (mayGet && !this.#isOver) this.#deliver(published);
    }
    this.#isChecking = false;
  }
}
