/**
 * Converts the schemas of a document to JSON Schemas, each with a closed `$defs`. References are followed one at a time.
 */
import { isObject } from "../../core/kit/json.ts";
import { shorten } from "../../core/kit/shorten.ts";
import { eachSubschema, followRef, mapSubschemas } from "../../core/schema/walker.ts";
import type { JsonSchema } from "../../library.ts";
import { type ApiDocument, type Node, toList, toNode } from "./document.ts";
import { countBytes } from "./json_copy.ts";
import { isNullable, readKeywords } from "./keywords.ts";
import { IN_PLACE, type Kind, Loops } from "./loops.ts";
import { isSafePattern } from "./patterns.ts";
import { readShape } from "./shape.ts";

/** Maximum size of a schema as JSON, in bytes. */
export const MAX_SCHEMA_BYTES = 32_768;
/** Maximum number of levels of a schema, including the levels behind references. A validator takes 64. */
const MAX_LEVELS = 56;
/** Maximum number of levels of a schema without the levels behind references. */
const MAX_OWN_LEVELS = 40;
/** Numbers of levels to which a schema is cut until it is small enough. */
const CUTS = [16, 12, 9, 7, 5, 4, 3, 2, 1];
/** Maximum number of schemas that the operations of a document use. Operations may share a part that is not a schema. */
const MAX_SCHEMAS = 300_000;
/** Maximum length of the description of a schema that was cut, in characters. */
const MAX_STUB = 100;

interface Definition {
  readonly name: string;
  readonly schema: JsonSchema | boolean;
  /** Keys of the definitions to which the schema refers, with the level at which it does. */
  readonly refs: ReadonlyMap<string, number>;
  readonly bytes: number;
  readonly levels: number;
  /** Number of parts that were replaced, because they have too many levels. */
  readonly cut: number;
}

interface Place {
  /** The pointer of the definition whose values the schema describes, and how it applies to them. */
  readonly owner?: string;
  readonly kind?: Kind;
  /** Whether the schemas that depend on the value are left out. */
  readonly isBase?: boolean;
  /**
   * The properties of the whole value that do not belong to the arguments, or to the results. A part of it must not
   * require them. `undefined` for a schema that is not such a part.
   */
  readonly hidden?: ReadonlySet<string>;
}

export interface ClosedSchema {
  readonly schema: JsonSchema;
  /** Number of parts that were replaced by `{}`, because the schema was too large. */
  readonly cut: number;
}

/** The pattern of whole numbers that are texts. */
export const DIGITS = "^-?\\d+$";
/** Begins the key of a definition without the schemas that depend on the value. Every other key begins with `#`. */
const BASE = "base ";

/** The schemas of a document, for arguments or for results. */
export class Schemas {
  readonly #document: ApiDocument;
  /** The flag of properties that do not belong to the arguments, or to the results. */
  readonly #hidden: "readOnly" | "writeOnly";
  readonly #loops: Loops;
  readonly #definitions = new Map<string, Definition>();
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();
  #count = 0;
  /** The next number for each name that several definitions have. */
  readonly #numbers = new Map<string, number>();

  constructor(document: ApiDocument, use: "arguments" | "results") {
    this.#document = document;
    this.#hidden = use === "arguments" ? "readOnly" : "writeOnly";
    this.#loops = new Loops(document);
  }

  /** References lead to `$defs`, which {@linkcode close} adds. */
  convert(schema: unknown): JsonSchema {
    const converted = this.#convert(schema, {});
    if (typeof converted === "object") return converted;
    return converted ? {} : { not: {} };
  }

  /** Adds the definitions to which a converted schema refers, as far as they fit. */
  close(root: JsonSchema): ClosedSchema {
    for (const levels of [MAX_OWN_LEVELS, ...CUTS]) {
      let cut = 0;
      const schema = cutLevels(root, levels, () => cut++);
      const closed = this.#close(schema);
      if (closed) return { schema: closed.schema, cut: cut + closed.cut };
    }
    // Even the names of the properties are too long.
    return { schema: { type: "object" }, cut: 1 };
  }

