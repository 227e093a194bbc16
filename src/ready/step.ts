/**
 * Makes the steps around the function of a tool.
 *
 * @module
 */
import type { Call } from "../core/call/call.ts";
import type { Context } from "../core/call/context.ts";
import { CALL, INTERNALS } from "../core/call/internals.ts";
import type { Step, StepName, SteppedTool, WrapRun } from "../core/visibility/run_steps.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";

/** One run of a function. */
export interface SteppedRun {
  readonly call: Call;
  readonly core: FeatureParts;
  /** The validated and guarded input. */
  readonly input: unknown;
  /** Runs the function, or the inner step. */
  readonly next: () => unknown;
  /** Whether the function has asked its client or used `ctx.once`. */
  readonly usesRounds: () => boolean;
}

/** Makes a step for the option with this name. `bind` throws if the step does not fit a tool. */
export function makeStep<Name extends StepName>(
  name: Name,
  bind: (tool: SteppedTool) => (run: SteppedRun) => unknown,
): Step<Name> {
  const wrap: WrapRun = (run, tool) => {
    const step = bind(tool);
    return (input, ctx) => {
      const call = toCall(ctx);
      // The scheduler runs tools with calls of a server, whose parts are its core.
      const core = call.host.parts as FeatureParts;
      const { watched, usesRounds } = watchRounds(ctx, call);
      return step({ call, core, input, next: () => run(input, watched), usesRounds });
    };
  };
  // The only key is that of the step.
  return { [INTERNALS]: { [name]: wrap } } as unknown as Step<Name>;
}

// The context of a tool is its call, or has it.
function toCall(ctx: Context<never>): Call {
  return Reflect.get(ctx, CALL) ?? ctx;
}

/** The methods with which a handler asks its client, or keeps a value for the run after a question. */
const ROUNDS: readonly unknown[] = ["elicit", "elicitUrl", "sample", "roots", "forward", "once"];

/** Returns the context of a handler, and whether it has used rounds of questions. */
function watchRounds(ctx: Context<never>, call: Call): { watched: Context<never>; usesRounds: () => boolean } {
  let used = false;
  const note = (method: (...args: unknown[]) => unknown) => (...args: unknown[]) => {
    used = true;
    return method(...args);
  };
  // A resource may ask too.
  const read: Context["readResource"] = async (uri) => {
    try {
      return await call.readResource(uri);
    } finally {
      used ||= !!call.hasAsked;
    }
  };
  const watched = new Proxy(ctx, {
    get(target, name) {
      if (name === "readResource") return read;
      // The getters of a call belong to the call itself.
      const value: unknown = Reflect.get(target, name, target);
      return ROUNDS.includes(name) && typeof value === "function" ? note((...args) => value(...args)) : value;
    },
  });
  return { watched, usesRounds: () => used };
}
