/**
 * Rewrites references within a JSON Schema, so that each of them leads to a part of `$defs`. Some clients reject a whole
 * list of tools because of a reference to another place, such as `#` or `#/properties/child`.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { followRef, type JsonSchema, mapSubschemas } from "./json_schema.ts";

/** Matches the text of a schema with a reference to a place outside of `$defs`. References to an anchor do not match. */
const OUTSIDE = /"\$ref":"#(?:"|\/(?!\$defs\/))/;

/** Matches a reference to a place outside of `$defs`. */
const isOutside = (ref: unknown): ref is string => typeof ref === "string" && /^#(?:$|\/(?!\$defs\/))/.test(ref);

/**
 * Moves the parts to which references lead to `$defs`. Returns the same schema if all references lead to `$defs`.
 * References to `definitions` of draft-07 are rewritten too.
 */
export function gatherDefs(root: JsonSchema): JsonSchema {
  if (!OUTSIDE.test(JSON.stringify(root))) return root;
  const { $defs: own, definitions, ...rest } = root;
  const defs = new Map<string, unknown>(Object.entries(Object(own)));
  /** The names in `$defs` of the moved parts, by reference. */
  const moved = new Map<string, string>();
  const move = (ref: string): string => {
    const known = moved.get(ref);
    if (known !== undefined) return known;
    const name = toFreeName(toName(ref), defs);
    moved.set(ref, name);
    // Reserve the name, because the part may contain further references.
    defs.set(name, true);
    defs.set(name, rewrite(toPart(ref === "#" ? rest : followRef(root, ref))));
    return name;
  };
  const rewrite = (sub: unknown): unknown => {
    if (!isObject(sub)) return sub;
    const mapped = mapSubschemas(sub, rewrite);
    return isOutside(mapped.$ref) ? { ...mapped, $ref: `#/$defs/${toToken(move(mapped.$ref))}` } : mapped;
  };
  const rewritten = rewrite(rest);
  for (const [name, part] of Object.entries(Object(own))) defs.set(name, rewrite(part));
  // All references to `definitions` lead to the moved parts.
  const isMoved = [...moved.keys()].some((ref) => ref.startsWith("#/definitions/"));
  // The cast is safe, because the root is an object.
  const whole = rewritten as JsonSchema;
  return { ...whole, ...definitions === undefined || isMoved ? {} : { definitions }, $defs: Object.fromEntries(defs) };
}

/** Returns a copy of a schema for `$defs`. Removes members that must occur only once, or only in the root. */
function toPart(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !/^\$(id|schema|anchor)$/.test(key)));
}

/**
 * Prepares the schema of a property to become a part of an object's schema: renames its `$defs` if their names are taken,
 * and lets references to its root lead to the property.
 */
export function renameDefs(json: JsonSchema, property: string, taken: ReadonlyMap<string, unknown>): JsonSchema {
  const { $defs, ...rest } = json;
  const names = new Map(Object.keys(Object($defs)).map((name) => [toToken(name), toFreeName(name, taken)]));
  const toRef = (ref: string) => {
    const [, name = "", inner = ""] = /^#\/\$defs\/([^/]*)(.*)$/s.exec(ref) ?? [];
    const renamed = names.get(name);
    return renamed === undefined ? `#/properties/${toToken(property)}${ref.slice(1)}` : `#/$defs/${toToken(renamed)}${inner}`;
  };
  const rewrite = (sub: unknown): unknown => {
    if (!isObject(sub)) return sub;
    const mapped = mapSubschemas(sub, rewrite);
    return typeof mapped.$ref === "string" && mapped.$ref.startsWith("#") ? { ...mapped, $ref: toRef(mapped.$ref) } : mapped;
  };
  const renamed = Object.entries(Object($defs)).map(([name, part]) => [names.get(toToken(name)) ?? name, rewrite(part)]);
  // The cast is safe, because the root is an object.
  return { ...rewrite(rest) as JsonSchema, ...renamed.length ? { $defs: Object.fromEntries(renamed) } : {} };
}

/**
 * Replaces the reference of a root with its target, so that clients find the properties in the root. Returns the same
 * schema if keywords beside the reference limit the values too.
 */
export function inlineRoot(root: JsonSchema, steps = 0): JsonSchema {
  const { $ref, ...own } = root;
  if (typeof $ref !== "string" || steps > MAX_STEPS || !Object.keys(own).every((key) => BESIDE.test(key))) return root;
  const target = followRef(root, $ref);
  // The cast is safe, because the target is an object.
  return isObject(target) ? inlineRoot({ ...toPart(target) as JsonSchema, ...own }, steps + 1)
    : root;
}

/** Matches keywords that do not limit the values. */
const BESIDE = /^(\$(defs|schema|id|comment|anchor)|definitions|title|description|default|examples|deprecated|type)$/;

/** Whether a schema accepts no other values than objects. `root` is the schema that contains it. */
export function acceptsOnlyObjects(sub: unknown, root: JsonSchema, steps = 0): boolean {
  if (!isObject(sub) || steps > MAX_STEPS) return false;
  const accepts = (part: unknown) => acceptsOnlyObjects(part, root, steps + 1);
  const { type, $ref, allOf, anyOf, oneOf } = sub;
  if (type === "object" || Array.isArray(type) && type.length === 1 && type[0] === "object") return true;
  if (typeof $ref === "string" && $ref.startsWith("#") && accepts(followRef(root, $ref))) return true;
  if (Array.isArray(allOf) && allOf.some(accepts)) return true;
  return [anyOf, oneOf].some((forms) => Array.isArray(forms) && forms.length > 0 && forms.every(accepts));
}

/** Maximum number of nested references and alternatives that are followed. */
const MAX_STEPS = 64;

/** Returns the last readable step of a reference as a name. */
function toName(ref: string): string {
  const steps = ref.split("/").slice(1).filter((step) => !/^(\d+|items|properties|anyOf|oneOf|allOf)$/.test(step));
  return steps.at(-1)?.replaceAll("~1", "/").replaceAll("~0", "~").replace(/[^\w.-]+/g, "_") || "root";
}

function toFreeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  let free = name;
  for (let i = 2; taken.has(free); i++) free = `${name}_${i}`;
  return free;
}

/** Escapes a name for a JSON pointer in a URI fragment. */
function toToken(name: string): string {
  return encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
}
