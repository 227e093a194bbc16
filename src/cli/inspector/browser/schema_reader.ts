/**
 * Reads JSON Schemas for forms.
 *
 * @module
 */
import type { Json, JsonTools } from "./json_tools.ts";

/** A value to choose. */
export interface Choice {
  readonly value: unknown;
  readonly title: string;
}

/** A member of a union. */
export interface Variant {
  readonly title: string;
  readonly schema: Json;
}

/** The shape of a value. */
export interface Shape {
  readonly kind: "text" | "number" | "boolean" | "choice" | "choices" | "list" | "object" | "union" | "json";
  /** The schema with resolved references. */
  readonly schema: Json;
  readonly isNullable: boolean;
  readonly choices: readonly Choice[];
  /** The members of a union. */
  readonly variants: readonly Variant[];
  /** The schema of the items of a list. */
  readonly items?: Json;
  /** A short description, such as `integer, ≥ 1`. */
  readonly hint: string;
}

/** Reads schemas. The work is limited for any schema, and patterns of a schema are never run. */
export interface SchemaReader {
  /** The shape of a value. `root` holds the definitions that references name. */
  toShape(schema: unknown, root: Json): Shape;
  /** An initial value with all required properties. */
  toSkeleton(schema: unknown, root: Json): unknown;
  /** Whether a value seems to match a schema. */
  resembles(value: unknown, schema: unknown, root: Json): boolean;
  /** The problem of a value, in one sentence. Returns `undefined` if the page finds none. */
  findProblem(value: unknown, schema: Json): string | undefined;
  /** The arguments for `Mcp-Param-` headers. */
  toParamHeaders(schema: Json, given: Json): Readonly<Record<string, string>>;
}

