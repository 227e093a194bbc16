/**
 * The one spelling of converted path parameters. Without it, `/1`, `/01`, `/0x1` and `/%201` would be four tenants, and
 * a client could open as many as it wants.
 *
 * @module
 */
import type { Checked } from "../../schema/schema.ts";
import type { PathValues } from "./path_template.ts";

/** Converts and checks texts. */
export type Convert = (values: PathValues) => Promise<Checked>;

/**
 * Tests whether every text is the one that its converted value is written as.
 *
 * A value that is read back from its text as another one, such as an id with a prefix that the schema adds, and an object
 * have no such text. Their spelling is up to the schema.
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
