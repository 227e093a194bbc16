/**
 * Reads JSON Schemas for forms. Limits on depth and size keep the page fast, whatever schema a server sends.
 */
import { isObject, readAt } from "../../../core/kit/json.ts";
import { findDiscriminator } from "../../../core/schema/discriminator.ts";
import { listHeaderParams } from "../../../core/schema/header_params.ts";
import { listChoices, resolveRef } from "../../../core/schema/walker.ts";
import { type Json, toCompact, toObject, toObjects, toText } from "./json.ts";

export interface Choice {
  readonly value: unknown;
  readonly title: string;
}

export interface Variant {
  readonly title: string;
  readonly schema: Json;
  /** Properties without a field, because the choice of the variant sets their values. */
  readonly fixed: Json;
}

/** The shape of a value, from which the form chooses a control. */
export interface Shape {
  readonly kind: "text" | "number" | "boolean" | "choice" | "choices" | "list" | "object" | "union" | "json";
  /** The schema, with its references resolved. */
  readonly schema: Json;
  readonly isNullable: boolean;
  readonly choices: readonly Choice[];
  readonly variants: readonly Variant[];
  readonly items?: Json;
  /** A short description, such as `integer, ≥ 1`. */
  readonly hint: string;
}

/** Maximum number of nested parts to read, because references may be circular. */
const MAX_DEPTH = 8;
/** Maximum number of options in a select, because a longer select would be slow and hard to use. */
const MAX_CHOICES = 500;
const MAX_VARIANTS = 50;
/** Maximum number of values in the result of {@linkcode toSkeleton}. */
const MAX_PARTS = 500;
/** Maximum length of a value in a hint, in characters. */
const MAX_HINT = 200;

/** Returns the shape of a value. `root` contains the targets of references. */
export function toShape(given: unknown, root: Json): Shape {
  const { schema, isNullable } = dropNull(follow(given, root), root);
  const { type } = schema;
  const choices = toChoices(schema);
  const shape = { schema, isNullable, choices, variants: [] };
  if (choices.length > MAX_CHOICES) {
    const areTexts = choices.every(({ value }) => typeof value === "string");
    const hint = `one of ${choices.length} values${areTexts ? "" : ", as JSON"}`;
    return { ...shape, kind: areTexts ? "text" : "json", choices: [], hint };
  }
  if (choices.length) return { ...shape, kind: "choice", hint: isNullable ? "choice or null" : "choice" };
  const variants = toVariants(schema, root);
  if (variants.length > 1) {
    return { ...shape, kind: "union", variants, hint: isNullable ? "one of several types, or null" : "one of several" };
  }
  if (type === "boolean") return { ...shape, kind: "boolean", hint: "boolean" };
  if (type === "number" || type === "integer") {
    return { ...shape, kind: "number", hint: toHint(type, schema, isNullable) };
  }
  if (type === "string") return { ...shape, kind: "text", hint: toHint("string", schema, isNullable) };
  if (type === "array" && !Array.isArray(schema.prefixItems) && isObject(schema.items)) {
    const items = follow(schema.items, root);
    const choices = toChoices(items);
    const hint = toHint("list", schema, isNullable);
    const isFew = choices.length > 0 && choices.length <= MAX_CHOICES;
    return isFew ? { ...shape, kind: "choices", choices, hint } : { ...shape, kind: "list", items, hint };
  }
  const isEmpty = !Object.keys(toObject(schema.properties)).length;
  if ((type === "object" || type === undefined) && !isEmpty) {
    return { ...shape, kind: "object", hint: toHint("object", schema, isNullable) };
  }
  const name = typeof type === "string" ? type : Array.isArray(type) ? type.join(" or ") : "any value";
  return { ...shape, kind: "json", hint: `${isNullable ? `${name} or null` : name}, as JSON` };
}

/** Resolves references, and combines the schemas of `allOf`. */
function follow(given: unknown, root: Json, depth = 0): Json {
  const schema = toObject(resolveRef(given, root));
  const { allOf, ...rest } = schema;
  const parts = toObjects(allOf);
  if (!parts.length || parts.length > MAX_VARIANTS || depth > MAX_DEPTH) return schema;
  return parts.reduce((whole, part) => merge(whole, follow(part, root, depth + 1)), rest);
}

/** Combines two schemas that apply to the same value. */
function merge(one: Json, other: Json): Json {
  const merged = { ...other, ...one };
  const required = [one.required, other.required].flatMap((names) => Array.isArray(names) ? names : []);
  if (!isObject(one.properties) || !isObject(other.properties)) {
    return required.length ? { ...merged, required } : merged;
  }
  // Keep the order of the first schema's properties. The second schema takes precedence, because a variant is more
  // specific than its base schema.
  return { ...merged, properties: { ...one.properties, ...other.properties }, required };
}

// Removes null from a schema. `{ type: ["string", "null"] }` and `{ anyOf: [{ type: "string" }, { type: "null" }] }`
// both become nullable strings.
function dropNull(schema: Json, root: Json): { schema: Json; isNullable: boolean } {
  const { type, anyOf, oneOf, ...rest } = schema;
  if (Array.isArray(type) && type.includes("null")) {
    const others = type.filter((name) => name !== "null");
    return { schema: { ...schema, type: others.length === 1 ? others[0] : others }, isNullable: true };
  }
  const either = toObjects(anyOf ?? oneOf);
  const others = either.filter((one) => one.type !== "null");
  if (others.length === either.length || !others.length) return { schema, isNullable: false };
  if (others.length > 1) {
    return { schema: { ...rest, ...type === undefined ? {} : { type }, anyOf: others }, isNullable: true };
  }
  return { schema: { ...follow(others[0], root), ...rest }, isNullable: true };
}

