/**
 * The arguments of a call, put where a config file says.
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import type { JsonSchema } from "../../schema/schema.ts";
import type { Template } from "./template.ts";

/** What a tool takes. */
export interface Input {
  readonly schema: JsonSchema | undefined;
  /** All names. */
  readonly names: readonly string[];
  /** Those that are always given, or have a default. */
  readonly sure: readonly string[];
  /** The arguments, with defaults for those that are missing. */
  complete(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
}

/** Reads the schema of a tool's input. Unless it says something else, it is an object with these properties alone. */
export function toInput(given: JsonSchema | undefined): Input {
  const schema: JsonSchema | undefined = given &&
    { type: "object", ...("$ref" in given ? {} : { additionalProperties: false }), ...given };
  const properties = isObject(schema?.properties) ? schema.properties : {};
  const defaults = Object.entries(properties).flatMap(([name, property]) =>
    isObject(property) && property.default !== undefined ? [[name, property.default] as const] : []
  );
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : [];
  return {
    schema,
    names: Object.keys(properties),
    sure: [...required, ...defaults.map(([name]) => name)],
    complete: (given) => ({ ...Object.fromEntries(defaults), ...given }),
  };
}

/** Why a text cannot be filled with these arguments; nothing if it can. */
export function findMissing(template: Template, input: Input, given: readonly string[] = []): string | undefined {
  for (const name of template.names) {
    if (!input.names.includes(name)) {
      return `{{${name}}} is no property of input; ${
        input.names.length ? `there are ${input.names.join(", ")}` : "add it there"
      }`;
    }
    if (!input.sure.includes(name) && !given.includes(name)) {
      return `{{${name}}} may be missing; put ${name} into required of input, or give it a default`;
    }
  }
}

/** A value as a text: a text as it is, all else as JSON. */
export function toArgumentText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}
