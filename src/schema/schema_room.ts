/**
 * What few servers need of schemas: checking values against a JSON Schema, and converting text to what a schema expects.
 *
 * @module
 */
export { adaptInput } from "./adapt_input.ts";
export { createReader } from "./json_check.ts";
export { readTextValues } from "./text_values.ts";
