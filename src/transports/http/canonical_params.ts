/**
 * Checks that path parameters have the same spelling as their converted values. Without this check, `/1`, `/01`, `/0x1`
 * and `/%201` would be four tenants, and a client could open as many tenants as it wants.
 *
 * @module
 */
import type { Checked } from "../../schema/schema.ts";
import type { PathValues } from "./path_template.ts";

/** Converts and checks texts. */
export type Convert = (values: PathValues) => Promise<Checked>;

/**
 * Tests whether each text equals its converted value, written as text.
 *
 * Some converted values have no such text: objects, and values that would be converted to another value again, such as
 * an id to which the schema adds a prefix. For such values, the schema alone decides about the spelling.
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
