/**
 * The interface of steps, which wrap a tool's `run` function: a cache, retries or a circuit breaker. `@x/mcp/handlers`
 * creates steps.
 *
 * @module
 */
import type { Context } from "../call/context.ts";
import { INTERNALS } from "../call/internals.ts";
import type { ToolAnnotations } from "../../protocol/types.ts";

/** The name of a step, which is also the name of the tool option. */
export type StepName = "circuit" | "retry" | "cache";

/** A tool's `run` function. Called after the input was validated and has passed the guards. */
export type Run = (input: never, ctx: Context<never>) => unknown;

/** Wraps a tool's `run` function. Throws if the tool's options do not allow the step. */
export type WrapRun = (run: Run, tool: SteppedTool) => Run;

/** The tool options that steps use. */
export interface SteppedTool {
  readonly name: string;
  readonly annotations?: ToolAnnotations;
}

/** A step that wraps a tool's `run` function. Pass the step in the `cache`, `retry` or `circuit` option. */
export interface Step<Name extends StepName> {
  /**
   * Internal state that the handler uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: { readonly [N in Name]: WrapRun };
}

/** The tool options from which `wrapRun` reads. */
interface SteppedOptions extends SteppedTool {
  readonly run: Run;
  readonly cache?: Step<"cache">;
  readonly retry?: Step<"retry">;
  readonly circuit?: Step<"circuit">;
}

/** Wraps a tool's `run` function in the tool's steps. Throws if an option is not a step. */
export function wrapRun(options: SteppedOptions, place: string): Run {
  let { run } = options;
  // The circuit breaker is the innermost step, and the cache is the outermost step.
  for (const name of ["circuit", "retry", "cache"] as const) {
    if (options[name] === undefined) continue;
    const wrap: WrapRun | undefined = Object(options[name])[INTERNALS]?.[name];
    if (!wrap) {
      throw new TypeError(
        `Cannot make ${place}: ${name} was not created by ${name}(); use ${name}() from @x/mcp/handlers`,
      );
    }
    run = wrap(run, options);
  }
  return run;
}
