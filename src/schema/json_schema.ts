/**
 * Inspects raw JSON Schema 2020-12 and draft-07 before use. `json_check.ts`, which validates values, is loaded when
 * the first value is validated.
 *
 * The validator interprets schemas, never compiles them to code, and never fetches references.
 *
 * @see specification/2026-07-28/basic (JSON Schema Usage)
 * @module
 */
import { shorten } from "../kit/shorten.ts";
import { isObject } from "../protocol/jsonrpc.ts";

/** A JSON Schema that is an object, as the protocol requires for root schemas. */
export type JsonSchema = { readonly [key: string]: unknown };

/** A validation error. */
export interface Issue {
  /** Path such as `items[2].name`. Empty if the whole value is invalid. */
  readonly path: string;
  /** Description for a language model: `expected number, got string`. */
  readonly message: string;
}

// Maximum depth of nested subschemas. A deeper schema could overflow the stack.
const MAX_DEPTH = 64;
// Maximum number of subschemas. A schema with more subschemas is a mistake or an attack.
const MAX_SUBSCHEMAS = 10_000;
const TYPES = /^"(null|boolean|object|array|number|string|integer)"$/;
/** Keywords that contain schemas, keyed by names that the author chooses. */
const NAMED = /^(\$defs|definitions|(patternP|p)roperties|depend(encies|ent(Schemas|Required)))$/;
/** Keywords that contain a schema or a list of schemas. */
const HOLDING =
  /^(not|if|then|else|(all|any|one)Of|(prefixI|i)tems|contains|propertyNames|(unevaluated|additional)(Items|Properties))$/;
/** Keywords whose schemas apply to the value itself, not to parts of the value. */
const IN_PLACE = /^(not|if|then|else|...Of|depend.+)$/;

/** Calls `visit` for each direct subschema. `name` is the property name if the keyword contains named schemas. */
export function eachSubschema(schema: JsonSchema, visit: (sub: unknown, keyword: string, name?: string) => void): void {
  for (const [key, value] of Object.entries(schema)) {
    if (NAMED.test(key) && isObject(value)) {
      // Lists in `dependentRequired` and `dependencies` contain names, not schemas.
      for (const name in value) if (!Array.isArray(value[name])) visit(value[name], key, name);
    } else if (HOLDING.test(key)) [value].flat().forEach((sub) => visit(sub, key));
  }
}

/** Formats an issue as a line of text. */
export function toText({ path, message }: Issue): string {
  return (path && path + ": ") + message;
}

/** Formats the path of a value, such as `items[2].name`. */
export function toPath(keys: readonly PropertyKey[]): string {
  return keys.map((key, i) => typeof key === "number" ? `[${key}]` : (i ? "." : "") + shorten(String(key), 99)).join(
    "",
  );
}

/** The result of inspecting a schema. */
export interface Inspected {
  /** The schemas to which references refer, keyed by reference. The key of the root schema is `#`. */
  readonly refs: ReadonlyMap<unknown, unknown>;
  readonly patterns: ReadonlyMap<unknown, RegExp>;
  /** Whether the schema has `unevaluatedItems` or `unevaluatedProperties`. */
  readonly tracks: boolean;
  readonly draft7: boolean;
  /** Whether patterns are ignored. The check then skips every keyword whose outcome depends on a pattern. */
  readonly isPartial: boolean;
}

/** The options of {@linkcode inspectJsonSchema}. */
export interface InspectOptions {
  /** Name of the schema, for error messages. Defaults to "JSON Schema". */
  readonly name?: string;
  /**
   * Whether to ignore patterns, because the author of the schema is not trusted. Ignored patterns are neither compiled
   * nor run. Defaults to `false`.
   */
  readonly ignoresPatterns?: boolean;
}

/**
 * Inspects a whole schema, and collects the references and patterns for the validator. `name` is the name of the schema
 * in error messages.
 *
 * The following is not allowed:
 *
 * - malformed schemas, and dialects other than 2020-12 and draft-07;
 * - external and dangling references, and references that loop;
 * - more than 64 levels or 10,000 subschemas.
 *
 * @throws {TypeError} if the schema is not allowed.
 */
