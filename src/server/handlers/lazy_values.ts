/**
 * Loads code that most servers never need: guards, encoders for values that JSON cannot represent, and tools that
 * differ between callers.
 */
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { FilteredRun, Guarded } from "./guarded_run.ts";

export const loadValues = (): Promise<typeof import("./values.ts")> => import("./values.ts");

export async function runGuarded(guarded: Guarded, run: FilteredRun): Promise<Result> {
  return await (await loadValues()).runFiltered(guarded, run);
}
