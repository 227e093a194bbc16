/**
 * The types of schemas: the forms that authors write, the types inferred from these forms, and compiled schemas.
 */
import type { Issue, JsonSchema } from "./json_schema.ts";

export type { JsonSchema };

/**
 * A schema, in one of three forms:
 *
 * - A schema from a library that implements Standard Schema and Standard JSON Schema, such as zod 4.2 and later and
 *   arktype.
 * - A shape, which is an object of such schemas: `{ a: z.number(), b: z.string().optional() }`.
 * - A raw JSON Schema. The dialect is 2020-12, or draft-07 if `$schema` names draft-07. The server inserts the
 *   `default` of missing properties, except within `anyOf`, `oneOf` and `if`. TypeScript infers the type of the values
 *   if the schema is a literal.
 *
 * For a schema of another library, such as zod 3, zod/mini or valibot, and for types that JSON does not have, such as
 * dates, use `withJsonSchema`.
 */
export type Schema<T = unknown> = StandardSchema<T> | Shape | JsonSchema;

/** Schemas by name, such as the parameters of an extension's methods by the name of the method. */
export type Schemas = { readonly [name: string]: Schema };

/** An object of schemas, one for each property. */
export type Shape = { readonly [name: string]: StandardSchema };

/** The parts of Standard Schema (version 1) and Standard JSON Schema that this library uses. */
export interface StandardSchema<Output = unknown, Input = unknown> {
  /** Properties that Standard Schema defines. */
  readonly "~standard": StandardSchema.Props<Output, Input>;
}

/** The types of the parts of a {@linkcode StandardSchema}. */
export declare namespace StandardSchema {
  /** The `~standard` property. */
  export interface Props<Output = unknown, Input = unknown> {
    /** Version of Standard Schema. */
    readonly version: 1;
    /** Name of the schema library, such as `zod`. */
    readonly vendor: string;
    /** Validates a value, and may transform it. */
    readonly validate: (value: unknown) => Result<Output> | Promise<Result<Output>>;
    /** Converts the schema to JSON Schema. Some schema libraries need an extra function to add this property. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
      readonly output: (options: { readonly target: "draft-2020-12" }) => JsonSchema;
    } | undefined;
    /** Only for type inference. Not set at runtime. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  }

  /** The part of a Standard Schema that declares the input and output types. */
  export interface Types<Output, Input> {
    /** The `~standard` property, as in {@linkcode StandardSchema}. */
    readonly "~standard": { readonly types?: { readonly input: Input; readonly output: Output } | undefined };
  }

  /** The validated, possibly transformed value, or the issues. */
  export type Result<Output = unknown> =
    | { readonly value: Output; readonly issues?: undefined }
    | { readonly issues: readonly Issue[] };

  /** A validation error. */
  export interface Issue {
    /** Description of the issue for people. */
    readonly message: string;
    /** Path to the invalid value. */
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  }
}

/**
 * The output type of a schema. For a raw JSON Schema that is not a literal, the type is an object with any properties.
 */
export type Infer<S> = S extends StandardSchema.Types<infer Output, unknown> ? Output
  : S extends Shape ? InferShape<{ [K in keyof S]: Infer<S[K]> }>
  : S extends { readonly type: "object" } ? InferType<"object", S>
  : Record<string, unknown>;

/** The input type of a schema. `unknown` for a raw JSON Schema. */
export type InferInput<S> = S extends StandardSchema.Types<unknown, infer Input> ? Input
  : S extends Shape ? InferShape<{ [K in keyof S]: InferInput<S[K]> }>
  : unknown;

/** The type of the values of a shape. A property that may be `undefined` is optional. */
export type InferShape<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: T[K] };

/** The type of the values of a raw JSON Schema that is a literal. */
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

/**
 * The type of the objects that `properties` describes. A property that is required or has a default is not optional.
 */
export type InferProperties<P, S> =
  & {
    [
      K in keyof P as P[K] extends { readonly default: unknown } ? K
        : S extends { readonly required: readonly (infer R)[] } ? K extends R ? K : never
        : never
    ]: InferJson<P[K]>;
  }
  & {
    [
      K in keyof P as P[K] extends { readonly default: unknown } ? never
        : S extends { readonly required: readonly (infer R)[] } ? K extends R ? never : K
        : K
    ]?: InferJson<P[K]>;
  };

/** The value, or a text that lists the invalid fields, such as `a: expected number, got string; b: required`. */
export type Checked =
  | { readonly value: unknown; readonly problem?: undefined }
  | { readonly problem: string };

/** Describes the issues of a value. */
export type FormatIssues = (issues: readonly (Issue | StandardSchema.Issue)[]) => string;

export interface CompiledSchema {
  /**
   * Returns the JSON Schema. Each call returns the same object.
   *
   * @throws {TypeError} with the location if the schema cannot be converted to JSON Schema, or if an input schema
   * accepts values that are not objects.
   */
  json(): JsonSchema;
  /**
   * Validates a value. The result is synchronous unless the schema is asynchronous. A problem is at most 2 KB long.
   * `call` is the call whose arguments are validated. Only the schemas of transformed handlers read it. `format` describes
   * the issues in another way.
   */
  validate(value: unknown, call?: object, format?: FormatIssues): Checked | Promise<Checked>;
  /** Whether the schema is a raw JSON Schema. */
  readonly isRaw?: boolean;
}
