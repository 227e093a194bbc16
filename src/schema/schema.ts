/**
 * Schemas of any kind, compiled to a JSON Schema and a validator.
 *
 * @module
 */
import { inspectJsonSchema, type Issue, type JsonSchema, toPath, toText } from "./json_schema.ts";

export type { JsonSchema };

/** A schema: from any library with Standard Schema and Standard JSON Schema, or a raw JSON Schema 2020-12. */
export type Schema<T = unknown> = StandardSchema<T> | JsonSchema;

/** The parts of Standard Schema (version 1) and Standard JSON Schema that this library uses. */
export interface StandardSchema<Output = unknown, Input = unknown> {
  /** Interface of the schema for other libraries. */
  readonly "~standard": StandardProps<Output, Input>;
}

/** The `~standard` property. */
export interface StandardProps<Output = unknown, Input = unknown> {
  /** Version of Standard Schema. */
  readonly version: 1;
  /** Name of the schema library, such as `zod`. */
  readonly vendor: string;
  /** Validates a value, and may transform it. */
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  /** Converts the schema to JSON Schema. Some libraries need an extra function to add it. */
  readonly jsonSchema?: {
    readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
    readonly output: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
  } | undefined;
  /** Types for inference only. Never set at runtime. */
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
}

/** The validated, possibly transformed value, or the issues. */
export type StandardResult<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** An issue of validation. */
export interface StandardIssue {
  /** Description for people. */
  readonly message: string;
  /** Path to the invalid value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Output type of a schema. A raw JSON Schema has no type beyond an object. */
export type Infer<S> = S extends
  { readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined } } ? Output
  : Record<string, unknown>;

/** Input type of a schema. A raw JSON Schema accepts anything. */
export type InferInput<S> = S extends
  { readonly "~standard": { readonly types?: { readonly input: infer Input } | undefined } } ? Input
  : unknown;

/** A validated value, or a text with all issues: `a: expected number, got string; b: required`. */
export type Checked =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly problem: string };

/** A compiled schema. */
export interface CompiledSchema {
  /**
   * Returns the JSON Schema, always as the same object.
   *
   * @throws {TypeError} with the location if the schema has no JSON Schema, or an input schema accepts values that are
   * not objects.
   */
  json(): JsonSchema;
  /** Validates a value. The result is synchronous unless the schema is asynchronous. A problem has at most 2 KB. */
  validate(value: unknown): Checked | Promise<Checked>;
}

/** Use and location of a schema. */
export interface SchemaOptions {
  /** Whether to use the input or the output side of a schema that transforms values. An input must be an object. */
  readonly use: "input" | "output";
  /** Location for error messages, such as `tool "add"`. */
  readonly place: string;
}

const REMEDIES: { readonly [vendor: string]: string } = {
  valibot: "wrap it in toStandardJsonSchema() of @valibot/to-json-schema",
  zod: "wrap it in z.toJSONSchema(), or use zod 4.2 or later and not zod/mini",
};
const MAX_ISSUES = 20;
const MAX_BYTES = 2000;

const compiled = { input: new WeakMap<object, CompiledSchema>(), output: new WeakMap<object, CompiledSchema>() };

/**
 * Compiles a schema. The result is cached.
 *
 * @throws {TypeError} with the location if the value is not a schema, is malformed, or has no JSON Schema.
 */
export function compileSchema(schema: Schema, { use, place }: SchemaOptions): CompiledSchema {
  const name = `the ${use} schema of ${place}`;
  const refuse = (state: string, cause?: unknown) => new TypeError(`Cannot use ${name}: ${state}`, { cause });
  if (Object(schema) !== schema) throw refuse("it is not an object; give a Standard Schema or a JSON Schema");
  const known = compiled[use].get(schema);
  if (known) return known;

  function toRoot(json: JsonSchema): JsonSchema {
    const forms = json.anyOf ?? json.oneOf;
    if (use === "output" || json.type === "object") return json;
    // A union of objects only accepts objects, but the protocol requires an explicit type.
    if (Array.isArray(forms) && forms.every(({ type }) => type === "object")) return { type: "object", ...json };
    throw refuse('it accepts values that are not objects; give a schema whose type is "object"');
  }

  let made: CompiledSchema;
  if (isStandard(schema)) {
    const { "~standard": standard } = schema;
    const { vendor, jsonSchema } = standard;
    if (!jsonSchema) throw refuse(`it cannot be shown as JSON Schema; ${REMEDIES[vendor] ?? "give a raw JSON Schema"}`);
    const write = () => {
      try {
        // Clients assume 2020-12, and some do not know the dialect's URL.
        const { $schema: _, ...json } = jsonSchema[use]({ target: "draft-2020-12" });
        return json;
      } catch (error) {
        throw refuse(
          `it cannot be shown as JSON Schema (${error}); give a raw JSON Schema, or leave that part out`,
          error,
        );
      }
    };
    let json: JsonSchema | undefined;
    made = {
      json: () => json ??= toRoot(write()),
      validate(value) {
        const result = standard.validate(value);
        return result instanceof Promise ? result.then(toChecked) : toChecked(result);
      },
    };
  } else {
    const json = toRoot(schema);
    const inspected = inspectJsonSchema(schema, name);
    let check: ((value: unknown) => readonly Issue[]) | undefined;
    // Loaded on demand, because most servers do not use raw JSON Schema.
    const load = async () => check = (await import("./json_check.ts")).createCheck(inspected);
    const toResult = (value: unknown, issues: readonly Issue[]): Checked =>
      issues.length ? { problem: toProblem(issues) } : { value };
    made = {
      json: () => json,
      validate: (value) =>
        check ? toResult(value, check(value)) : load().then((check) => toResult(value, check(value))),
    };
  }
  compiled[use].set(schema, made);
  return made;
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema;
}

function toChecked(result: StandardResult): Checked {
  return result.issues ? { problem: toProblem(result.issues) } : result;
}

function toProblem(issues: readonly (Issue | StandardIssue)[]): string {
  const lines = issues.slice(0, MAX_ISSUES).map(({ path = "", message }) => {
    const keys = typeof path === "string" ? [] : Array.from(path, (step) => typeof step === "object" ? step.key : step);
    return toText({ path: typeof path === "string" ? path : toPath(keys), message: message.slice(0, 300) });
  });
  if (issues.length > MAX_ISSUES) lines.push(`and ${issues.length - MAX_ISSUES} more`);
  const text = lines.join("; ");
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_BYTES));
  return read < text.length ? text.slice(0, read) + "…" : text;
}
