/**
 * The clock of a store. A store exists before the servers that use it, so the store takes over the clock of a server.
 */
import { type Clock, systemClock } from "../core/timers.ts";

/** The clock that was given to the store, or else the clock of the first server that uses the store. */
export class StoreClock implements Clock {
  #clock: Clock;
  /** Whether the clock can no longer change, because times of two clocks cannot be compared. */
  #isFixed: boolean;

  constructor(clock?: Clock) {
    this.#clock = clock ?? systemClock;
    this.#isFixed = clock !== undefined;
  }

  /** Takes over the clock of a server. Does nothing if the store has a clock, or has already read the time. */
  use(clock: Clock): void {
    if (!this.#isFixed) this.#clock = clock;
    this.#isFixed = true;
  }

  now(): number {
    this.#isFixed = true;
    return this.#clock.now();
  }

  date(): number {
    this.#isFixed = true;
    return this.#clock.date();
  }

  start(job: () => void, ms: number, options?: { readonly background?: boolean }): () => void {
    this.#isFixed = true;
    return this.#clock.start(job, ms, options);
  }
}
