/**
 * Leads to guards and encoders, which most servers never need.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { FilteredRun, Guarded } from "./filters.ts";

/** Runs a handler within its guards and encoders. */
export async function runGuarded(guarded: Guarded, run: FilteredRun): Promise<Result> {
  const { runFiltered } = await import("./filters.ts");
  return await runFiltered(guarded, run);
}
