/**
 * Code that most servers never need: guards, encoders for values that JSON cannot represent, and tools that differ
 * between callers. Loaded by `lazy_values.ts`.
 */
export { EncodedResults } from "./encoded_results.ts";
export { runFiltered } from "./guarded_run.ts";
export { toVariant } from "./variant.ts";
