/**
 * Rewrites references within a JSON Schema, so that each of them leads to a part of `$defs`. Some clients reject a whole
 * list of tools because of a reference to another place, such as `#` or `#/properties/child`.
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { followRef, type JsonSchema, mapSubschemas } from "./walker.ts";

/** Matches the text of a schema with a reference to a place outside of `$defs`. References to an anchor do not match. */
const OUTSIDE = /"\$ref":"#("|\/(?!\$defs\/))/;

/** Keywords that do not limit the values. */
const ABOUT = /^(\$(defs|schema|id|comment|anchor)|definitions|title|description|default|examples|type)$/;

/** Maximum number of nested references and alternatives that are followed. */
const MAX_STEPS = 64;

/**
 * Moves the parts to which references lead to `$defs`. Returns the same schema if all references lead to `$defs`.
 * References to `definitions` of draft-07 are rewritten too.
 */
export function gatherDefs(root: JsonSchema): JsonSchema {
  if (!OUTSIDE.test(JSON.stringify(root))) return root;
  const { $defs, definitions: _definitions, ...rest } = root;
  const defs = new Map<string, unknown>(Object.entries(Object($defs)));
  /** The new references, by old reference. */
  const moved = new Map<string, string>();
  function move(ref: string): string {
    const known = moved.get(ref);
    if (known) return known;
    const name = ref.split(/[^\w.-]/).at(-1) || "root";
    let free = name;
    for (let i = 2; defs.has(free); i++) free = `${name}_${i}`;
    moved.set(ref, `#/$defs/${free}`);
    // Reserve the name, because the part may contain further references.
    defs.set(free, true);
    defs.set(free, rewrite(toPart(ref === "#" ? rest : followRef(root, ref))));
    return `#/$defs/${free}`;
  }
  function rewrite(sub: unknown): unknown {
    if (!isObject(sub)) return sub;
    const { $ref, $defs, ...rest } = mapSubschemas(sub, rewrite);
    // The `$defs` of a part have moved to the root, unless a reference by anchor leads to them.
    const mapped = JSON.stringify($defs)?.includes('"$anchor"') ? { ...rest, $defs } : rest;
    if (typeof $ref !== "string") return mapped;
    return { $ref: OUTSIDE.test(`"$ref":"${$ref}"`) ? move($ref) : $ref, ...mapped };
  }
  const whole: JsonSchema = Object(rewrite(rest));
  for (const [name, part] of Object.entries(Object($defs))) defs.set(name, rewrite(part));
  // All references to `definitions` lead to the moved parts.
  return { ...whole, $defs: Object.fromEntries(defs) };
}

/** Returns a copy of a schema for `$defs`, without the members that must occur only once, or only in the root. */
function toPart(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const { $id: _id, $schema: _schema, $anchor: _anchor, ...part } = schema;
  return part;
}

/**
 * Replaces the reference of a root with its target, so that clients find the properties in the root. Returns the same
 * schema if keywords beside the reference limit the values too.
 */
export function inlineRoot(root: JsonSchema, steps = 0): JsonSchema {
  const { $ref, ...own } = root;
  if (typeof $ref !== "string" || steps > MAX_STEPS || !Object.keys(own).every((key) => ABOUT.test(key))) return root;
  return inlineRoot({ ...Object(toPart(followRef(root, $ref))), ...own }, steps + 1);
}

/** Whether a schema accepts no other values than objects. `root` is the schema that contains it. */
export function acceptsOnlyObjects(sub: unknown, root: JsonSchema, steps = 0): boolean {
  if (!isObject(sub) || steps > MAX_STEPS) return false;
  const accepts = (part: unknown) => acceptsOnlyObjects(part, root, steps + 1);
  const { type, $ref, allOf, anyOf, oneOf } = sub;
  return String(type) === "object" || typeof $ref === "string" && accepts(followRef(root, $ref)) ||
    Array.isArray(allOf) && allOf.some(accepts) ||
    [anyOf, oneOf].some((forms) => Array.isArray(forms) && forms.length > 0 && forms.every(accepts));
}
