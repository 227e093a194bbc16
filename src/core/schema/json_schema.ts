/**
 * Inspects raw JSON Schema 2020-12 and draft-07 before use. `json_check.ts`, which validates values, is loaded when
 * the first value is validated.
 *
 * The validator interprets schemas, never compiles them to code, and never fetches references.
 *
 * @see specification/2026-07-28/basic (JSON Schema Usage)
 */
import { shorten } from "../kit/shorten.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { eachSubschema, followRef, HOLDING, type JsonSchema, NAMED } from "./walker.ts";

export type { JsonSchema };

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
/** Keywords whose schemas apply to the value itself, not to parts of the value. */
const IN_PLACE = /^(not|if|then|else|...Of|depend.+)$/;

/**
 * Whether a keyword may have a value. A value of another kind would make the validation fail, or refuse valid values.
 */
function isFit(key: string, value: unknown, draft7: boolean): boolean {
  const isList = Array.isArray(value);
  if (/^((all|any|one)Of|prefixItems|enum)$/.test(key)) return isList;
  if (HOLDING.test(key)) return !isList || draft7 && key === "items";
  if (/^(e\w+M|m)(in|ax)imum$/.test(key)) return Number.isFinite(value);
  if (key === "multipleOf") return Number.isFinite(value) && Number(value) > 0;
  if (/^m\w+(Length|Items|Contains|Properties)$/.test(key)) return Number.isInteger(value) && Number(value) >= 0;
  if (/^(pattern|title|description|format|\$(\w*[Aa]nchor|\w*[rR]ef|id|comment))$/.test(key)) return isText(value);
  if (key === "uniqueItems") return typeof value === "boolean";
  if (key === "required") return isTextList(value);
  const lists = NAMED.test(key) ? Object.values(Object(value)).filter(Array.isArray) : [];
  return !NAMED.test(key) ||
    isObject(value) && lists.every(isTextList) && (key !== "dependentSchemas" || !lists.length);
}

/**
 * Whether the meta-schemas of 2020-12 and draft-07 permit a value that {@linkcode isFit} does. Other values of these
 * keywords change no validation, but many clients and APIs of models reject a list that contains such a value.
 */
function isProper(key: string, value: unknown): boolean {
  // The meta-schemas permit an empty `enum`, but validators such as ajv do not.
  if (Array.isArray(value) && /^((all|any|one)Of|(prefixI|i)tems|enum)$/.test(key)) return value.length > 0;
  if (key === "type") return !Array.isArray(value) || isSet(value) && value.length > 0;
  if (key === "required") return isSet(value);
  if (/^(deprecated|(read|write)Only)$/.test(key)) return typeof value === "boolean";
  if (key === "examples") return Array.isArray(value);
  if (/^content(Encoding|MediaType)$|^\$schema$/.test(key)) return isText(value);
  if (/^\$\w*[aA]nchor$/.test(key)) return isText(value) && /^[A-Za-z_][\w.-]*$/.test(value);
  if (key === "$id") return /^[^#]*#?$/.test(String(value));
  if (key !== "$vocabulary" && !NAMED.test(key)) return true;
  return isObject(value) && Object.values(value).every((part) => {
    if (key === "$vocabulary") return typeof part === "boolean";
    return Array.isArray(part) ? key.startsWith("depend") && isSet(part) : key !== "dependentRequired";
  });
}

const isText = (value: unknown): value is string => typeof value === "string";
const isTextList = (value: unknown) => Array.isArray(value) && value.every(isText);
const isSet = (value: unknown): value is unknown[] => Array.isArray(value) && new Set(value).size === value.length;

export function toText({ path, message }: Issue): string {
  return (path && path + ": ") + message;
}

/** Formats the path of a value, such as `items[2].name`. */
export function toPath(keys: readonly PropertyKey[]): string {
  return keys.map((key, i) => typeof key === "number" ? `[${key}]` : (i ? "." : "") + shorten(String(key), 99)).join(
    "",
  );
}

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
  /** Whether to neither compile nor run patterns, because their author is not trusted. Defaults to `false`. */
  readonly ignoresPatterns?: boolean;
  /**
   * Whether the schema is from the author of the server, who can correct every malformed keyword. Defaults to `false`:
   * only keywords that the validator cannot use are errors.
   */
  readonly isOwn?: boolean;
}

/**
 * Inspects a whole schema. `name` is the name of the schema in error messages.
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
  { name = "JSON Schema", ignoresPatterns = false, isOwn = false }: InspectOptions = {},
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

  // `path` is the path of the schema, such as `properties.age`. It is empty for the root.
  function visit(sub: unknown, path: string, depth: number): void {
    if (typeof sub === "boolean") return;
    const place = shorten(path, 100) || "the root";
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
      // A member without a value counts as absent, as in JSON.
      if (value === undefined) continue;
      if (!isFit(key, value, draft7) || isOwn && !isProper(key, value)) {
        throw refuse(`${key} of ${place} is ${show(value)}; correct it`);
      }
      if (key === "type" && ![value].flat().every((type) => TYPES.test(show(type)))) {
        throw refuse(`the type ${show(value)} of ${place} is unknown; use a JSON Schema type`);
      }
      if (key === "pattern") addPattern(value);
      if (key === "patternProperties") Object.keys(Object(value)).forEach(addPattern);
      tracks ||= /^uneval/.test(key);
      if (/^\$(r|dynamicR)ef$/.test(key)) {
        if (!refs.has(value)) refs.set(value, follow(String(value)));
        visit(refs.get(value), "the target of $ref " + show(value), depth + 1);
      }
    }
    eachSubschema(sub, (part, key, name) => {
      const inner = [path, key, name].filter((step) => step).join(".");
      if (IN_PLACE.test(key)) visit(part, inner, depth + 1);
      else queue.push([part, inner, depth + 1]);
    });
    open.set(sub, false);
  }

  function follow(ref: string): unknown {
    if (ref[0] !== "#") throw refuse(`$ref ${show(ref)} is never fetched; copy its target to $defs`);
    return followRef(schema, ref);
  }

  // The schemas for items and properties. They are visited later, so that `true` in `open` marks only schemas that
  // apply to the same value.
  const queue: Parameters<typeof visit>[] = [];
  visit(schema, "", 0);
  for (const waiting of queue) visit(...waiting);
  return { refs, patterns, tracks, draft7, isPartial };
}

export function show(value: unknown): string {
  return shorten(JSON.stringify(typeof value === "string" ? value.slice(0, 61) : value) ?? String(value), 60);
}
