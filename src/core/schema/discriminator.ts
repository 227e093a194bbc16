/**
 * Finds the property that distinguishes the alternatives of a union, such as `kind`. With this property, a value is
 * checked against a single alternative.
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { JsonSchema } from "./json_schema.ts";

export interface Discriminator {
  readonly name: string;
  /** The alternatives, keyed by the value of the property. */
  readonly forms: ReadonlyMap<unknown, JsonSchema>;
}

/**
 * Finds the discriminator of alternatives. Returns `undefined` if there is no discriminator. An object with this
 * property can match only one alternative, which the value of the property selects. `toParts` returns the schemas that
 * apply together in an alternative: the alternative itself and the schema that it references.
 */
export function findDiscriminator(
  forms: readonly unknown[],
  toParts: (form: JsonSchema) => readonly unknown[],
): Discriminator | undefined {
  const all = forms.filter(isObject);
  const [first] = all;
  if (forms.length < 2 || all.length < forms.length) return;
  const names = toParts(first).flatMap((part) => Object.keys(Object(Object(part).properties)));
  for (const name of names) {
    const found = new Map<unknown, JsonSchema>();
    const isDistinct = all.every((form) => {
      const values = toParts(form).map((part) => findConstants(part, name)).find((values) => values);
      return values?.every((value) => !found.has(value) && found.set(value, form));
    });
    if (isDistinct) return { name, forms: found };
  }
}

/** Returns `undefined` if the property is not limited to constants, or if a constant is an object or array. */
function findConstants(part: unknown, name: string): readonly unknown[] | undefined {
  const { properties } = Object(part);
  if (!isObject(properties) || !Object.hasOwn(properties, name)) return;
  const { const: only, enum: choices }: JsonSchema = Object(properties[name]);
  const all = choices ?? (only === undefined ? undefined : [only]);
  if (!Array.isArray(all) || !all.length || all.some((one) => typeof one === "object" && one)) return;
  // Remove duplicates, because a schema may list the same value twice.
  return [...new Set(all)];
}
