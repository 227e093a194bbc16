/**
 * Converts values that arrive as text, such as the parameters of a path, and checks them against a schema.
 *
 * @module
 */
import { adaptInput } from "./adapt_input.ts";
import type { Checked, CompiledSchema } from "./schema.ts";

/** Text values by name. */
export type TextValues = Readonly<Record<string, string | undefined>>;

/**
 * Converts and checks text values. Where the schema accepts a number or a boolean but no text, `7` and `true` are
 * converted. The result is synchronous unless the schema is asynchronous.
 */
export function readTextValues(schema: CompiledSchema, values: TextValues): Checked | Promise<Checked> {
  const adapted = adaptInput({ ...values }, schema.json(), { jsonText: LIMITS });
  return adapted.problem === undefined ? schema.validate(adapted.value) : adapted;
}

// Values from a path or a URI are short, so low limits suffice.
const LIMITS = { depth: 2, values: 100 };
