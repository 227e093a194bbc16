/**
 * The questions and the values of one call in a session, which waits for its answers.
 *
 * @module
 */
import type { Core } from "../../core/core.ts";
import { OnceValues } from "../../core/call/once.ts";

/** The questions and the values of one call. */
export class SessionInputs {
  readonly #core: Core;
  readonly #answers = new Map<string, Promise<unknown>>();
  #made?: OnceValues;

  /** Creates the state of a call. */
  constructor(core: Core) {
    this.#core = core;
  }

  /** Asks the client. A key stands for one question, so it has one answer, as where the handler runs again. */
  async ask(key: string, ask: () => Promise<unknown> | undefined): Promise<unknown> {
    const answer = this.#answers.get(key) ?? ask();
    if (answer) this.#answers.set(key, answer);
    try {
      return await answer;
    } catch (error) {
      // The handler may ask again.
      this.#answers.delete(key);
      throw error;
    }
  }

  /** Returns the value under this key, or computes it. */
  async once(key: string, make: () => unknown): Promise<unknown> {
    return await (this.#made ??= new OnceValues({ limits: this.#core.limits.calls })).get(key, make);
  }
}
