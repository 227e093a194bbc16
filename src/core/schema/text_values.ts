/**
 * Converts values that arrive as text, such as path parameters, and validates the values against a schema.
 */
import { adaptInput } from "./adapt_input.ts";
import type { Checked, CompiledSchema } from "./schema.ts";

export type TextValues = Readonly<Record<string, string | undefined>>;

/**
 * Texts such as `7` and `true` are converted where the schema accepts a number or boolean, but no text. The result is
 * synchronous unless the schema is asynchronous.
 */
export function readTextValues(schema: CompiledSchema, values: TextValues): Checked | Promise<Checked> {
  const adapted = adaptInput({ ...values }, schema.json(), { jsonText: LIMITS });
  return adapted.problem === undefined ? schema.validate(adapted.value) : adapted;
}

// Low limits suffice, because values from a path or URI are short.
const LIMITS = { depth: 2, values: 100 };
