/**
 * Checks answers to elicitation forms.
 *
 * Forms are flat, so few JSON Schema keywords are needed. The client leaves `pattern` to the server, because a pattern
 * with catastrophic backtracking could block the client.
 *
 * @see specification/2026-07-28/client/elicitation
 */
import { isObject } from "../kit/json.ts";
import { listChoices } from "./walker.ts";

type Params = Readonly<Record<string, unknown>>;

/** Returns a text such as `age: it must be at least 18`, or `undefined` if the answer matches. */
export function findFormMisfit(schema: Params, content: Params): string | undefined {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const missing = required.find((name) => typeof name === "string" && !Object.hasOwn(content, name));
  if (missing !== undefined) return `${missing}: it is required`;
  for (const [name, value] of Object.entries(content)) {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (field === undefined && schema.additionalProperties === false) return `${name}: the form has no such field`;
    const misfit = findFieldMisfit(isObject(field) ? field : {}, value);
    if (misfit !== undefined) return `${name}: ${misfit}`;
  }
}

/** Returns `undefined` if the value matches. */
export function findFieldMisfit(schema: Params, value: unknown): string | undefined {
  switch (schema.type) {
    case "string":
      return typeof value === "string" ? findTextMisfit(schema, value) : "it must be a string";
    case "boolean":
      return typeof value === "boolean" ? undefined : "it must be true or false";
    case "number":
    case "integer":
      return findNumberMisfit(schema, value);
    case "array":
      return Array.isArray(value) ? findListMisfit(schema, value) : "it must be an array of strings";
  }
  if (["string", "boolean"].includes(typeof value) || Number.isFinite(value)) return;
  const isList = Array.isArray(value) && value.every((each) => typeof each === "string");
  return isList ? undefined : "it must be a string, a number, a boolean or an array of strings";
}

function findTextMisfit(schema: Params, value: string): string | undefined {
  const { minLength, maxLength, format } = schema;
  const choices = listChoices(schema);
  if (choices && !choices.some((choice) => choice.value === value)) return "it must be one of the choices";
  // JSON Schema counts code points, not UTF-16 units.
  const length = typeof minLength === "number" || typeof maxLength === "number" ? [...value].length : 0;
  if (typeof minLength === "number" && length < minLength) return `it must have at least ${minLength} characters`;
  if (typeof maxLength === "number" && length > maxLength) return `it must have at most ${maxLength} characters`;
  return typeof format === "string" && !hasFormat(value, format) ? `it is not a valid ${format}` : undefined;
}

function findNumberMisfit({ type, minimum, maximum }: Params, value: unknown): string | undefined {
  if (typeof value !== "number" || !Number.isFinite(value)) return "it must be a number";
  if (type === "integer" && !Number.isInteger(value)) return "it must be an integer";
  if (typeof minimum === "number" && value < minimum) return `it must be at least ${minimum}`;
  return typeof maximum === "number" && value > maximum ? `it must be at most ${maximum}` : undefined;
}

function findListMisfit({ items, minItems, maxItems }: Params, values: readonly unknown[]): string | undefined {
  const choices = isObject(items) ? listChoices(items) : undefined;
  if (!values.every((each) => typeof each === "string")) return "it must be an array of strings";
  const allowed = choices && new Set<unknown>(choices.map(({ value }) => value));
  if (allowed && !values.every((each) => allowed.has(each))) return "each item must be one of the choices";
  if (typeof minItems === "number" && values.length < minItems) return `it must have at least ${minItems} items`;
  return typeof maxItems === "number" && values.length > maxItems
    ? `it must have at most ${maxItems} items`
    : undefined;
}

// These patterns take linear time, even for hostile text.
function hasFormat(text: string, format: string): boolean {
  switch (format) {
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(text);
    case "uri":
      return URL.canParse(text);
    case "date":
      return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
    case "date-time":
      return /^\d{4}-\d\d-\d\dT\d\d:\d\d/i.test(text) && !Number.isNaN(Date.parse(text));
    default:
      return true;
  }
}
