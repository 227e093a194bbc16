/**
 * Creates the steps around a tool's `run` function: the cache, retries and the circuit breaker.
 *
 * @module
 */
import type { Call } from "../core/call/call.ts";
import type { Context } from "../core/call/context.ts";
import { CALL, INTERNALS } from "../core/call/internals.ts";
import type { Step, StepName, SteppedTool, WrapRun } from "../core/visibility/run_steps.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";

/** One run of a tool's `run` function within a step. */
export interface SteppedRun {
  readonly call: Call;
  /** The context of the function. */
  readonly ctx: Context<never>;
  readonly core: FeatureParts;
  /** The input, after validation and guards. */
  readonly input: unknown;
  /** Runs the function, or the inner step. */
  readonly next: () => unknown;
  /** Whether the function has sent a request to the client or used `ctx.once`. */
  readonly usesRounds: () => boolean;
}

/** Creates a step for the tool option `name`. `bind` throws if the step cannot be used with a tool. */
export function makeStep<Name extends StepName>(
  name: Name,
  bind: (tool: SteppedTool) => (run: SteppedRun) => unknown,
): Step<Name> {
  const wrap: WrapRun = (run, tool) => {
    const step = bind(tool);
    return (input, ctx) => {
      const call = toCall(ctx);
      // The cast is safe, because the host of a server's call always has the parts of the server's core.
      const core = call.host.parts as FeatureParts;
      const { watched, usesRounds } = watchRounds(ctx, call);
      return step({ call, ctx, core, input, next: () => run(input, watched), usesRounds });
    };
  };
  // The cast is safe, because the only key is the name of the step.
  return { [INTERNALS]: { [name]: wrap } } as unknown as Step<Name>;
}

// Returns the call to which a context belongs. A context with services is a separate object that refers to the call.
function toCall(ctx: Context<never>): Call {
  return Reflect.get(ctx, CALL) ?? ctx;
}

/** The context methods that send a request to the client, or store a value for the next run of the handler. */
const ROUNDS: readonly unknown[] = ["elicit", "elicitUrl", "sample", "roots", "forward", "once"];

/** Returns a context that records whether the handler sends a request to the client or uses `ctx.once`. */
function watchRounds(ctx: Context<never>, call: Call): { watched: Context<never>; usesRounds: () => boolean } {
  let used = false;
  const note = (method: (...args: unknown[]) => unknown) => (...args: unknown[]) => {
    used = true;
    return method(...args);
  };
  // The handler of the resource may also send a request to the client.
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
      // Use `target` as the receiver, because the getters of a call use its private fields.
      const value: unknown = Reflect.get(target, name, target);
      return ROUNDS.includes(name) && typeof value === "function" ? note((...args) => value(...args)) : value;
    },
  });
  return { watched, usesRounds: () => used };
}
