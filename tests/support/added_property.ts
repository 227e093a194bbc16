// Compares a schema with the same schema to which a property was added. The judge is ajv.
import { assertEquals } from "@std/assert";
import { Ajv } from "ajv/dist/ajv.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import { addProperty } from "../../src/core/schema/added_property.ts";
import { JsonValues, MISTAKES } from "./json_values.ts";
import { random } from "./random.ts";

type Schema = Readonly<Record<string, unknown>>;

/** The name of the added property, which is in no compared schema. */
export const ADDED = "x_reason";

/** The schema of the added property, with a reference to one of its parts. */
const PROPERTY = {
  type: "object",
  properties: { [ADDED]: { type: "array", items: { $ref: "#/$defs/word" } } },
  $defs: { word: { type: "string" } },
};

function compile(schema: Schema): (value: unknown) => boolean {
  const options = { strict: false, validateFormats: false, logger: false } as const;
  const ajv = String(schema.$schema).includes("draft-07") ? new Ajv(options) : new Ajv2020(options);
  const check = ajv.compile({ ...schema });
  return (value) => check(value) === true;
}

/**
 * Makes values, half of them with a mistake. A value must be valid with the property if and only if it is valid without
 * the property. Returns how many values were valid, or why there is no place for the property.
 */
export function compareAdded(schema: Schema, count = 100): number | string {
  const added = addProperty(schema, { name: ADDED, schema: PROPERTY, isRequired: true });
  if (typeof added === "string") return added;
  const optional = addProperty(schema, { name: ADDED, schema: PROPERTY, isRequired: false });
  const [before, after, without] = [compile(schema), compile(added), compile(Object(optional))];
  const values = new JsonValues(schema, random(20261129));
  let valid = 0;
  for (let at = 0; at < count; at++) {
    const made = values.make();
    const value = Object(at % 2 ? values.spoil(made, MISTAKES[(at >> 1) % MISTAKES.length]) : made);
    const expected = before(value);
    const text = JSON.stringify(value);
    assertEquals(after({ ...value, [ADDED]: ["x"] }), expected, `with the property: ${text}`);
    assertEquals(without(value), expected, `without the property: ${text}`);
    assertEquals(after(value), false, `without a required property: ${text}`);
    assertEquals(after({ ...value, [ADDED]: [5] }), false, `with a wrong property: ${text}`);
    if (expected) valid++;
  }
  return valid;
}
