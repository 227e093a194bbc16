/**
 * Code for schemas that few servers need: checking values against a JSON Schema or a shape, and converting text to the
 * types of a schema.
 */
export { adaptInput } from "./adapt_input.ts";
export { createReader } from "./json_check.ts";
export { validateShape } from "./shape.ts";
export { readTextValues } from "./text_values.ts";
