/**
 * Describes JSON Schemas in a few words.
 */
import type { Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import { listProperties, type Property, resolveRef } from "../../core/schema/walker.ts";
import { truncate } from "./terminal_text.ts";

/** Returns the arguments that the properties of a schema describe. */
export function listArguments(schema: unknown): readonly Property[] {
  return listProperties(Object(schema)).map((each) => ({ ...each, schema: resolveRef(each.schema, Object(schema)) }));
}

/** Returns a type for an error message, such as `a number` or `"red" | "green"`. */
export function describeExpected(schema: unknown, root: Params): string {
  const type = describeType(schema, root);
  if (type === "boolean") return "true or false";
  if (/^\{[^}]*\}$/.test(type)) return `a JSON object ${type}`;
  if (/^(integer|object)\b(?!\[| \|)/.test(type)) return `an ${type}`;
  return /^(string|number)\b(?!\[| \|)/.test(type) ? `a ${type}` : type;
}

const MAX_ALTERNATIVES = 8;
const MAX_DEPTH = 4;
const MAX_LENGTH = 200;

/** Returns the type of a value, such as `integer`, `string[]` or `"red" | "green"`. */
export function describeType(schema: unknown, root: Params): string {
  return truncate(describe(schema, root, 0), MAX_LENGTH);
}

function describe(unresolved: unknown, root: Params, depth: number): string {
  const schema = resolveRef(unresolved, root);
  if (!isObject(schema) || depth > MAX_DEPTH) return "any";
  const { type, anyOf, oneOf = anyOf } = schema;
  const inner = (sub: unknown) => describe(sub, root, depth + 1);
  const values = "const" in schema ? [schema.const] : schema.enum;
  if (Array.isArray(values)) return join(values.map((value) => JSON.stringify(value) ?? "null"));
  if (Array.isArray(oneOf)) return join(oneOf.slice(0, MAX_ALTERNATIVES).map(inner));
  if (Array.isArray(type)) return join(type.map((each) => describe({ ...schema, type: each }, root, depth + 1)));
  if (type === "array") {
    const item = inner(schema.items ?? true);
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  if (type === "object" && isObject(schema.properties)) {
    const fields = listArguments(schema).slice(0, MAX_ALTERNATIVES);
    return `{ ${fields.map(({ name, isRequired }) => name + (isRequired ? "" : "?")).join(", ")} }`;
  }
  return typeof type === "string" ? type + describeBounds(schema) : "any";
}

function describeBounds({ type, format, ...bounds }: Params): string {
  // Omit the bounds of the safe integers, because some schema libraries write these bounds for every integer.
  const minimum = bounds.minimum === Number.MIN_SAFE_INTEGER ? undefined : bounds.minimum;
  const maximum = bounds.maximum === Number.MAX_SAFE_INTEGER ? undefined : bounds.maximum;
  if (type === "string") return typeof format === "string" ? ` (${format})` : "";
  if (typeof minimum === "number" && typeof maximum === "number") return ` ${minimum} to ${maximum}`;
  if (typeof minimum === "number") return ` from ${minimum}`;
  return typeof maximum === "number" ? ` to ${maximum}` : "";
}

function join(types: readonly string[]): string {
  return [...new Set(types)].join(" | ") || "nothing";
}
