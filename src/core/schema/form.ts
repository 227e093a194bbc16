/**
 * Converts a schema to an elicitation form: a flat object of strings, numbers, booleans and choices.
 */
import type { Checked, JsonSchema, Schema } from "./schema.ts";
import { compileSchema } from "./schema_compiler.ts";
import { listChoices, resolveRef } from "./walker.ts";

export interface Form {
  /** The restricted JSON Schema of `specification/2026-07-28/client/elicitation` (Requested Schema). */
  readonly requestedSchema: JsonSchema;
  /** The defaults of the fields: the answer of a client that sends no content. */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** Checks the user's answer against the original schema, not against the restricted schema. */
  check(content: unknown): Checked | Promise<Checked>;
}

// Keywords that a field of each type may have in addition to a title, a description and a default.
const ALLOWED_KEYWORDS: { readonly [type: string]: readonly string[] } = {
  string: ["minLength", "maxLength", "format"],
  number: ["minimum", "maximum"],
  integer: ["minimum", "maximum"],
  boolean: [],
  array: ["minItems", "maxItems"],
};
// Keywords that a form cannot express. A schema with such a keyword is rejected, because clients would not enforce the
// keyword, and would send answers that the schema rejects.
const UNSUPPORTED_KEYWORDS = /^(pattern|multipleOf|exclusive.+|const|enum|...Of|not|if)$/;
const FORMATS: readonly unknown[] = ["email", "uri", "date", "date-time", undefined];

const IDLE: readonly unknown[] = [undefined, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];

/**
 * Converts a schema to a form. Omits the pattern of a known format, and a minimum or maximum that is the smallest or
 * largest safe integer, because forms do not need these keywords.
 *
 * @throws {TypeError} with the field and the remedy if a form cannot express the schema. `place` is the location of the
 * schema, for the error message.
 */
export function toForm(schema: Schema, place: string): Form {
  const { json, validate } = compileSchema(schema, { use: "input", place });
  const root = json();
  const { properties = {}, required, anyOf, oneOf, allOf } = root;
  const refuse = (what: string, state: string) =>
    new TypeError(`Cannot ask for ${what} in an elicitation form: ${state} (${place})`);
  if (anyOf ?? oneOf ?? allOf) {
    throw refuse("anyOf, oneOf or allOf", "a form is a single flat object; use several forms");
  }
  const fields = Object.entries(Object(properties)).map(([name, given]) => {
    const field = toField(given, root);
    if (typeof field === "string") throw refuse(JSON.stringify(name), field);
    return [name, field] as const;
  });
  const defaults = fields.flatMap(([name, field]) => "default" in field ? [[name, field.default]] : []);
  return {
    defaults: Object.fromEntries(defaults),
    requestedSchema: { type: "object", properties: Object.fromEntries(fields), ...(required ? { required } : {}) },
    check: validate,
  };
}

/** If a form cannot express the field, returns the reason as a string. */
function toField(given: unknown, root: JsonSchema): JsonSchema | string {
  const field: Record<string, unknown> = { ...Object(resolveRef(given, root)) };
  const many = field.type === "array";
  const choices = toChoices(many ? Object(resolveRef(field.items, root)) : field);
  const type = many || !choices ? String(field.type) : "string";
  const bounds = ALLOWED_KEYWORDS[type];
  if (type === "object") return "nested objects are not allowed; move the nested fields to the top level";
  if (JSON.stringify([field.type, field.anyOf]).includes('"null"')) {
    return "null is not allowed; make the field optional";
  }
  if (!bounds) return "its type is not supported; use a string, a number, a boolean or a choice";
  if (many && !choices) return "a list may contain only choices; use an enum of strings for the items";

  if (!choices) {
    const { exclusiveMinimum: over, exclusiveMaximum: under, format } = field;
    if (type === "integer" && typeof over === "number") {
      field.minimum = Math.floor(over) + 1;
      delete field.exclusiveMinimum;
    }
    if (type === "integer" && typeof under === "number") {
      field.maximum = Math.ceil(under) - 1;
      delete field.exclusiveMaximum;
    }
    if (!FORMATS.includes(format)) {
      return `format ${format} is not allowed; use email, uri, date or date-time, or omit the format`;
    }
    if (format) delete field.pattern;
    const unsupported = Object.keys(field).find((key) => UNSUPPORTED_KEYWORDS.test(key));
    if (unsupported) return `${unsupported} is not allowed; check the answer in the handler instead`;
  }
  const kept = ["title", "description", "default", ...(choices && !many ? [] : bounds)]
    .filter((key) => !IDLE.includes(field[key]))
    .map((key) => [key, field[key]]);
  const items = choices?.oneOf ? { anyOf: choices.oneOf } : { type: "string", ...choices };
  return { type, ...Object.fromEntries(kept), ...(many ? { items } : choices) };
}

/** Returns the choices of a string field. If any choice has a title, returns titles for all choices. */
function toChoices(schema: JsonSchema) {
  const choices = listChoices(schema);
  if (!choices?.every(({ value }) => typeof value === "string")) return;
  const { enumNames } = schema;
  const hasTitles = !enumNames && choices.some(({ title }) => title);
  if (hasTitles) return { oneOf: choices.map(({ value, title = value }) => ({ const: value, title })) };
  return { enum: choices.map(({ value }) => value), ...enumNames ? { enumNames } : {} };
}
