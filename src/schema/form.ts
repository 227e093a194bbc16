/**
 * Narrows a schema to what a client can show as a form: a flat object of text, numbers, switches and choices.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { type Checked, compileSchema, type JsonSchema, type Schema } from "./schema.ts";

/** A question that a client can show, and the check of its answer. */
export interface Form {
  /** The schema in the words of `specification/2026-07-28/client/elicitation`, "Requested Schema". */
  readonly requestedSchema: JsonSchema;
  /** Checks what the user filled in, by the whole schema and not by what is left of it here. */
  check(content: unknown): Checked | Promise<Checked>;
}

// What each type may carry besides a title, a description and a default.
const KEPT: { readonly [type: string]: readonly string[] } = {
  string: ["minLength", "maxLength", "format"],
  number: ["minimum", "maximum"],
  integer: ["minimum", "maximum"],
  boolean: [],
  array: ["minItems", "maxItems"],
};
// What a client would not keep to, so that an answer could be refused for no reason that its author sees.
const LOST = /^(pattern|multipleOf|exclusive.+|const|enum|...Of|not|if)$/;
const FORMATS: readonly unknown[] = ["email", "uri", "date", "date-time", undefined];

const IDLE: readonly unknown[] = [undefined, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];

/**
 * Makes a form of a schema. What only restates the rest is dropped: the pattern beside a known format, bounds at the
 * ends of the safe integers.
 *
 * @throws {TypeError} naming the field and the remedy if a form cannot ask for it; `place` tells where.
 */
export function toForm(schema: Schema, place: string): Form {
  const { json, validate } = compileSchema(schema, { use: "input", place });
  const { properties = {}, required, $defs, anyOf, oneOf, allOf } = json();
  const refuse = (what: string, state: string) =>
    new TypeError(`Cannot ask for ${what} in an elicitation form: ${state} (${place})`);
  if (anyOf ?? oneOf ?? allOf) throw refuse("alternatives", "it is one flat object; ask in several forms");
  const fields = Object.entries(Object(properties)).map(([name, given]) => {
    const field = toField(given, $defs);
    if (typeof field === "string") throw refuse(JSON.stringify(name), field);
    return [name, field];
  });
  return {
    requestedSchema: { type: "object", properties: Object.fromEntries(fields), ...(required ? { required } : {}) },
    check: validate,
  };
}

/** The field as forms know it, or why they do not. */
function toField(given: unknown, $defs: unknown): JsonSchema | string {
  const field = resolve(given, $defs);
  const many = field.type === "array";
  const choices = toChoices(many ? resolve(field.items, $defs) : field);
  const type = many || !choices ? String(field.type) : "string";
  const bounds = KEPT[type];
  if (type === "object") return "nested objects are not allowed; ask for its fields one by one";
  if (JSON.stringify([field.type, field.anyOf]).includes('"null"')) return "null is not allowed; make it optional";
  if (!bounds) return "it is neither text nor a number, a boolean or a choice; make it one of them";
  if (many && !choices) return "a list may hold nothing but choices; give its items an enum of texts";

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
    if (!FORMATS.includes(format)) return `format ${format} is not allowed; use email, uri, date, date-time or none`;
    if (format) delete field.pattern;
    const lost = Object.keys(field).find((key) => LOST.test(key));
    if (lost) return `${lost} is not allowed; leave it out and check the answer in the handler`;
  }
  const kept = ["title", "description", "default", ...(choices && !many ? [] : bounds)]
    .filter((key) => !IDLE.includes(field[key]))
    .map((key) => [key, field[key]]);
  const items = choices?.oneOf ? { anyOf: choices.oneOf } : { type: "string", ...choices };
  return { type, ...Object.fromEntries(kept), ...(many ? { items } : choices) };
}

/** A copy of a schema in which a reference to a definition is replaced by what it means. */
function resolve(schema: unknown, $defs: unknown): Record<string, unknown> {
  const { $ref, ...own } = isObject(schema) ? schema : {};
  const name = String($ref).replace("#/$defs/", "");
  return { ...(isObject($defs) && Object.hasOwn($defs, name) ? Object($defs[name]) : {}), ...own };
}

/** A choice of texts, with titles if one of them has one. */
function toChoices({ oneOf, anyOf = oneOf, const: only, enum: all = only && [only], enumNames }: JsonSchema) {
  if (Array.isArray(anyOf) && anyOf.every((one) => typeof one.const === "string")) {
    return anyOf.some((one) => one.title)
      ? { oneOf: anyOf.map(({ const: value, title = value }) => ({ const: value, title })) }
      : { enum: anyOf.map((one) => one.const) };
  }
  const texts = Array.isArray(all) && all.every((one) => typeof one === "string") ? { enum: all } : undefined;
  return texts && enumNames ? { ...texts, enumNames } : texts;
}