/** Creates the reader. */
export function createSchemaReader({ isObject, objects, text, compact }: JsonTools): SchemaReader {
  const maxDepth = 8; // levels of references, which may be circular
  const maxChoices = 500; // options of a list, because more are slow and unusable
  const maxVariants = 50;
  const maxParts = 500; // values of a skeleton
  const maxPatternCharacters = 200; // characters of a pattern in a hint

  function follow(given: unknown, root: Json, depth = 0): Json {
    let schema = isObject(given) ? given : {};
    for (let step = 0; step < maxDepth && typeof schema.$ref === "string"; step++) {
      const { $ref: _, ...rest } = schema;
      const path = schema.$ref.startsWith("#/") ? schema.$ref.slice(2).split("/").map(unescape) : [];
      const target = path.reduce<unknown>(
        (at, key) => isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined,
        schema.$ref === "#" || path.length ? root : undefined,
      );
      if (!isObject(target)) return rest;
      schema = { ...target, ...rest };
    }
    const { allOf, ...rest } = schema;
    const parts = objects(allOf);
    if (!parts.length || parts.length > maxVariants || depth > maxDepth) return schema;
    return parts.reduce((whole, part) => merge(whole, follow(part, root, depth + 1)), rest);
  }

  /** Combines two schemas that both apply. */
  function merge(one: Json, other: Json): Json {
    const merged = { ...other, ...one };
    if (!isObject(one.properties) || !isObject(other.properties)) {
      return Array.isArray(one.required) && Array.isArray(other.required)
        ? { ...merged, required: [...one.required, ...other.required] }
        : merged;
    }
    const required = [one.required, other.required].flatMap((names) => Array.isArray(names) ? names : []);
    // The order is that of the first schema. The second wins, because a variant is more specific than its base.
    return { ...merged, properties: { ...one.properties, ...other.properties }, required };
  }

  function unescape(key: string): string {
    let plain = key;
    try {
      plain = decodeURIComponent(key);
    } catch {
      // It is not percent-encoded.
    }
    return plain.replaceAll("~1", "/").replaceAll("~0", "~");
  }

  function toShape(given: unknown, root: Json): Shape {
    const { schema, isNullable } = dropNull(follow(given, root), root);
    const choices = toChoices(schema);
    const shape = { schema, isNullable, choices, variants: [], hint: "" };
    const { type } = schema;
    if (choices.length > maxChoices) {
      const areTexts = choices.every(({ value }) => typeof value === "string");
      const hint = `one of ${choices.length} values${areTexts ? "" : ", as JSON"}`;
      return { ...shape, kind: areTexts ? "text" : "json", choices: [], hint };
    }
    if (choices.length) return { ...shape, kind: "choice", hint: isNullable ? "choice or null" : "choice" };
    const variants = toVariants(schema, root);
    if (variants.length > 1) {
      return { ...shape, kind: "union", variants, hint: isNullable ? "one of several, or null" : "one of several" };
    }
    if (type === "boolean") return { ...shape, kind: "boolean", hint: "boolean" };
    if (type === "number" || type === "integer") {
      return { ...shape, kind: "number", hint: tell(type, schema, isNullable) };
    }
    if (type === "string") return { ...shape, kind: "text", hint: tell("string", schema, isNullable) };
    if (type === "array" && !Array.isArray(schema.prefixItems) && isObject(schema.items)) {
      const items = follow(schema.items, root);
      const choices = toChoices(items);
      const hint = tell("list", schema, isNullable);
      const isFew = choices.length > 0 && choices.length <= maxChoices;
      return isFew ? { ...shape, kind: "choices", choices, hint } : { ...shape, kind: "list", items, hint };
    }
    if ((type === "object" || type === undefined) && isObject(schema.properties)) {
      if (Object.keys(schema.properties).length) {
        return { ...shape, kind: "object", hint: tell("object", schema, isNullable) };
      }
    }
    return {
      ...shape,
      kind: "json",
      hint: `${isNullable ? `${toTypeName(schema)} or null` : toTypeName(schema)}, as JSON`,
    };
  }

  function toTypeName({ type }: Json): string {
    return typeof type === "string" ? type : Array.isArray(type) ? type.join(" or ") : "any value";
  }

  // `{ type: ["string", "null"] }` and `{ anyOf: [{ type: "string" }, { type: "null" }] }` are nullable strings.
  function dropNull(schema: Json, root: Json): { schema: Json; isNullable: boolean } {
    const { type, anyOf, oneOf, ...rest } = schema;
    if (Array.isArray(type) && type.includes("null")) {
      const others = type.filter((name) => name !== "null");
      return { schema: { ...schema, type: others.length === 1 ? others[0] : others }, isNullable: true };
    }
    const either = objects(anyOf ?? oneOf);
    const others = either.filter((one) => one.type !== "null");
    if (others.length === either.length || !others.length) return { schema, isNullable: false };
    if (others.length > 1) {
      return { schema: { ...rest, ...type === undefined ? {} : { type }, anyOf: others }, isNullable: true };
    }
    return { schema: { ...follow(others[0], root), ...rest }, isNullable: true };
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

  function toVariants(schema: Json, root: Json): readonly Variant[] {
    const { anyOf, oneOf, type, title: _, description: __, default: ___, ...base } = schema;
    const either = objects(anyOf ?? oneOf);
    if (either.length > maxVariants) return [];
    const isBase = isObject(base.properties);
    const shared = type === undefined ? base : { ...base, type };
    const variants = either.length
      ? either.map((one) => merge(isBase ? shared : type === undefined ? {} : { type }, follow(one, root)))
      : Array.isArray(type) && type.length > 1
      ? type.map((one) => ({ ...base, type: one }))
      : [];
    return variants.map((variant, at) => ({ title: toVariantTitle(variant, at), schema: variant }));
  }

  /** The title of a variant: its title, a constant in it, or its type. */
  function toVariantTitle(variant: Json, at: number): string {
    const title = text(variant.title);
    if (title !== undefined) return title;
    if (isObject(variant.properties)) {
      for (const [key, property] of Object.entries(variant.properties).slice(0, maxVariants)) {
        if (isObject(property) && Object.hasOwn(property, "const")) return `${key}: ${name(property.const)}`;
      }
    }
    if (Array.isArray(variant.enum)) return variant.enum.slice(0, 3).map(name).join(", ");
    return Object.hasOwn(variant, "const") ? name(variant.const) : text(variant.type) ?? `Variant ${at + 1}`;
  }

  function name(value: unknown): string {
    return typeof value === "string" && value ? value : compact(value).slice(0, maxPatternCharacters);
  }

  function tell(type: string, schema: Json, isNullable: boolean): string {
    const parts = [isNullable ? `${type} or null` : type];
    const add = (label: string, value: unknown) => {
      const idle = typeof value === "number" && Math.abs(value) >= Number.MAX_SAFE_INTEGER;
      if ((typeof value === "number" && !idle) || typeof value === "string") {
        parts.push(`${label}${String(value).slice(0, maxPatternCharacters)}`);
      }
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
    if (typeof schema.format !== "string") add("must match ", schema.pattern);
    return parts.join(", ");
  }

  function toSkeleton(given: unknown, root: Json, depth: number, left: { parts: number }): unknown {
    left.parts--;
    const { kind, schema, isNullable, choices, variants } = toShape(given, root);
    if (schema.default !== undefined) return schema.default;
    if (isNullable || depth > maxDepth || left.parts < 0) return null;
    if (kind === "choice") return choices[0].value;
    if (kind === "union") return toSkeleton(variants[0].schema, root, depth + 1, left);
    if (kind === "text") return "";
    if (kind === "number") return typeof schema.minimum === "number" ? schema.minimum : 0;
    if (kind === "boolean") return false;
    if (kind === "choices" || kind === "list" || schema.type === "array") return [];
    const { properties, required } = schema;
    if (schema.type !== "object" && !isObject(properties)) return null;
    const names = new Set(Array.isArray(required) ? required.slice(0, maxParts) : []);
    const wanted = Object.entries(isObject(properties) ? properties : {}).filter(([key]) => names.has(key));
    return Object.fromEntries(wanted.map(([key, value]) => [key, toSkeleton(value, root, depth + 1, left)]));
  }

  function resembles(value: unknown, given: unknown, root: Json): boolean {
    const { kind, schema, choices } = toShape(given, root);
    if (kind === "choice") return choices.some((choice) => compact(choice.value) === compact(value));
    if (kind === "text") return typeof value === "string";
    if (kind === "number") return typeof value === "number";
    if (kind === "boolean") return typeof value === "boolean";
    if (kind === "list" || kind === "choices" || schema.type === "array") return Array.isArray(value);
    if (kind !== "object") {
      return schema.type === "object" ? isObject(value) : kind === "json" && schema.type === undefined;
    }
    if (!isObject(value)) return false;
    const required = Array.isArray(schema.required) ? schema.required.slice(0, maxParts) : [];
    if (!required.every((key) => Object.hasOwn(value, String(key)))) return false;
    const properties = isObject(schema.properties) ? schema.properties : {};
    return Object.entries(value).slice(0, maxParts).every(([key, one]) => {
      const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
      return !isObject(property) || !Object.hasOwn(property, "const") || compact(property.const) === compact(one);
    });
  }

  function findProblem(value: unknown, schema: Json): string | undefined {
    const is = (limit: unknown, holds: (limit: number) => boolean) => typeof limit === "number" && !holds(limit);
    if (typeof value === "number") {
      if (schema.type === "integer" && !Number.isInteger(value)) return "Enter a whole number.";
      if (is(schema.minimum, (limit) => value >= limit)) return `Enter a number of at least ${schema.minimum}.`;
      if (is(schema.maximum, (limit) => value <= limit)) return `Enter a number of at most ${schema.maximum}.`;
      if (is(schema.exclusiveMinimum, (limit) => value > limit)) {
        return `Enter a number greater than ${schema.exclusiveMinimum}.`;
      }
      if (is(schema.exclusiveMaximum, (limit) => value < limit)) {
        return `Enter a number less than ${schema.exclusiveMaximum}.`;
      }
    }
    if (typeof value === "string") {
      // JSON Schema counts code points, not UTF-16 code units.
      const length = typeof schema.minLength === "number" || typeof schema.maxLength === "number"
        ? [...value].length
        : 0;
      if (is(schema.minLength, (limit) => length >= limit)) return `Enter at least ${schema.minLength} characters.`;
      if (is(schema.maxLength, (limit) => length <= limit)) return `Enter at most ${schema.maxLength} characters.`;
    }
    if (Array.isArray(value)) {
      if (is(schema.minItems, (limit) => value.length >= limit)) return `Add at least ${schema.minItems} items.`;
      if (is(schema.maxItems, (limit) => value.length <= limit)) return `Keep at most ${schema.maxItems} items.`;
      if (schema.uniqueItems === true && new Set(value.map(compact)).size < value.length) {
        return "Two items are the same; they must differ.";
      }
    }
  }

  function toParamHeaders({ properties }: Json, given: Json): Readonly<Record<string, string>> {
    const found: [string, string][] = [];
    for (const [key, schema] of Object.entries(isObject(properties) ? properties : {})) {
      const value = Object.hasOwn(given, key) ? given[key] : undefined;
      if (!isObject(schema) || value === undefined || value === null) continue;
      const header = schema["x-mcp-header"];
      if (typeof header === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(header)) found.push([header, String(value)]);
      if (isObject(value)) found.push(...Object.entries(toParamHeaders(schema, value)));
    }
    return Object.fromEntries(found);
  }

  return {
    toShape,
    toSkeleton: (schema, root) => toSkeleton(schema, root, 0, { parts: maxParts }),
    resembles,
    findProblem,
    toParamHeaders,
  };
}
