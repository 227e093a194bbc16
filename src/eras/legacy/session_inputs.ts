/**
 * The questions and the values of one call in a session. The handler keeps running while it waits for answers.
 *
 * @module
 */
import type { Core } from "../../core/core.ts";
import { Answers } from "../../core/call/answers.ts";
import { OnceValues } from "../../core/call/once.ts";

/** The questions and the values of one call. */
export class SessionInputs {
  readonly #core: Core;
  readonly #answers = new Answers();
  #made?: OnceValues;

  /** Creates the state of a call. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Asks the client. */
  ask(key: string, ask: () => Promise<unknown>): Promise<unknown> {
    return this.#answers.get(key, ask);
  }

  /** Returns the value under this key. Computes the value first if there is no value yet. */
  async once(key: string, make: () => unknown): Promise<unknown> {
    return await (this.#made ??= new OnceValues({ limits: this.#core.limits.calls })).get(key, make);
  }
}
