/**
 * Leads to what most servers never need: guards, encoders, and the encoding of values that JSON cannot represent.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { FilteredRun, Guarded } from "./filters.ts";

/** Loads the encoding of values. */
export const loadValues = (): Promise<typeof import("./encoded_results.ts")> => import("./encoded_results.ts");

/** Runs a handler within its guards and encoders. */
export async function runGuarded(guarded: Guarded, run: FilteredRun): Promise<Result> {
  const { runFiltered } = await loadValues();
  return await runFiltered(guarded, run);
}
