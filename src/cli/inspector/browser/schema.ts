/**
 * What a form has to know of a JSON schema.
 *
 * @module
 */
import type { Json, JsonTools } from "./json.ts";

/** One of several values to choose from. */
export interface Choice {
  readonly value: unknown;
  readonly title: string;
}

/** A value to ask for. */
export interface Shape {
  readonly kind: "text" | "number" | "boolean" | "choice" | "choices" | "list" | "json";
  /** The schema, with references followed. */
  readonly schema: Json;
  readonly isNullable: boolean;
  readonly choices: readonly Choice[];
  /** Of the items of a list. */
  readonly items?: Json;
  /** What it takes in a few words, such as `integer, at least 1`. */
  readonly hint: string;
}

/** Reads schemas. */
export interface SchemaReader {
  /** How to ask for a value; `root` holds the definitions that references name. */
  toShape(schema: unknown, root: Json): Shape;
  /** A value to start from, with what is required. */
  toSkeleton(schema: unknown, root: Json): unknown;
  /** Arguments that a tool wants repeated in headers. */
  toRepeated(schema: Json, given: Json): Readonly<Record<string, string>>;
}

/** Makes the reader. */
export function createSchemaReader({ isObject, objects, text }: JsonTools): SchemaReader {
  const deepest = 8; // references may lead in a circle

  function follow(given: unknown, root: Json): Json {
    let schema = isObject(given) ? given : {};
    for (let step = 0; step < deepest && typeof schema.$ref === "string"; step++) {
      const { $ref: _, ...rest } = schema;
      const path = schema.$ref.startsWith("#/") ? schema.$ref.slice(2).split("/").map(unescape) : [];
      const target = path.reduce<unknown>(
        (at, key) => isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined,
        root,
      );
      if (!isObject(target)) return rest;
      schema = { ...target, ...rest };
    }
    return schema;
  }

  function unescape(key: string): string {
    let plain = key;
    try {
      plain = decodeURIComponent(key);
    } catch {
      // As it stands.
    }
    return plain.replaceAll("~1", "/").replaceAll("~0", "~");
  }

  function toShape(given: unknown, root: Json): Shape {
    const { schema, isNullable } = dropNull(follow(given, root), root);
    const shape = { schema, isNullable, choices: toChoices(schema), hint: "" };
    const { type } = schema;
    if (shape.choices.length) return { ...shape, kind: "choice", hint: isNullable ? "choice or null" : "choice" };
    if (type === "boolean") return { ...shape, kind: "boolean", hint: "boolean" };
    if (type === "number" || type === "integer") {
      return { ...shape, kind: "number", hint: tell(type, schema, isNullable) };
    }
    if (type === "string") return { ...shape, kind: "text", hint: tell("string", schema, isNullable) };
    if (type === "array" && !Array.isArray(schema.prefixItems)) {
      const items = follow(schema.items, root);
      const choices = toChoices(items);
      const hint = tell("list", schema, isNullable);
      if (choices.length) return { ...shape, kind: "choices", choices, hint };
      const inner = toShape(items, root);
      if (["text", "number", "boolean"].includes(inner.kind) && !inner.isNullable) {
        return { ...shape, kind: "list", items, hint: `${hint} of ${inner.hint}` };
      }
    }
    const name = typeof type === "string" ? type : Array.isArray(type) ? type.join(" or ") : "any value";
    return { ...shape, kind: "json", hint: `${name}, as JSON` };
  }

  // `{ type: ["string", "null"] }` and `{ anyOf: [{ type: "string" }, { type: "null" }] }` are texts that may be null.
  function dropNull(schema: Json, root: Json): { schema: Json; isNullable: boolean } {
    const { type, anyOf, oneOf, ...rest } = schema;
    if (Array.isArray(type) && type.length === 2 && type.includes("null")) {
      return { schema: { ...schema, type: type.find((name) => name !== "null") }, isNullable: true };
    }
    const either = objects(anyOf ?? oneOf);
    const others = either.filter((one) => one.type !== "null");
    if (either.length !== 2 || others.length !== 1) return { schema, isNullable: false };
    return { schema: { ...rest, ...follow(others[0], root) }, isNullable: true };
  }

  function toChoices(schema: Json): readonly Choice[] {
    const { enumNames, oneOf, anyOf = oneOf } = schema;
    if (Object.hasOwn(schema, "const")) return [{ value: schema.const, title: name(schema.const) }];
    if (Array.isArray(schema.enum)) {
      const titles = Array.isArray(enumNames) ? enumNames : [];
      return schema.enum.map((value, at) => ({ value, title: text(titles[at]) ?? name(value) }));
    }
    const named = objects(anyOf);
    if (!Array.isArray(anyOf) || !named.every((one) => Object.hasOwn(one, "const"))) return [];
    return named.map((one) => ({ value: one.const, title: text(one.title) ?? name(one.const) }));
  }

  function name(value: unknown): string {
    return typeof value === "string" && value ? value : JSON.stringify(value);
  }

  function tell(type: string, schema: Json, isNullable: boolean): string {
    const parts = [isNullable ? `${type} or null` : type];
    const add = (label: string, value: unknown) => {
      const idle = typeof value === "number" && Math.abs(value) >= Number.MAX_SAFE_INTEGER;
      if ((typeof value === "number" && !idle) || typeof value === "string") parts.push(`${label}${value}`);
    };
    add("", schema.format);
    add("≥ ", schema.minimum);
    add("> ", schema.exclusiveMinimum);
    add("≤ ", schema.maximum);
    add("< ", schema.exclusiveMaximum);
    add("multiple of ", schema.multipleOf);
    add("min. length ", schema.minLength);
    add("max. length ", schema.maxLength);
    add("min. items ", schema.minItems);
    add("max. items ", schema.maxItems);
    if (typeof schema.format !== "string") add("", schema.pattern);
    return parts.join(", ");
  }

  function toSkeleton(given: unknown, root: Json, depth = 0): unknown {
    const { kind, schema, isNullable, choices } = toShape(given, root);
    if (schema.default !== undefined) return schema.default;
    if (isNullable || depth > deepest) return null;
    if (kind === "choice") return choices[0].value;
    if (kind === "text") return "";
    if (kind === "number") return typeof schema.minimum === "number" ? schema.minimum : 0;
    if (kind === "boolean") return false;
    if (kind === "choices" || kind === "list" || schema.type === "array") return [];
    const { properties, required } = schema;
    if (schema.type !== "object" && !isObject(properties)) return null;
    const wanted = Object.entries(isObject(properties) ? properties : {})
      .filter(([key]) => Array.isArray(required) && required.includes(key));
    return Object.fromEntries(wanted.map(([key, value]) => [key, toSkeleton(value, root, depth + 1)]));
  }

  function toRepeated({ properties }: Json, given: Json): Readonly<Record<string, string>> {
    const found: [string, string][] = [];
    for (const [key, schema] of Object.entries(isObject(properties) ? properties : {})) {
      const value = Object.hasOwn(given, key) ? given[key] : undefined;
      if (!isObject(schema) || value === undefined || value === null) continue;
      const header = schema["x-mcp-header"];
      if (typeof header === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(header)) found.push([header, String(value)]);
      if (isObject(value)) found.push(...Object.entries(toRepeated(schema, value)));
    }
    return Object.fromEntries(found);
  }

  return { toShape, toSkeleton: (schema, root) => toSkeleton(schema, root), toRepeated };
}
