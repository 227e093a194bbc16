/**
 * Reads the input schema of a tool, and adds defaults to the arguments.
 */
import { type JsonSchema, ToolError } from "../library.ts";
import { isObject } from "../core/kit/json.ts";
import type { Template } from "./template.ts";

export type Arguments = Readonly<Record<string, unknown>>;

export interface ArgumentKind {
  /** `false` if the argument must be a number, a boolean, or one of several listed values. */
  readonly isText: boolean;
  /** Whether the argument is a path: a string with the format `path`. Such an argument is not any text. */
  readonly isPath: boolean;
  /** Whether the argument can be a number below 0 that is not a listed value. */
  readonly isSigned: boolean;
}

export interface ToolInput {
  readonly schema: JsonSchema | undefined;
  readonly names: readonly string[];
  /** Names of the properties that are required or have a default. */
  readonly alwaysPresent: readonly string[];
  readKind(name: string): ArgumentKind;
  addDefaults(args: Arguments): Arguments;
}

/** Returns an object without a prototype. Otherwise a missing argument named `constructor` would have a value. */
export function toArguments(...all: readonly Arguments[]): Record<string, unknown> {
  return Object.assign(Object.create(null), ...all);
}

/** Defaults to an object without additional properties. */
export function readToolInput(declared: JsonSchema | undefined): ToolInput {
  const schema: JsonSchema | undefined = declared &&
    { type: "object", ...("$ref" in declared ? {} : { additionalProperties: false }), ...declared };
  const properties = isObject(schema?.properties) ? schema.properties : {};
  const defaults = Object.entries(properties).flatMap(([name, property]) =>
    isObject(property) && property.default !== undefined ? [[name, property.default] as const] : []
  );
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : [];
  return {
    schema,
    names: Object.keys(properties),
    alwaysPresent: [...required, ...defaults.map(([name]) => name)],
    // Ignore the keywords next to a reference, as draft-07 requires.
    readKind: (name) =>
      readKind(!schema || "$ref" in schema || !Object.hasOwn(properties, name) ? undefined : properties[name]),
    addDefaults: (args) => toArguments(Object.fromEntries(defaults), args),
  };
}

/** If the schema does not determine the kinds, the result allows any text. */
function readKind(schema: unknown): ArgumentKind {
  // Ignore the keywords next to a reference, as draft-07 requires.
  if (!isObject(schema) || "$ref" in schema) return ANY_TEXT;
  if (Array.isArray(schema.enum) || "const" in schema) return { isText: false, isPath: false, isSigned: false };
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.every((type) => type === "array") && !("prefixItems" in schema)) {
    const kind = readKind(schema.items);
    // A path in a list of lists would only be part of a word.
    return kind.isPath && Object(schema.items).format !== "path" ? ANY_TEXT : kind;
  }
  const isPath = types.every((type) => type === "string") && schema.format === "path";
  const isText = !isPath && !types.every((type) => LIMITED_TYPES.has(type));
  const least = Math.max(...[schema.minimum, schema.exclusiveMinimum].filter((each) => typeof each === "number"));
  const isNumber = types.some((type) => type === "number" || type === "integer");
  return { isText, isPath, isSigned: isText || isNumber && !(least >= 0) };
}

const ANY_TEXT: ArgumentKind = { isText: true, isPath: false, isSigned: true };

/** Types that do not allow arbitrary text. */
const LIMITED_TYPES = new Set<unknown>(["number", "integer", "boolean", "null"]);

/**
 * Returns the reason why some arguments cannot fill a template, such as an argument that may be missing. Returns
 * `undefined` if all valid arguments fill the template.
 *
 * @param present Names of arguments that are present in addition to `alwaysPresent`.
 */
export function findUnfillable(
  template: Template,
  input: ToolInput,
  present: readonly string[] = [],
): string | undefined {
  for (const name of template.names) {
    if (!input.names.includes(name)) {
      const remedy = input.names.length ? `use one of ${input.names.join(", ")}` : "add it there";
      return `{{${name}}} is not a property of input; ${remedy}`;
    }
    if (!input.alwaysPresent.includes(name) && !present.includes(name)) {
      return `{{${name}}} is optional; add ${name} to required in input, or set a default for ${name}`;
    }
  }
}

/** Converts a value to text. A string stays unchanged. Any other value becomes JSON. */
export function toArgumentText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

/** @throws {ToolError} if the argument contains a lone surrogate, which has no encoding. */
export function encodeArgument(value: unknown): string {
  const text = toArgumentText(value);
  if (text.isWellFormed()) return encodeURIComponent(text);
  throw new ToolError("Cannot send the request: an argument contains half of a surrogate pair; send whole characters");
}

/** Omits each pair with a missing argument. A value that consists only of a list becomes one pair for each item. */
export function toPairs(fields: readonly (readonly [key: string, value: Template])[], args: Arguments): string[] {
  return fields.flatMap(([key, value]) => {
    if (value.names.some((name) => args[name] === undefined)) return [];
    const only = value.onlyArgument === undefined ? undefined : args[value.onlyArgument];
    const values = Array.isArray(only) ? only : [value.fill((name) => toArgumentText(args[name]))];
    return values.map((each) => `${encodeURIComponent(key)}=${encodeArgument(each)}`);
  });
}
