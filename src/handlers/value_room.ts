/**
 * Loads code that most servers never need: guards, encoders for values that JSON cannot represent, the questions of the
 * `confirm` option, and tools that differ between callers.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Run } from "../core/visibility/run_steps.ts";
import type { Confirmed } from "./confirm.ts";
import type { FilteredRun, Guarded } from "./filters.ts";

/** Loads the code for guards, encoders, `confirm` and `forCaller`. */
export const loadValues = (): Promise<typeof import("./values.ts")> => import("./values.ts");

/** Runs a handler within its guards and encoders. */
export async function runGuarded(guarded: Guarded, run: FilteredRun): Promise<Result> {
  return await (await loadValues()).runFiltered(guarded, run);
}

/**
 * Returns a function that asks the user for consent before the tool runs. Returns `run` unchanged if the tool has no
 * `confirm`.
 */
export function confirmFirst(tool: Confirmed, run: Run): Run {
  return tool.confirm === undefined
    ? run
    : async (...given) => await (await loadValues()).runConfirmed(tool, run, ...given);
}
