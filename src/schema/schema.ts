/**
 * Schemas of any kind, compiled to a JSON Schema and a validator.
 *
 * @module
 */
import { isPromiseLike, lazy } from "../protocol/promises.ts";
import { type Inspected, inspectJsonSchema, type Issue, type JsonSchema, toPath, toText } from "./json_schema.ts";
import { checkResult, type StandardIssue, type StandardResult } from "./standard_result.ts";

export type { JsonSchema, StandardIssue, StandardResult };

/**
 * A schema, in one of three forms:
 *
 * - A schema of a library that implements Standard Schema and Standard JSON Schema, such as zod 4.2 and later and arktype.
 * - A shape, which is an object of such schemas: `{ a: z.number(), b: z.string().optional() }`.
 * - A raw JSON Schema of the dialect 2020-12, or of draft-07 if its `$schema` names it. Its `default` applies to missing
 *   properties, except within `anyOf`, `oneOf` and `if`. TypeScript infers the type of the values from a literal.
 *
 * For zod 3, zod/mini and plain valibot, and for dates, bigints, sets and maps, use `toStandardSchema` of
 * `@x/mcp/schema`.
 */
export type Schema<T = unknown> = StandardSchema<T> | Shape | JsonSchema;

/** An object of schemas, one for each property. */
export type Shape = { readonly [name: string]: StandardSchema };

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

/** The output type of a schema. A raw JSON Schema that is not a literal has the type of any object. */
export type Infer<S> = S extends StandardTypes<infer Output, unknown> ? Output
  : S extends Shape ? InferShape<{ [K in keyof S]: Infer<S[K]> }>
  : S extends { readonly type: "object" } ? InferType<"object", S>
  : Record<string, unknown>;

/** The input type of a schema. A raw JSON Schema has the type `unknown`. */
export type InferInput<S> = S extends StandardTypes<unknown, infer Input> ? Input
  : S extends Shape ? InferShape<{ [K in keyof S]: InferInput<S[K]> }>
  : unknown;

/** The part of a Standard Schema that declares its types. */
export interface StandardTypes<Output, Input> {
  /** As in {@linkcode StandardSchema}. */
  readonly "~standard": { readonly types?: { readonly input: Input; readonly output: Output } | undefined };
}

/** The type of a shape. A property that may be `undefined` is optional. */
export type InferShape<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: T[K] };

/** The type of a raw JSON Schema, inferred from a literal. */
export type InferJson<S> = S extends { readonly const: infer C } ? C
  : S extends { readonly enum: readonly (infer E)[] } ? E
  : S extends { readonly type: infer T } ? T extends readonly (infer One)[] ? InferType<One, S> : InferType<T, S>
  : S extends { readonly anyOf: readonly (infer A)[] } | { readonly oneOf: readonly (infer A)[] }
    ? A extends unknown ? InferJson<A> : never
  : unknown;

/** The TypeScript type for one `type` of JSON Schema. */
export type InferType<T, S> = T extends "string" ? string
  : T extends "number" | "integer" ? number
  : T extends "boolean" ? boolean
  : T extends "null" ? null
  : T extends "array" ? S extends { readonly items: infer I } ? InferJson<I>[] : unknown[]
  : T extends "object" ? S extends { readonly properties: infer P } ? InferProperties<P, S> : Record<string, unknown>
  : unknown;

/** The type of an object. A property that is required or has a default is not optional. */
export type InferProperties<P, S> =
  & { [K in keyof P as IsGiven<K, P, S> extends true ? K : never]: InferJson<P[K]> }
  & { [K in keyof P as IsGiven<K, P, S> extends true ? never : K]?: InferJson<P[K]> };

/** Whether a property exists in every valid value, because it is required or has a default. */
export type IsGiven<K extends keyof P, P, S> = P[K] extends { readonly default: unknown } ? true
  : S extends { readonly required: readonly (infer R)[] } ? K extends R ? true : false
  : false;

/** A validated value, or a text that names each invalid field: `a: expected number, got string; b: required`. */
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
  /** Whether it is a raw JSON Schema. */
  readonly isRaw?: boolean;
}

/** Use and location of a schema. */
export interface SchemaOptions {
  /** Whether to use the input or the output side of a schema that transforms values. An input must be an object. */
  readonly use: "input" | "output";
  /** Location for error messages, such as `tool "add"`. */
  readonly place: string;
}

