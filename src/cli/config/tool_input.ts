/**
 * The input schema of a tool from a config file, and its arguments with defaults.
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import type { JsonSchema } from "../../schema/schema.ts";
import type { Template } from "./template.ts";

/** The arguments of a call, by name. */
export type Arguments = Readonly<Record<string, unknown>>;

/** The input of a tool. */
export interface ToolInput {
  readonly schema: JsonSchema | undefined;
  /** The names of all properties. */
  readonly names: readonly string[];
  /** The names of properties that are required or have a default. */
  readonly alwaysPresent: readonly string[];
  /** Adds the defaults of missing arguments. */
  addDefaults(args: Arguments): Arguments;
}

/** Reads the input schema of a tool. Defaults to an object without additional properties. */
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
    addDefaults: (args) => ({ ...Object.fromEntries(defaults), ...args }),
  };
}

/**
 * The reason why a template cannot always be filled from the input. Returns `undefined` if it can.
 *
 * @param present Names of arguments that are known to be present besides those that always are.
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
      return `{{${name}}} is optional; add ${name} to required in input, or give it a default`;
    }
  }
}

/** Converts a value to text: a string stays as it is, any other value becomes JSON. */
export function toArgumentText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}
