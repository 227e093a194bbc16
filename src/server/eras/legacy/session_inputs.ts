/**
 * The state that a call in a session needs to ask the client questions. The handler keeps running while it waits for
 * answers.
 */
import type { Core } from "../../engine/core.ts";
import { Answers } from "../../call/answers.ts";
import type { Call } from "../../call/call.ts";
import type { OnceOptions } from "../../call/context.ts";
import { OnceValues, reserveMemory } from "../../call/once.ts";

export class SessionInputs {
  readonly #core: Core;
  readonly #call: Call;
  readonly #answers = new Answers();
  #made?: OnceValues;

  constructor(core: Core, call: Call) {
    this.#core = core;
    this.#call = call;
  }

  ask(key: string, ask: () => Promise<unknown>): Promise<unknown> {
    return this.#answers.get(key, ask);
  }

  async once(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    const core = this.#core;
    this.#made ??= new OnceValues({ limits: core.limits.calls, reserve: reserveMemory(core, this.#call) });
    return await this.#made.get(key, make, options);
  }
}
