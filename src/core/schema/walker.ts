/**
 * Walks JSON Schemas: finds the parts of a schema, and the schemas to which references lead.
 */
import { isObject, readAt } from "../kit/json.ts";

/** A JSON Schema that is an object, as the protocol requires for root schemas. */
export type JsonSchema = { readonly [key: string]: unknown };

/** Keywords that contain schemas, keyed by names that the author chooses. */
export const NAMED = /^(\$defs|definitions|(patternP|p)roperties|depend(encies|ent(Schemas|Required)))$/;
/** Keywords that contain a schema or a list of schemas. */
export const HOLDING =
  /^(not|if|then|else|(all|any|one)Of|(prefixI|i)tems|contains|contentSchema|propertyNames|(unevaluated|additional)(Items|Properties))$/;

/** `name` is the property name if the keyword contains named schemas. */
export function eachSubschema(schema: JsonSchema, visit: (sub: unknown, keyword: string, name?: string) => void): void {
  for (const [key, value] of Object.entries(schema)) {
    if (NAMED.test(key) && isObject(value)) {
      // Lists in `dependentRequired` and `dependencies` contain names, not schemas.
      for (const name in value) if (!Array.isArray(value[name])) visit(value[name], key, name);
    } else if (HOLDING.test(key) && value !== undefined) [value].flat().forEach((sub) => visit(sub, key));
  }
}

/** Returns a copy of a schema in which `map` has replaced each direct subschema. */
export function mapSubschemas(schema: JsonSchema, map: (sub: unknown) => unknown): JsonSchema {
  const entries = Object.entries(schema).map(([key, value]) => {
    if (NAMED.test(key) && isObject(value)) {
      const parts = Object.entries(value).map(([name, part]) => [name, Array.isArray(part) ? part : map(part)]);
      return [key, Object.fromEntries(parts)];
    }
    if (!HOLDING.test(key)) return [key, value];
    return [key, Array.isArray(value) ? value.map(map) : map(value)];
  });
  return Object.fromEntries(entries);
}

/** Returns the keys to which a reference such as `#/$defs/pet` leads. Returns no keys for other references. */
export function toTokens(ref: string): readonly string[] {
  if (!ref.startsWith("#/")) return [];
  return ref.slice(2).split("/").map((token) => decode(token).replaceAll("~1", "/").replaceAll("~0", "~"));
}

function decode(token: string): string {
  if (!token.includes("%")) return token;
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}

const anchors = new WeakMap<object, ReadonlyMap<string, JsonSchema>>();

/** Returns the value of a reference within `root`, or `undefined` if it leads to no value or out of the root. */
export function followRef(root: JsonSchema, ref: string): unknown {
  if (ref === "#") return root;
  const tokens = toTokens(ref);
  if (tokens.length) return readAt(root, tokens);
  if (!ref.startsWith("#")) return;
  if (!anchors.has(root)) anchors.set(root, listAnchors(root));
  return anchors.get(root)?.get(ref);
}

/** Keyed by reference, such as `#name`. If several schemas have the same anchor, the first schema is used. */
function listAnchors(schema: JsonSchema): ReadonlyMap<string, JsonSchema> {
  const anchors = new Map<string, JsonSchema>();
  const seen = new Set<JsonSchema>();
  const visit = (sub: unknown) => {
    if (!isObject(sub) || seen.has(sub)) return;
    seen.add(sub);
    for (const name of [sub.$anchor, sub.$dynamicAnchor]) {
      if (name !== undefined && !anchors.has(`#${name}`)) anchors.set(`#${name}`, sub);
    }
    eachSubschema(sub, visit);
  };
  visit(schema);
  return anchors;
}

/** Maximum number of references that lead to one schema, because references may be circular. */
const MAX_REFS = 8;

/** Follows the reference of a schema, whose keywords override the target's. Returns any other value unchanged. */
export function resolveRef(schema: unknown, root: JsonSchema): unknown {
  let found = schema;
  for (let refs = 0; refs < MAX_REFS && isObject(found) && typeof found.$ref === "string"; refs++) {
    const { $ref, ...own } = found;
    const target = followRef(root, String($ref));
    found = isObject(target) ? { ...target, ...own } : own;
  }
  return found;
}

/** Lists the schemas that may apply to one value: a schema, its references and its parts. */
export function listParts(root: JsonSchema, schema: unknown, seen: Set<unknown> = new Set()): readonly JsonSchema[] {
  if (!isObject(schema) || seen.has(schema)) return [];
  seen.add(schema);
  const { $ref } = schema;
  const parts = PARTS.flatMap((key) => Array.isArray(schema[key]) ? schema[key] : []);
  const all = typeof $ref === "string" ? [followRef(root, $ref), ...parts] : parts;
  return [schema, ...all.flatMap((part) => listParts(root, part, seen))];
}

/** Keywords whose lists of schemas may apply to the value itself. */
export const PARTS: readonly string[] = ["allOf", "anyOf", "oneOf"];

/** Lists the schemas of a member or an item of a value. `parts` are the schemas of the value. */
export function listInner(root: JsonSchema, parts: readonly JsonSchema[], key: string | number): readonly JsonSchema[] {
  const inner = parts.flatMap(({ properties, additionalProperties, prefixItems, items }): readonly unknown[] =>
    typeof key === "number"
      ? [Array.isArray(prefixItems) ? prefixItems[key] ?? items : items]
      : [readAt(properties, [key]) ?? additionalProperties]
  );
  // Each schema counts once. Several parts may refer to the same schema, also to their own, and the number of parts would
  // otherwise multiply on each level of the value.
  const seen = new Set<unknown>();
  return inner.flatMap((schema) => listParts(root, schema, seen));
}

export interface Property {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

export function listProperties({ properties, required }: JsonSchema): readonly Property[] {
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(isObject(properties) ? properties : {})
    .map(([name, schema]) => ({ name, schema, isRequired: names.includes(name) }));
}

export function typesOf(value: unknown): readonly string[] {
  if (value === null) return ["null"];
  if (Array.isArray(value)) return ["array"];
  return Number.isInteger(value) ? ["integer", "number"] : [typeof value];
}

export interface Choice {
  readonly value: unknown;
  /** The title. Not always a text. */
  readonly title?: unknown;
}

/**
 * Lists the values that `const`, `enum`, `anyOf` or `oneOf` allows. Returns `undefined` if the schema has none of these
 * keywords, or alternatives that are not constants.
 */
export function listChoices(schema: JsonSchema): readonly Choice[] | undefined {
  const { const: only, enum: values, enumNames, oneOf, anyOf = oneOf } = schema;
  if (only !== undefined) return [{ value: only }];
  if (Array.isArray(values)) return values.map((value, i) => ({ value, title: readAt(enumNames, [i]) }));
  if (!Array.isArray(anyOf) || !anyOf.every((one) => isObject(one) && "const" in one)) return;
  return anyOf.map((one) => ({ value: one.const, title: one.title }));
}
