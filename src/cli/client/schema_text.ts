/**
 * JSON Schemas in a few words.
 *
 * @module
 */
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { cut } from "./terminal_text.ts";

/** An argument that a tool or a prompt takes. */
export interface Argument {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/** The arguments that a schema names. */
export function listArguments(schema: unknown): readonly Argument[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    schema: follow(property, schema),
    isRequired: required.includes(name),
  }));
}

const MOST_FORMS = 8;
const DEEPEST = 4;
const LONGEST = 200;

/** What a schema takes, such as `integer`, `string[]`, `"red" | "green"`. */
export function describeType(schema: unknown, root: Params): string {
  return cut(describe(schema, root, 0), LONGEST);
}

function describe(given: unknown, root: Params, depth: number): string {
  const schema = follow(given, root);
  if (!isObject(schema) || depth > DEEPEST) return "any";
  const { type, anyOf, oneOf = anyOf } = schema;
  const inner = (sub: unknown) => describe(sub, root, depth + 1);
  const values = "const" in schema ? [schema.const] : schema.enum;
  if (Array.isArray(values)) return join(values.map((value) => JSON.stringify(value) ?? "null"));
  if (Array.isArray(oneOf)) return join(oneOf.slice(0, MOST_FORMS).map(inner));
  if (Array.isArray(type)) return join(type.map((each) => describe({ ...schema, type: each }, root, depth + 1)));
  if (type === "array") {
    const item = inner(schema.items ?? true);
    return item.includes(" ") ? `(${item})[]` : `${item}[]`;
  }
  if (type === "object" && isObject(schema.properties)) {
    const fields = listArguments(schema).slice(0, MOST_FORMS);
    return `{ ${fields.map(({ name, isRequired }) => name + (isRequired ? "" : "?")).join(", ")} }`;
  }
  return typeof type === "string" ? type + describeBounds(schema) : "any";
}

function describeBounds({ type, format, ...bounds }: Params): string {
  // Some libraries write down the largest integers that there are as the bounds of every integer.
  const minimum = bounds.minimum === Number.MIN_SAFE_INTEGER ? undefined : bounds.minimum;
  const maximum = bounds.maximum === Number.MAX_SAFE_INTEGER ? undefined : bounds.maximum;
  if (type === "string") return typeof format === "string" ? ` (${format})` : "";
  if (typeof minimum === "number" && typeof maximum === "number") return ` ${minimum} to ${maximum}`;
  if (typeof minimum === "number") return ` from ${minimum}`;
  return typeof maximum === "number" ? ` to ${maximum}` : "";
}

function join(forms: readonly string[]): string {
  return [...new Set(forms)].join(" | ") || "nothing";
}

/** The schema, or what it refers to in the one around it. What is said beside the reference counts too. */
export function follow(schema: unknown, root: Params): unknown {
  let found = schema;
  for (let i = 0; i < DEEPEST && isObject(found) && typeof found.$ref === "string"; i++) {
    const { $ref, ...own } = found;
    const target = resolve(String($ref), root);
    found = isObject(target) ? { ...target, ...own } : own;
  }
  return found;
}

function resolve(ref: string, root: Params): unknown {
  if (!ref.startsWith("#/")) return;
  return ref.slice(2).split("/").reduce((place: unknown, token) => {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    return isObject(place) && Object.hasOwn(place, key) ? place[key] : undefined;
  }, root);
}
