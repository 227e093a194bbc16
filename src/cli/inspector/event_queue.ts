/**
 * Events for the page, which it reads as they come.
 *
 * @module
 */
import type { Params } from "../../client/client.ts";

/** Events that one reader gets in their order, until the end. */
export class EventQueue {
  readonly #events: Params[] = [];
  #isEnded = false;
  #wakeUp = Promise.withResolvers<void>();

  /** Adds an event. */
  add(event: Params): void {
    this.#events.push(event);
    this.#wakeUp.resolve();
  }

  /** Ends the reading after the events that have been added. */
  end(): void {
    this.#isEnded = true;
    this.#wakeUp.resolve();
  }

  /** Yields the events. */
  async *read(): AsyncGenerator<Params> {
    while (!this.#isEnded || this.#events.length) {
      yield* this.#events.splice(0);
      if (this.#isEnded) continue;
      await this.#wakeUp.promise;
      this.#wakeUp = Promise.withResolvers<void>();
    }
  }
}
