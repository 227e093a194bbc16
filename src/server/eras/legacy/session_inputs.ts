/**
 * The state that a call in a session needs to ask the client questions. The handler keeps running while it waits for
 * answers.
 */
import type { Core } from "../../engine/core.ts";
import { Answers } from "../../call/answers.ts";
import { OnceValues } from "../../call/once.ts";

export class SessionInputs {
  readonly #core: Core;
  readonly #answers = new Answers();
  #made?: OnceValues;

  constructor(core: Core) {
    this.#core = core;
  }

  ask(key: string, ask: () => Promise<unknown>): Promise<unknown> {
    return this.#answers.get(key, ask);
  }

  async once(key: string, make: () => unknown): Promise<unknown> {
    return await (this.#made ??= new OnceValues({ limits: this.#core.limits.calls })).get(key, make);
  }
}