  #close(root: JsonSchema): ClosedSchema | undefined {
    const refs = new Map<string, number>();
    this.#listRefs(root, 0, refs);
    let bytes = countBytes(JSON.stringify(root));
    const seen = new Map(refs);
    const toStub = (key: string) => `"${this.#names.get(key)}":{},`.length;
    for (const key of refs.keys()) bytes += toStub(key);
    if (bytes > MAX_SCHEMA_BYTES - 20) return;
    const defs = new Map<string, JsonSchema | boolean>();
    let cut = 0;
    // The entries that the loop adds are visited too, so nearer definitions come first.
    for (const [key, level] of seen) {
      const definition = this.#define(key);
      const added = [...definition.refs.keys()].filter((each) => !seen.has(each));
      const needed = bytes + definition.bytes + added.reduce((sum, each) => sum + toStub(each), 0);
      if (needed > MAX_SCHEMA_BYTES - 20 || level + definition.levels > MAX_LEVELS) {
        const stub = toStubSchema(definition.schema);
        const more = countBytes(JSON.stringify(stub));
        const fits = bytes + more <= MAX_SCHEMA_BYTES - 20;
        if (fits) bytes += more;
        defs.set(definition.name, fits ? stub : {});
        cut++;
        continue;
      }
      bytes = needed;
      cut += definition.cut;
      defs.set(definition.name, definition.schema);
      for (const each of added) seen.set(each, level + (definition.refs.get(each) ?? 0) + 1);
    }
    return { schema: defs.size ? { ...root, $defs: Object.fromEntries(defs) } : root, cut };
  }

  #listRefs(schema: unknown, level: number, refs: Map<string, number>): void {
    if (!isObject(schema)) return;
    const key = typeof schema.$ref === "string" ? this.#keys.get(schema.$ref) : undefined;
    if (key !== undefined && !refs.has(key)) refs.set(key, level);
    eachSubschema(schema, (part) => this.#listRefs(part, level + 1, refs));
  }

  /** The keys of definitions, by reference. */
  readonly #keys = new Map<string, string>();

  #define(key: string): Definition {
    const known = this.#definitions.get(key);
    if (known) return known;
    const isBase = key.startsWith(BASE);
    const pointer = isBase ? key.slice(BASE.length) : key;
    const place: Place = { owner: pointer, kind: "all", isBase };
    const whole = this.#convert(followRef(this.#document.root, pointer), place);
    let cut = 0;
    const schema = isObject(whole) ? cutLevels(whole, MAX_OWN_LEVELS, () => cut++) : whole;
    const refs = new Map<string, number>();
    this.#listRefs(schema, 0, refs);
    const bytes = countBytes(JSON.stringify(schema));
    const definition = { name: this.#toName(key), schema, refs, bytes, levels: countLevels(schema), cut };
    this.#definitions.set(key, definition);
    return definition;
  }

  /** Returns the name of a definition in `$defs`, which is the same for all schemas of the document. */
  #toName(key: string): string {
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const last = key.split("/").at(-1) ?? "";
    const plain = last.replace(/[^\w.-]+/g, "_").slice(0, 48) || "schema";
    let name = plain;
    let next = this.#numbers.get(plain) ?? 2;
    while (this.#taken.has(name)) name = `${plain}_${next++}`;
    this.#numbers.set(plain, next);
    this.#taken.add(name);
    this.#names.set(key, name);
    this.#keys.set(`#/$defs/${name}`, key);
    return name;
  }

  #convert(schema: unknown, place: Place): JsonSchema | boolean {
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema)) return {};
    if (++this.#count > MAX_SCHEMAS) {
      throw new TypeError(
        `Cannot make an API: its operations have more than ${MAX_SCHEMAS} schemas; select operations with as`,
      );
    }
    const { $ref, ...own } = schema;
    if (typeof $ref !== "string") return this.#convertOwn(schema, place);
    const target = this.#refer($ref, place);
    const beside = Object.keys(own).length ? this.#convertOwn(schema, place) : {};
    if (isNullable(own)) return { anyOf: [target ?? {}, { type: "null" }], ...beside };
    if (typeof target === "boolean") return target;
    return { ...target, ...beside };
  }

  /** Returns the reference to a definition, or a schema without rules if the reference leads nowhere. */
  #refer(pointer: string, place: Place): JsonSchema | boolean {
    const { owner, kind, isBase } = place;
    const target = followRef(this.#document.root, pointer);
    if (typeof target === "boolean") return target;
    if (!isObject(target)) return {};
    let key = pointer;
    if (owner !== undefined && kind === "some" && this.#loops.isIn(owner, pointer, "some")) return {};
    if (owner !== undefined && kind === "all") {
      if (this.#loops.isIn(owner, pointer, "all")) return {};
      if (this.#loops.isIn(owner, pointer, "any") && this.#loops.hasVariants(pointer)) key = BASE + key;
    }
    if (isBase && kind === "some") return {};
    // The definition of the part, which other schemas use too, requires what another part hides. Convert the part like a
    // definition, so that loops end.
    if (this.#requiresHidden(target, place)) {
      return this.#convert(target, { hidden: place.hidden, owner: pointer, kind: "all", isBase: key !== pointer });
    }
    return { $ref: `#/$defs/${this.#toName(key)}` };
  }

  #requiresHidden(target: Node, { hidden }: Place): boolean {
    if (!hidden?.size) return false;
    const { required, properties } = readShape(this.#document, target);
    return required.some((name) => hidden.has(name) && !this.#isHidden(properties[name]));
  }

  #convertOwn(schema: Node, place: Place): JsonSchema {
    const kept = readKeywords(schema);
    if (this.#hidden === "readOnly") allowDigits(kept);
    const convert = (part: unknown) => this.#convert(part, {});
    const hidden = place.hidden ?? this.#findHidden(schema);
    this.#convertProperties(schema, kept, hidden);
    if (isObject(schema.items) || typeof schema.items === "boolean") kept.items = convert(schema.items);
    // Some clients refuse a list that does not describe its items.
    else if ([kept.type].flat().includes("array")) kept.items = {};
    // Lists of schemas belong to older versions of JSON Schema.
    const first = [schema.prefixItems, schema.items].find(Array.isArray);
    if (first?.length) kept.prefixItems = first.map(convert);
    for (const key of ["contains", "propertyNames", "unevaluatedItems"]) {
      if (isObject(schema[key]) || typeof schema[key] === "boolean") kept[key] = convert(schema[key]);
    }
    this.#convertInPlace(schema, kept, { ...place, hidden });
    return kept;
  }

  /** Returns the hidden properties of a value, which any part of its schema may describe. */
  #findHidden(schema: Node): ReadonlySet<string> {
    const properties = isComposed(schema)
      ? readShape(this.#document, schema).properties
      : isObject(schema.properties)
      ? schema.properties
      : {};
    return new Set(Object.keys(properties).filter((name) => this.#isHidden(properties[name])));
  }

  #convertProperties(schema: Node, kept: Record<string, unknown>, hidden: ReadonlySet<string>): void {
    const { properties, required, patternProperties, additionalProperties, dependentRequired } = schema;
    const all = isObject(properties) ? Object.entries(properties) : [];
    const shown = all.filter(([name]) => !hidden.has(name));
    if (all.length) kept.properties = toObject(shown.map(([name, part]) => [name, this.#convert(part, {})]));
    const names = (list: unknown) =>
      Array.isArray(list) ? [...new Set(list)].filter((name) => typeof name === "string" && !hidden.has(name)) : [];
    if (names(required).length) kept.required = names(required);
    if (isObject(dependentRequired)) {
      kept.dependentRequired = toObject(Object.entries(dependentRequired).map(([name, list]) => [name, names(list)]));
    }
    const patterns = isObject(patternProperties) ? Object.entries(patternProperties) : [];
    const safe = patterns.filter(([pattern]) => isSafePattern(pattern));
    if (safe.length) kept.patternProperties = toObject(safe.map(([name, part]) => [name, this.#convert(part, {})]));
    const isClosed = typeof additionalProperties === "boolean";
    // Without all patterns, a closed object would refuse properties that the API takes. A client may also have read a
    // hidden property, and send it again.
    if (isClosed && (safe.length < patterns.length || hidden.size)) return;
    if (additionalProperties === false && isComposed(schema)) return this.#closeParts(schema, kept);
    if (isClosed || isObject(additionalProperties)) {
      kept.additionalProperties = this.#convert(additionalProperties, {});
    }
  }

  /**
   * Closes an object over the properties of all its parts. Documents close an object that extends another one, and mean
   * both, but a validator would refuse each property of the other one.
   */
  #closeParts(schema: Node, kept: Record<string, unknown>): void {
    const { properties, isOpen } = readShape(this.#document, schema);
    if (isOpen) return;
    const others = Object.keys(properties).filter((name) => !Object.hasOwn(Object(kept.properties), name));
    kept.properties = toObject([
      ...Object.entries(Object(kept.properties)),
      ...others.map((name) => [name, {}] as const),
    ]);
    kept.additionalProperties = false;
  }

  #convertInPlace(schema: Node, kept: Record<string, unknown>, place: Place): void {
    const { owner, isBase, hidden } = place;
    const alternatives: JsonSchema[] = [];
    for (const [key, inner] of Object.entries(IN_PLACE)) {
      const value = schema[key];
      const kind = inner === "some" || place.kind === "some" ? "some" : "all";
      if (value === undefined || isBase && kind === "some") continue;
      const convert = (part: unknown) => this.#convert(part, { owner, kind, isBase, hidden });
      if (key === "anyOf" || key === "oneOf") {
        // Documents list variants that overlap, of which `oneOf` would accept none.
        const parts = toList(value).map(convert);
        if (parts.length) alternatives.push({ anyOf: parts });
      } else if (key === "allOf") {
        const parts = toList(value).map(convert).filter((part) => !isEmpty(part));
        if (parts.length) kept.allOf = parts;
      } else if (isObject(value)) {
        kept[key] = toObject(Object.entries(value).map(([name, part]) => [name, convert(part)]));
      }
    }
    if (isNullable(schema)) {
      if (alternatives.length) alternatives[0] = { anyOf: [alternatives[0], { type: "null" }] };
      if (kept.allOf) {
        alternatives.push({ anyOf: [{ allOf: kept.allOf }, { type: "null" }] });
        delete kept.allOf;
      }
    }
    const [one, another] = alternatives;
    if (another) kept.allOf = [...toList(kept.allOf), one, another];
    else if (one) kept.anyOf = one.anyOf;
  }

  #isHidden(part: unknown): boolean {
    const schema = toNode(part);
    if (schema[this.#hidden] === true) return true;
    return isComposed(schema) && readShape(this.#document, schema).keywords[this.#hidden] === true;
  }
}

/** Also allows digits as text for a 64-bit integer, because JavaScript and many clients round beyond 2^53. */
function allowDigits(kept: Record<string, unknown>): void {
  const types = [kept.type].flat();
  if (kept.format !== "int64" || !types.includes("integer") || types.includes("string") || kept.enum) return;
  kept.type = [...types, "string"];
  kept.pattern = DIGITS;
}

/** Whether a schema has parts that apply to the same value. */
function isComposed(schema: Node): boolean {
  return typeof schema.$ref === "string" || Object.keys(IN_PLACE).some((key) => schema[key] !== undefined);
}

function isEmpty(schema: unknown): boolean {
  return isObject(schema) && !Object.keys(schema).length;
}

/** A member may have the name `__proto__`. */
function toObject(entries: readonly (readonly [string, unknown])[]): JsonSchema {
  return Object.fromEntries(entries);
}

/** Returns a schema that accepts everything, with the description of a schema. */
function toStubSchema(schema: unknown): JsonSchema {
  const { description } = toNode(schema);
  return typeof description === "string" && description ? { description: shorten(description, MAX_STUB) } : {};
}

function countLevels(schema: unknown): number {
  if (!isObject(schema)) return 0;
  let levels = 0;
  eachSubschema(schema, (part) => levels = Math.max(levels, countLevels(part)));
  return levels + 1;
}

/** Returns a copy of a schema in which the schemas below a number of levels are replaced. */
function cutLevels(schema: JsonSchema, levels: number, onCut: () => void): JsonSchema {
  if (levels > 0) {
    return mapSubschemas(schema, (part) => isObject(part) ? cutLevels(part, levels - 1, onCut) : part);
  }
  onCut();
  return toStubSchema(schema);
}
