/**
 * Code that most servers never need: guards, encoders, the encoding of values that JSON cannot represent, and questions
 * before a tool runs. Loaded by `value_room.ts`.
 *
 * @module
 */
export { EncodedResults } from "./encoded_results.ts";
export { runFiltered } from "./filters.ts";
export { runConfirmed } from "./confirm.ts";