function toChoices(schema: Json): readonly Choice[] {
  const choices = listChoices(schema) ?? [];
  return choices.map(({ value, title }) => ({ value, title: toText(title) ?? toName(value) }));
}

function toVariants(schema: Json, root: Json): readonly Variant[] {
  const { anyOf, oneOf, type, title: _, description: __, default: ___, ...base } = schema;
  const either = toObjects(anyOf ?? oneOf);
  if (either.length > MAX_VARIANTS) return [];
  const shared = type === undefined ? {} : { type };
  const variants = either.length
    ? either.map((one) => merge(isObject(base.properties) ? { ...base, ...shared } : shared, follow(one, root)))
    : Array.isArray(type) && type.length > 1
    ? type.map((one) => ({ ...base, type: one }))
    : [];
  const isSmall = variants.every(({ properties }) => Object.keys(toObject(properties)).length <= MAX_CHOICES);
  const { name, forms } = isSmall && findDiscriminator(variants, (variant) => [variant]) || {};
  return variants.map((schema, at) => {
    const values = [...forms ?? []].filter(([, form]) => form === schema).map(([value]) => value);
    const fixed = name !== undefined && values.length === 1 ? { [name]: values[0] } : {};
    return { schema, fixed, title: toVariantTitle(schema, fixed) ?? `Variant ${at + 1}` };
  });
}

/** Returns the title of a variant: the `title` of its schema, a constant in the variant, or its type. */
function toVariantTitle(variant: Json, fixed: Json): string | undefined {
  const [[name, value] = []] = Object.entries(fixed);
  if (toText(variant.title) !== undefined) return toText(variant.title);
  if (name !== undefined) return `${name}: ${toName(value)}`;
  if (Array.isArray(variant.enum)) return variant.enum.slice(0, 3).map(toName).join(", ");
  return Object.hasOwn(variant, "const") ? toName(variant.const) : toText(variant.type);
}

function toName(value: unknown): string {
  return typeof value === "string" && value ? value : toCompact(value).slice(0, MAX_HINT);
}

function toHint(type: string, schema: Json, isNullable: boolean): string {
  const { format, minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema;
  const limits: readonly (readonly [label: string, value: unknown])[] = [
    ["", format],
    ["≥ ", minimum],
    ["> ", exclusiveMinimum],
    ["≤ ", maximum],
    ["< ", exclusiveMaximum],
    ["multiple of ", multipleOf],
    ["min. length ", schema.minLength],
    ["max. length ", schema.maxLength],
    ["min. items ", schema.minItems],
    ["max. items ", schema.maxItems],
    ["must match ", typeof format === "string" ? undefined : schema.pattern],
  ];
  const isIdle = (value: number) => Math.abs(value) >= Number.MAX_SAFE_INTEGER;
  const shown = limits
    .filter(([, value]) => typeof value === "string" || (typeof value === "number" && !isIdle(value)))
    .map(([label, value]) => label + String(value).slice(0, MAX_HINT));
  return [isNullable ? `${type} or null` : type, ...shown].join(", ");
}

/** Returns an initial value with all required properties, up to `MAX_PARTS` values. */
export function toSkeleton(given: unknown, root: Json, depth = 0, left = { parts: MAX_PARTS }): unknown {
  left.parts--;
  const { kind, schema, isNullable, choices, variants } = toShape(given, root);
  if (schema.default !== undefined) return schema.default;
  if (isNullable || depth > MAX_DEPTH || left.parts < 0) return null;
  if (kind === "choice") return choices[0].value;
  if (kind === "union") return toSkeleton(variants[0].schema, root, depth + 1, left);
  if (kind === "text") return "";
  if (kind === "number") return typeof schema.minimum === "number" ? schema.minimum : 0;
  if (kind === "boolean") return false;
  if (kind === "choices" || kind === "list" || schema.type === "array") return [];
  if (schema.type !== "object" && !isObject(schema.properties)) return null;
  const names = new Set(listRequired(schema));
  const wanted = Object.entries(toObject(schema.properties)).filter(([key]) => names.has(key));
  return Object.fromEntries(wanted.map(([key, value]) => [key, toSkeleton(value, root, depth + 1, left)]));
}

/** Whether a value seems to match a schema. */
export function resembles(value: unknown, given: unknown, root: Json): boolean {
  const { kind, schema, choices } = toShape(given, root);
  if (kind === "choice") return choices.some((choice) => toCompact(choice.value) === toCompact(value));
  if (kind === "text") return typeof value === "string";
  if (kind === "number") return typeof value === "number";
  if (kind === "boolean") return typeof value === "boolean";
  if (kind === "list" || kind === "choices" || schema.type === "array") return Array.isArray(value);
  if (kind !== "object") {
    return schema.type === "object" ? isObject(value) : kind === "json" && schema.type === undefined;
  }
  if (!isObject(value) || !listRequired(schema).every((key) => Object.hasOwn(value, String(key)))) return false;
  return Object.entries(value).slice(0, MAX_PARTS).every(([key, one]) => {
    const property = toObject(readAt(schema.properties, [key]));
    return !Object.hasOwn(property, "const") || toCompact(property.const) === toCompact(one);
  });
}

function listRequired({ required }: Json): readonly unknown[] {
  return Array.isArray(required) ? required.slice(0, MAX_PARTS) : [];
}

/** Returns the values of `Mcp-Param-` headers, by header name without the prefix. */
export function toParamHeaders(schema: Json, given: Json): Readonly<Record<string, string>> {
  const values = listHeaderParams(schema).map(({ header, path }) => [header, readAt(given, path)] as const);
  const sent = values.filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(sent.map(([header, value]) => [header, String(value)]));
}
