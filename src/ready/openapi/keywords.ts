/**
 * Reads the keywords of a schema that contain no schemas. A value that a validator would not take is left out.
 */
import { shorten } from "../../core/kit/shorten.ts";
import { typesOf } from "../../core/schema/walker.ts";
import { isSafePattern } from "./patterns.ts";
import type { Node } from "./document.ts";

const TYPES = new Set(["null", "boolean", "object", "array", "number", "string", "integer"]);

/** Maximum length of a description, in characters. */
const MAX_DESCRIPTION = 1000;
/** Maximum length of the examples, and of the default, as JSON, in characters. */
const MAX_EXAMPLE = 200;

// A larger limit, such as the limit of 64-bit integers, is not exact in JSON. APIs of models refuse such a limit.
const isNumber = (value: unknown) => Number.isFinite(value) && Math.abs(Number(value)) <= Number.MAX_SAFE_INTEGER;
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown) => typeof value === "string";

/** The keywords whose values are kept if they pass the test. */
const PLAIN: Readonly<Record<string, (value: unknown) => boolean>> = {
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && Number(value) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minContains: isCount,
  maxContains: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: (value) => value === true,
  format: isText,
  contentEncoding: isText,
  contentMediaType: isText,
  deprecated: (value) => value === true,
  title: isText,
};

/** `required` is read with the properties. */
export function readKeywords(schema: Node): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  const notes: string[] = [];
  if (typeof schema.description === "string") notes.push(shorten(schema.description.trim(), MAX_DESCRIPTION));
  for (const [key, isValid] of Object.entries(PLAIN)) {
    if (schema[key] !== undefined && isValid(schema[key])) kept[key] = schema[key];
  }
  readLimit(schema, kept, ["exclusiveMinimum", "minimum"]);
  readLimit(schema, kept, ["exclusiveMaximum", "maximum"]);
  readType(schema, kept);
  if (typeof schema.pattern === "string") {
    const { maxLength } = kept;
    if (isSafePattern(schema.pattern, typeof maxLength === "number" ? maxLength : undefined)) {
      kept.pattern = schema.pattern;
    } else notes.push(`Pattern: ${shorten(schema.pattern, MAX_EXAMPLE)}`);
  }
  // A default in the schema would be sent as an argument.
  if (schema.default !== undefined && schema.default !== null) {
    const text = JSON.stringify(schema.default);
    if (text.length <= MAX_EXAMPLE) notes.push(`Default: ${text}`);
  }
  const examples = Array.isArray(schema.examples) ? schema.examples.slice(0, 2) : [schema.example];
  if (examples[0] !== undefined && JSON.stringify(examples).length <= MAX_EXAMPLE) kept.examples = examples;
  // A title repeats a description in other words.
  if (notes.length) delete kept.title;
  const description = notes.filter(Boolean).join(" ");
  if (description) kept.description = description;
  return kept;
}

/** Reads a limit, which is a flag next to the other limit in older versions. */
function readLimit(schema: Node, kept: Record<string, unknown>, [exclusive, limit]: readonly [string, string]): void {
  if (schema[exclusive] !== true || kept[limit] === undefined) return;
  kept[exclusive] = kept[limit];
  delete kept[limit];
}

/** Reads the types and the allowed values, and adds `null` where an older version has `nullable`. */
function readType(schema: Node, kept: Record<string, unknown>): void {
  const types = [...new Set([schema.type].flat().filter((type) => TYPES.has(String(type))))];
  const values = Array.isArray(schema.enum) ? unique(schema.enum) : [];
  if (isNullable(schema) && types.length && !types.includes("null")) types.push("null");
  // Documents rarely repeat `null` in the enum.
  if ((isNullable(schema) || types.includes("null")) && values.length && !values.includes(null)) values.push(null);
  if (schema.const !== undefined) kept.const = schema.const;
  if (values.length) kept.enum = values;
  // Some documents quote the numbers of an enum, or have words that YAML reads as booleans.
  const allowed = values.length ? values : schema.const !== undefined ? [schema.const] : [];
  if (
    !types.length || allowed.length && !allowed.some((value) => typesOf(value).some((type) => types.includes(type)))
  ) return;
  kept.type = types.length === 1 ? types[0] : types;
}

/** Whether a schema of an older version also accepts `null`. */
export function isNullable(schema: Node): boolean {
  return schema.nullable === true || schema["x-nullable"] === true;
}

function unique(values: readonly unknown[]): unknown[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}
