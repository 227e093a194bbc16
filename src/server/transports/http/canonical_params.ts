/**
 * Checks that path parameters are spelled like their converted values. Without this check, `/1`, `/01`, `/0x1` and
 * `/%201` would be four tenants, and a client could create any number of tenants.
 */
import type { Checked } from "../../../core/schema/schema.ts";
import type { PathValues } from "./path_template.ts";

export type Convert = (values: PathValues) => Promise<Checked>;

/**
 * Tests whether each parameter equals its converted value, written as text. The test does not apply to objects, nor to
 * values that the schema would convert again to another value, such as an id to which the schema adds a prefix. For
 * these values, only the schema decides which spellings are valid.
 */
export async function isCanonical(values: PathValues, converted: unknown, convert: Convert): Promise<boolean> {
  for (const [name, text] of Object.entries(values)) {
    const written = write(converted, name);
    if (written === undefined || written === text) continue;
    const again = await convert({ ...values, [name]: written });
    if (again.problem === undefined && write(again.value, name) === written) return false;
  }
  return true;
}

function write(converted: unknown, name: string): string | undefined {
  const value: unknown = Object.hasOwn(Object(converted), name) ? Reflect.get(Object(converted), name) : undefined;
  return ["string", "number", "bigint", "boolean"].includes(typeof value) ? String(value) : undefined;
}