export function inspectJsonSchema(
  schema: JsonSchema,
  { name = "JSON Schema", ignoresPatterns = false }: InspectOptions = {},
): Inspected {
  const refuse = (state: string) => new TypeError(`Cannot use ${name}: ${state}`);
  const dialect = String(schema.$schema ?? "2020-12/schema");
  if (!/(2020-12|draft-07)\/schema#?$/.test(dialect)) {
    throw refuse(`its $schema ${show(dialect)} is unknown; use 2020-12 or draft-07`);
  }
  const draft7 = dialect.includes("draft-07");
  /**
   * The visited schemas. The entry of a schema is `true` while the schemas that apply to the same value are being
   * visited, in order to find references that loop.
   */
  const open = new Map<JsonSchema, boolean>();
  const refs = new Map<unknown, unknown>([["#", schema]]);
  const patterns = new Map<unknown, RegExp>();
  let anchors: ReadonlyMap<string, JsonSchema> | undefined;
  let tracks = false;
  let isPartial = false;

  function addPattern(source: unknown): void {
    if (ignoresPatterns) return void (isPartial = true);
    try {
      patterns.set(source, new RegExp(String(source), "u"));
    } catch {
      throw refuse(`the pattern ${show(source)} does not compile with the u flag; correct it`);
    }
  }

  function visit(sub: unknown, place: string, depth: number): void {
    if (typeof sub === "boolean") return;
    if (!isObject(sub)) {
      throw refuse(`${place} is ${show(sub)}; a schema is an object, true or false`);
    }
    if (open.get(sub)) {
      throw refuse(`${place} leads back to itself; reference a property or an item instead`);
    }
    if (open.has(sub)) return;
    open.set(sub, true);
    if (depth > MAX_DEPTH || open.size > MAX_SUBSCHEMAS) {
      throw refuse(
        `it has more than ${MAX_DEPTH} levels or ${MAX_SUBSCHEMAS} subschemas; simplify it`,
      );
    }
    if (sub.$id !== undefined && depth) throw refuse(`${place} has an $id; use $anchor instead`);
    for (const [key, value] of Object.entries(sub)) {
      const list = /^((all|any|one)Of|prefixItems|required|enum)$/.test(key);
      if (list !== Array.isArray(value) && (list || HOLDING.test(key) && !(draft7 && key === "items"))) {
        throw refuse(`${key} is ${list ? "not " : ""}an array; correct it`);
      }
      if (key === "type" && ![value].flat().every((type) => TYPES.test(show(type)))) {
        throw refuse(`the type ${show(value)} is unknown; use a JSON Schema type`);
      }
      if (key === "pattern") addPattern(value);
      if (key === "patternProperties") Object.keys(Object(value)).forEach(addPattern);
      tracks ||= /^uneval/.test(key);
      if (/^\$(r|dynamicR)ef$/.test(key)) {
        if (!refs.has(value)) refs.set(value, follow(String(value)));
        visit(refs.get(value), "the target of $ref " + show(value), depth + 1);
      }
    }
    eachSubschema(sub, (part, key) => {
      if (IN_PLACE.test(key)) visit(part, key, depth + 1);
      else queue.push([part, key, depth + 1]);
    });
    open.set(sub, false);
  }

  function follow(ref: string): unknown {
    if (ref[0] !== "#") throw refuse(`$ref ${show(ref)} is never fetched; copy its target to $defs`);
    if (/^#[^/]/.test(ref)) return (anchors ??= listAnchors(schema)).get(ref);
    return decodeURIComponent(ref).split("/").slice(1).reduce((target: unknown, token) => {
      const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
      return Object.getOwnPropertyDescriptor(Object(target), key)?.value;
    }, schema);
  }

  // The schemas for items and properties. They are visited later, so that `true` in `open` marks only schemas that
  // apply to the same value.
  const queue: Parameters<typeof visit>[] = [];
  visit(schema, name, 0);
  for (const waiting of queue) visit(...waiting);
  return { refs, patterns, tracks, draft7, isPartial };
}

/**
 * Lists the schemas that have an anchor, keyed by reference, such as `#name`. If several schemas have the same anchor,
 * the first schema is used.
 */
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

/** Formats a value for error messages. */
export function show(value: unknown): string {
  return shorten(JSON.stringify(typeof value === "string" ? value.slice(0, 61) : value) ?? String(value), 60);
}
