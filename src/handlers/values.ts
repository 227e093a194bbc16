/**
 * Code that most servers never need: guards, encoders for values that JSON cannot represent, and the questions of the
 * `confirm` option. Loaded by `value_room.ts`.
 *
 * @module
 */
export { EncodedResults } from "./encoded_results.ts";
export { runFiltered } from "./filters.ts";
export { runConfirmed } from "./confirm.ts";
