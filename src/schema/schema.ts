/**
 * What users may give as a schema, and what the library makes of it: a JSON Schema to show and a function that checks.
 *
 * @module
 */
import { inspectJsonSchema, type Issue, type JsonSchema, toPath, toText } from "./json_schema.ts";

export type { JsonSchema };

/** A schema: of any library that speaks Standard Schema and Standard JSON Schema, or a raw JSON Schema 2020-12. */
export type Schema<T = unknown> = StandardSchema<T> | JsonSchema;

/** The part of Standard Schema (version 1) and of Standard JSON Schema that is used here. */
export interface StandardSchema<Output = unknown, Input = unknown> {
  /** What other code may use of the schema. */
  readonly "~standard": StandardProps<Output, Input>;
}

/** What stands behind `~standard`. */
export interface StandardProps<Output = unknown, Input = unknown> {
  /** The version of Standard Schema. */
  readonly version: 1;
  /** Name of the library, such as `zod`. */
  readonly vendor: string;
  /** Checks a value, and perhaps changes it. */
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  /** Writes the schema as JSON Schema. Some libraries add it by a function of their own. */
  readonly jsonSchema?: {
    readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
    readonly output: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
  } | undefined;
  /** Exists for the type checker alone. */
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
}

/** The value, perhaps changed by the schema, or what is wrong with it. */
export type StandardResult<Output = unknown> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One way in which a value does not fit. */
export interface StandardIssue {
  /** What is wrong, readable for people. */
  readonly message: string;
  /** The keys that lead to it. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema gives for a valid value. Of a raw JSON Schema only this is known: it is used for objects. */
export type Infer<S> = S extends
  { readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined } } ? Output
  : Record<string, unknown>;

/** What a schema takes. A raw JSON Schema may be asked about anything. */
export type InferInput<S> = S extends
  { readonly "~standard": { readonly types?: { readonly input: infer Input } | undefined } } ? Input
  : unknown;

/** A checked value, or one text that names each wrong field: `a: expected number, got string; b: required`. */
export type Checked =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly problem: string };

/** A schema, ready for use. */
export interface CompiledSchema {
  /**
   * The JSON Schema to show; always the same object.
   *
   * @throws {TypeError} naming the place if the schema cannot be written as one, or takes no object where it must.
   */
  json(): JsonSchema;
  /** Checks a value; at once, unless the schema itself is asynchronous. A problem has at most 2 KB. */
  validate(value: unknown): Checked | Promise<Checked>;
  /** Whether it is a raw JSON Schema. */
  readonly isRaw?: boolean;
}

/** What a schema is for. */
export interface SchemaOptions {
  /** The side to show and, for a schema that changes values, to start from. An input must be an object. */
  readonly use: "input" | "output";
  /** What errors name, such as `tool "add"`. */
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
 * Prepares a schema; a schema seen before comes back as it was, from a cache.
 *
 * @throws {TypeError} naming the place if it is no schema, cannot be written as JSON Schema, or is malformed.
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
    // A union of objects takes objects alone, but the protocol wants that said.
    if (Array.isArray(forms) && forms.every(({ type }) => type === "object")) return { type: "object", ...json };
    throw refuse('it takes other things than objects; give one whose type is "object"');
  }

  let made: CompiledSchema;
  if (isStandard(schema)) {
    const { "~standard": standard } = schema;
    const { vendor, jsonSchema } = standard;
    if (!jsonSchema) throw refuse(`it cannot be shown as JSON Schema; ${REMEDIES[vendor] ?? "give a raw JSON Schema"}`);
    const write = () => {
      try {
        // 2020-12 is what clients assume; the URL of the dialect is what some of them do not know.
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
    // Most servers describe their input in another way, and need none of this.
    const load = async () => check = (await import("./json_check.ts")).createCheck(inspected);
    const toResult = (value: unknown, issues: readonly Issue[]): Checked =>
      issues.length ? { problem: toProblem(issues) } : { value };
    made = {
      isRaw: true,
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
