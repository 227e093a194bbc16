/**
 * Writes JSON Schemas as TypeScript types, for models and programmers who write programs that use the values. The text
 * never contains code: names and values of the schema are quoted, and comments cannot end early.
 */
import { shorten } from "../kit/shorten.ts";
import { isObject } from "../kit/json.ts";
import { followRef, type JsonSchema, listProperties } from "./walker.ts";

export interface TypeOptions {
  /** Maximum length of the type in characters. What has no room becomes `unknown`. Defaults to 4000. */
  readonly maxLength?: number;
  /** Whether properties get the first sentence of their description as a comment. Defaults to `true`. */
  readonly comments?: boolean;
}

/** Maximum number of nested objects and lists, because references may be circular. */
const MAX_DEPTH = 6;
/** Maximum number of values of an enumeration, and of properties of an object. */
const MAX_VALUES = 30;
const MAX_PROPERTIES = 60;
/** Maximum length of a comment in characters. */
const MAX_COMMENT = 120;

/** Returns a TypeScript type on one line. `unknown` stands for values of which the schema says nothing. */
export function toTypeText(schema: unknown, { maxLength = 4000, comments = true }: TypeOptions = {}): string {
  const root = isObject(schema) ? schema : {};
  for (const depth of DEPTHS) {
    for (const hasComments of comments ? [true, false] : [false]) {
      const text = new TypeWriter(root, { depth, hasComments, left: 4 * maxLength }).write(schema);
      if (text.length <= maxLength) return text;
    }
  }
  return "unknown";
}

/** The depths that are tried until the type is short enough. */
const DEPTHS = [MAX_DEPTH, 3, 2, 1];

interface Writing {
  readonly depth: number;
  readonly hasComments: boolean;
  /** Number of characters after which everything is `unknown`, so that the work has a bound. */
  left: number;
}

class TypeWriter {
  readonly #root: JsonSchema;
  readonly #writing: Writing;

  constructor(root: JsonSchema, writing: Writing) {
    this.#root = root;
    this.#writing = writing;
  }

  write(schema: unknown, depth = 0): string {
    const { depth: max, left } = this.#writing;
    if (schema === false) return "never";
    if (!isObject(schema) || depth > max || left <= 0) return "unknown";
    const text = this.#toText(schema, depth);
    this.#writing.left -= text.length;
    return text;
  }

  #toText(schema: JsonSchema, depth: number): string {
    const { $ref, const: only, enum: values, type, allOf, anyOf, oneOf, nullable } = schema;
    // Each reference counts as a level, because references may be circular.
    if (typeof $ref === "string") return this.write(followRef(this.#root, $ref), depth + 1);
    if (only !== undefined) return toLiteral(only);
    if (Array.isArray(values) && values.length <= MAX_VALUES) return toUnion(values.map(toLiteral));
    const choices = [anyOf, oneOf].find(Array.isArray);
    if (choices) return toUnion(choices.slice(0, MAX_VALUES).map((each) => this.write(each, depth + 1)));
    // Another server may repeat a type many times.
    const types = Array.isArray(type) ? [...new Set(type)] : [type ?? inferType(schema)];
    const own = toUnion([
      ...types.map((each) => this.#toType(each, schema, depth)),
      ...nullable === true ? ["null"] : [],
    ]);
    if (!Array.isArray(allOf)) return own;
    const parts = [...own === "unknown" ? [] : [own], ...allOf.map((each) => this.write(each, depth + 1))];
    const known = [...new Set(parts.filter((part) => part !== "unknown"))];
    return known.map((part) => part.includes(" | ") ? `(${part})` : part).join(" & ") || "unknown";
  }

  #toType(type: unknown, schema: JsonSchema, depth: number): string {
    switch (type) {
      case "string":
      case "boolean":
      case "null":
        return type;
      case "number":
      case "integer":
        return "number";
      case "array":
        return this.#toArray(schema, depth);
      case "object":
        return this.#toObject(schema, depth);
    }
    return "unknown";
  }

  #toArray({ prefixItems, items }: JsonSchema, depth: number): string {
    if (Array.isArray(prefixItems)) {
      return `[${prefixItems.slice(0, MAX_VALUES).map((each) => this.write(each, depth + 1)).join(", ")}]`;
    }
    const item = this.write(items, depth + 1);
    return /[ {]/.test(item) && !/^\{[^{}]*\}$/.test(item) ? `Array<${item}>` : `${item}[]`;
  }

  #toObject(schema: JsonSchema, depth: number): string {
    const { additionalProperties } = schema;
    const all = listProperties(schema);
    if (!all.length && additionalProperties !== false) {
      return `Record<string, ${this.write(additionalProperties, depth + 1)}>`;
    }
    const members = all.slice(0, MAX_PROPERTIES).map(({ name, schema, isRequired }) =>
      `${this.#toComment(schema)}${toKey(name)}${isRequired ? "" : "?"}: ${this.write(schema, depth + 1)}`
    );
    if (all.length > MAX_PROPERTIES || isObject(additionalProperties)) members.push("[name: string]: unknown");
    return members.length ? `{ ${members.join("; ")} }` : "{}";
  }

  #toComment(schema: unknown): string {
    const { description } = Object(schema);
    if (!this.#writing.hasComments || typeof description !== "string" || !description.trim()) return "";
    return `/** ${toComment(description)} */ `;
  }
}

/** Returns the first sentence of a description on one line, which cannot end a comment. */
export function toComment(description: string, length: number = MAX_COMMENT): string {
  const [first] = description.trim().split(/(?<=[.!?])\s|\n\s*\n/, 1);
  return shorten(first.replace(/[\s\p{Cc}\p{Cf}\u2028\u2029]+/gu, " "), length).replaceAll("*/", "* /");
}

/** Returns a property name, in quotation marks unless it is an identifier. */
export function toKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : toLiteral(name);
}

/** Maximum length of a literal in characters. */
const MAX_LITERAL = 200;

function toLiteral(value: unknown): string {
  if (typeof value === "object" && value !== null) return "unknown";
  const text = JSON.stringify(value) ?? "unknown";
  return text.length > MAX_LITERAL ? typeof value : text.replace(/[\u2028\u2029]/g, " ");
}

function toUnion(parts: readonly string[]): string {
  const all = [...new Set(parts)];
  return all.includes("unknown") ? "unknown" : all.join(" | ") || "never";
}

function inferType(
  { enum: values, properties, items, prefixItems, additionalProperties }: JsonSchema,
): string | undefined {
  if (Array.isArray(values)) return values.every((each) => typeof each === "string") ? "string" : undefined;
  if (isObject(properties) || isObject(additionalProperties)) return "object";
  return items !== undefined || prefixItems !== undefined ? "array" : undefined;
}
