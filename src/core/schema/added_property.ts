/**
 * Adds a property to the schema of an object. A value with the property is valid if and only if the value without the
 * property was valid before, apart from limits on the number of properties.
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { gatherDefs, inlineRoot } from "./json_refs.ts";
import { followRef, type JsonSchema } from "./walker.ts";

export interface AddedProperty {
  readonly name: string;
  /** Schema of an object whose only property is the added property. */
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** Why a property cannot be added: the schema has a property of this name, or no place for another property. */
export type NoPlace = "taken" | "closed";

/** Returns the schema of an object that also has the property. */
export function addProperty(given: JsonSchema, { name, schema, isRequired }: AddedProperty): JsonSchema | NoPlace {
  const gathered = gatherDefs(given);
  // In draft-07, the keywords beside a reference do not count.
  const { $ref, ...root } = isObject(followRef(gathered, String(gathered.$ref))) ? inlineRoot(gathered) : gathered;
  const opening = new Opening(root, name);
  const opened = opening.open($ref === undefined ? root : { ...root, allOf: [...toList(root.allOf), { $ref }] }, true);
  if (opening.problem) return opening.problem;
  const part = toInner(schema, name, root);
  return {
    ...opened,
    properties: { ...Object(opened.properties), ...part.properties },
    ...isRequired && { required: [...toList(opened.required), name] },
    ...(opening.defs.size || part.defs.length) && {
      $defs: { ...Object(root.$defs), ...Object.fromEntries(opening.defs), ...Object.fromEntries(part.defs) },
    },
  };
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the property, and the parts to which its references lead, under names that `root` does not use. */
function toInner(schema: JsonSchema, name: string, root: JsonSchema) {
  let prefix = `${name}_`;
  while (Object.keys(Object(root.$defs)).some((key) => key.startsWith(prefix))) prefix += "_";
  const text = JSON.stringify(gatherDefs(schema)).replaceAll('"$ref":"#/$defs/', `$&${prefix}`);
  const { properties, $defs = {} }: JsonSchema = JSON.parse(text);
  const defs = Object.entries(Object($defs)).map(([key, part]) => [prefix + key, part] as const);
  return { properties: Object(properties), defs };
}

/** Opens the schemas that apply to the object itself, so that they permit a property with any value. */
class Opening {
  readonly #root: JsonSchema;
  readonly #name: string;
  /** The new references, by the reference to a part that is not open. */
  // Bound: the references of one schema.
  readonly #refs = new Map<string, string>();
  // Bound: the references of one schema.
  readonly defs = new Map<string, unknown>();
  problem?: NoPlace;

  constructor(root: JsonSchema, name: string) {
    this.#root = root;
    this.#name = name;
  }

  open(part: JsonSchema, isRoot = false): JsonSchema {
    const name = this.#name;
    const opened = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, this.#openKeyword(key, value)]));
    if (isRoot) return opened;
    // The limits count the property too.
    if ("minProperties" in part || "maxProperties" in part) this.problem ??= "closed";
    const isClosed = [part.additionalProperties, part.unevaluatedProperties].some((rest) =>
      rest !== undefined && rest !== true
    );
    return isClosed ? { ...opened, properties: { ...Object(opened.properties), [name]: {} } } : opened;
  }

  #openKeyword(key: string, value: unknown): unknown {
    const name = this.#name;
    const each = (sub: unknown) => isObject(sub) ? this.open(sub) : sub;
    switch (key) {
      case "$ref":
        return this.#openRef(String(value));
      case "allOf":
      case "anyOf":
      case "oneOf":
        return toList(value).map(each);
      case "not":
      case "if":
      case "then":
      case "else":
        return each(value);
      case "dependentSchemas":
      case "dependencies":
        if (Object.hasOwn(Object(value), name)) this.problem = "taken";
        return Object.fromEntries(Object.entries(Object(value)).map(([on, sub]) => [on, each(sub)]));
      case "properties":
      case "dependentRequired":
        if (Object.hasOwn(Object(value), name)) this.problem = "taken";
        return value;
      case "required":
        if (toList(value).includes(name)) this.problem = "taken";
        return value;
      case "patternProperties":
        if (Object.keys(Object(value)).some((pattern) => matches(pattern, name))) this.problem ??= "closed";
        return value;
      case "propertyNames":
        return { anyOf: [{ const: name }, value] };
      case "maxProperties":
        return Number(value) + 1;
      case "enum":
      case "const":
      case "$anchor":
      case "$dynamicAnchor":
      case "$dynamicRef":
      case "$recursiveRef":
        this.problem ??= "closed";
        return value;
      default:
        return value;
    }
  }

  /** Copies the target of a reference, because other references to the target may describe other objects. */
  #openRef(ref: string): string {
    const known = this.#refs.get(ref);
    if (known !== undefined) return known;
    const target = followRef(this.#root, ref);
    if (typeof target === "boolean") return ref;
    // A reference out of the schema may lead to a schema that permits no other property.
    if (!isObject(target)) {
      this.problem ??= "closed";
      return ref;
    }
    let key = `with_${this.#name}`;
    while (this.defs.has(key) || Object.hasOwn(Object(this.#root.$defs), key)) key += "_";
    const opened = `#/$defs/${key}`;
    this.#refs.set(ref, opened);
    // Reserve the name, because the target may contain further references.
    this.defs.set(key, true);
    const { $id: _id, $schema: _schema, $anchor: _anchor, $dynamicAnchor: _dynamic, ...copy } = target;
    this.defs.set(key, this.open(copy));
    return opened;
  }
}

/** A pattern of another server may not compile. It then counts as a match, because clients may read it in another way. */
function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern, "u").test(name);
  } catch {
    return true;
  }
}
