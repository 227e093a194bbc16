/**
 * The interface of steps around the function of a tool: its cache, its retries and its circuit breaker.
 * `@x/mcp/handlers` creates them.
 *
 * @module
 */
import type { Context } from "../call/context.ts";
import { INTERNALS } from "../call/internals.ts";
import type { ToolAnnotations } from "../../protocol/types.ts";

/** The name of a step, which is also the name of its option. */
export type StepName = "circuit" | "retry" | "cache";

/** The function of a tool. Its input was validated and has passed the guards. */
export type Run = (input: never, ctx: Context<never>) => unknown;

/** Wraps the function of a tool, given the tool's options. Throws if the step does not suit the tool. */
export type WrapRun = (run: Run, tool: SteppedTool) => Run;

/** The options of a tool that has a step. */
export interface SteppedTool {
  readonly name: string;
  readonly annotations?: ToolAnnotations;
}

/** A step around the function of a tool, for the option `cache`, `retry` or `circuit`. */
export interface Step<Name extends StepName> {
  /**
   * Internal state for the handler.
   *
   * @ignore
   */
  readonly [INTERNALS]: { readonly [N in Name]: WrapRun };
}

/** Options of a tool that may have steps. */
interface SteppedOptions extends SteppedTool {
  readonly run: Run;
  readonly cache?: Step<"cache">;
  readonly retry?: Step<"retry">;
  readonly circuit?: Step<"circuit">;
}

/** Wraps the function of a tool in its steps. Throws if an option is not a step. */
export function wrapRun(options: SteppedOptions, place: string): Run {
  let { run } = options;
  // Wrap the innermost step first.
  for (const name of ["circuit", "retry", "cache"] as const) {
    if (options[name] === undefined) continue;
    const wrap: WrapRun | undefined = Object(options[name])[INTERNALS]?.[name];
    if (!wrap) throw new TypeError(`Cannot make ${place}: its ${name} is not one of @x/mcp/handlers`);
    run = wrap(run, options);
  }
  return run;
}