const REMEDY = "wrap the schema in toStandardSchema() of @x/mcp/schema, or give a raw JSON Schema";
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

  function show({ "~standard": { jsonSchema } }: StandardSchema): JsonSchema {
    // The dialect is omitted, because clients assume 2020-12 and some of them do not recognize its URL.
    const { $schema: _, ...json } = Object(jsonSchema)[use]({
      target: "draft-2020-12",
      libraryOptions: { fallback },
    });
    return json;
  }

  function write(schema: StandardSchema, path: readonly string[] = []): JsonSchema {
    try {
      return show(schema);
    } catch (error) {
      const isShown = !!schema["~standard"].jsonSchema;
      const field = [...path, ...isShown && findUnshown(schema, show) || []].join(".");
      const what = field ? `its field ${field}` : "it";
      throw refuse(`${what} cannot be shown as JSON Schema${isShown ? ` (${error})` : ""}; ${REMEDY}`, error);
    }
  }

  let made: CompiledSchema;
  if (isStandard(schema)) {
    const { "~standard": standard } = schema;
    let json: JsonSchema | undefined;
    if (!standard.jsonSchema) write(schema);
    made = {
      json: () => json ??= toRoot(write(schema)),
      validate(value) {
        const result = standard.validate(value);
        return isPromiseLike(result) ? Promise.resolve(result).then(toChecked) : toChecked(result);
      },
    };
  } else {
    const parts = Object.values(schema);
    if (use === "output" && parts.some(isStandard)) {
      throw refuse("it is an object of schemas; wrap it in an object schema such as z.object({ … })");
    }
    // An empty object is no JSON Schema either, because an input is an object.
    made = use === "input" && !Array.isArray(schema) && parts.every(isStandard)
      ? compileShape(schema as Shape, write) // as every property of it says
      : compileJson(toRoot(schema), inspectJsonSchema(schema, { name }));
  }
  compiled[use].set(schema, made);
  return made;
}

/** Number of parts of a schema in which the cause of an error is searched. A getter may make a new part each time. */
const MAX_PARTS = 1000;

// The errors of zod do not name the field. The cause is a part that cannot be shown, although all of its own parts can.
function findUnshown(
  schema: StandardSchema,
  show: (schema: StandardSchema) => unknown,
  seen: Set<StandardSchema> = new Set([schema]),
): readonly string[] | undefined {
  const failing = listParts(schema).filter(([, part]) => {
    try {
      show(part);
    } catch {
      return true;
    }
  });
  for (const [names, part] of failing) {
    // A schema may contain itself.
    if (seen.has(part) || seen.size > MAX_PARTS) continue;
    seen.add(part);
    const found = findUnshown(part, show, seen);
    if (found) return [...names, ...found];
  }
  return failing.length ? undefined : [];
}

/** Returns the parts of a schema, with their names if they are fields. Only zod says what its schemas consist of. */
function listParts(schema: StandardSchema & { readonly def?: unknown }): (readonly [string[], StandardSchema])[] {
  return Object.entries(Object(schema.def)).flatMap(([key, value]: [string, unknown]) => {
    const inner = isStandard(value) ? [[key, value] as const] : Object.entries<unknown>(Object(value));
    return inner.flatMap(([name, part]) => isStandard(part) ? [[key === "shape" ? [name] : [], part] as const] : []);
  });
}

function compileShape(
  shape: Shape,
  toJson: (part: StandardSchema, path: readonly string[]) => JsonSchema,
): CompiledSchema {
  const parts = Object.entries(shape);
  const json = {
    type: "object",
    properties: Object.fromEntries(parts.map(([name, part]) => {
      // References to the root of a part lead to the place where it stands now.
      const text = JSON.stringify(toJson(part, [name]));
      return [name, JSON.parse(text.replaceAll('"$ref":"#', `$&/properties/${encodeURIComponent(name)}`))];
    })),
    required: parts.flatMap(([name, part]) => Object(part["~standard"].validate(undefined)).issues ? name : []),
  };
  return {
    json: () => json,
    validate: async (value) => toChecked(await (await import("./shape.ts")).validateShape(shape, value)),
  };
}

function compileJson(json: JsonSchema, inspected: Inspected): CompiledSchema {
  let check: CompiledSchema["validate"] | undefined;
  // Most servers describe their input in another way, and need none of this. Loaded once, because two imports of one
  // file may end in any order, and so would the first calls.
  const load = lazy(async () => check = (await import("./json_check.ts")).createReader(inspected, toProblem));
  return {
    isRaw: true,
    json: () => json,
    validate: (value) => check ? check(value) : load().then((check) => check(value)),
  };
}

// arktype calls this for what JSON Schema has no word for. Of dates and the like it would show `{}`, which accepts what
// the schema rejects. Its own predicates only narrow a type.
function fallback({ base, code, domain, proto }: Readonly<Record<string, unknown>>): unknown {
  const odd = domain ?? Object(proto).name ?? (code === "date" && code);
  if (!odd) return base;
  throw new TypeError(`JSON has no ${odd}`);
}

function isStandard(schema: unknown): schema is StandardSchema {
  return "~standard" in Object(schema);
}

function toChecked(result: StandardResult): Checked {
  checkResult(result);
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
