/**
 * Adapts schemas from libraries that do not support JSON Schema, and schemas with types that JSON cannot represent,
 * such as dates.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { toStandardSchema } from "@x/mcp/schema";
 * import { z } from "zod";
 *
 * const input = toStandardSchema({ day: z.date(), tags: z.set(z.string()) });
 * const plan = tool({ name: "plan", input, run: ({ day, tags }) => `${day.getFullYear()}: ${tags.size}` });
 * ```
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import { adaptInput, KIND } from "./adapt_input.ts";
import type { JsonSchema } from "./json_schema.ts";
import type { Infer, InferInput, Shape, StandardResult, StandardSchema } from "./schema.ts";
import { validateShape } from "./shape.ts";

export type { InferShape, Shape, StandardTypes } from "./schema.ts";
export type { StandardIssue, StandardProps, StandardResult } from "./schema.ts";
export type { InferJson, InferProperties, InferType, IsGiven } from "./schema.ts";

/**
 * Adapts a schema that the server does not accept directly: a schema of zod 3, zod/mini or plain valibot, or a schema
 * with types that JSON cannot represent. `schema` can also be a shape of such schemas.
 *
 * These types are sent as JSON:
 *
 * - A date is ISO 8601 text, in UTC unless it has a time zone.
 * - A bigint is a string of digits. As an argument, a safe integer is accepted too. In a result, a bigint is a number
 *   if a number can represent the bigint exactly.
 * - A set is an array.
 * - A map is an object if the schema allows only strings as keys, otherwise an array of pairs. In a result, a map is an
 *   object whenever all its keys are strings.
 *
 * The handler receives the original types. Nested schemas of zod and valibot are supported. For arktype, dates,
 * bigints, sets and maps are supported, but not the schemas of their items, because arktype does not expose them.
 *
 * @throws {TypeError} if a part of the schema cannot be sent as JSON. The message names the part.
 */
export function toStandardSchema<const S extends StandardSchema | Shape>(
  schema: S,
): StandardSchema<Infer<S>, InferInput<S>> {
  const given: StandardSchema | Shape = schema;
  const write = (use: Use) => isSchema(given) ? new Writer(use).write(given) : writeShape(given, use);
  // Convert the schema to JSON Schema now, so that an unusable schema throws here.
  const marked = { input: write("input"), output: write("output") };
  const shown = { input: withoutKinds(marked.input), output: withoutKinds(marked.output) };
  const validate = (value: unknown) => {
    const adapted = adaptInput(value, marked.input, { revive: true });
    if (adapted.problem !== undefined) return { issues: [{ message: adapted.problem }] };
    return isSchema(given) ? given["~standard"].validate(adapted.value) : validateShape(given, adapted.value);
  };
  return {
    "~standard": {
      version: 1,
      vendor: "x-mcp",
      // The cast is safe, because the output of the schema has the inferred type.
      validate: validate as (value: unknown) => StandardResult<Infer<S>> | Promise<StandardResult<Infer<S>>>,
      jsonSchema: { input: () => shown.input, output: () => shown.output },
    },
  };
}

function isSchema(given: StandardSchema | Shape): given is StandardSchema {
  return "~standard" in given;
}

type Use = "input" | "output";
type Def = Record<string, unknown>;

function writeShape(shape: Shape, use: Use): JsonSchema {
  const properties = Object.entries(shape).map(([name, part]) => {
    const place = `"$ref":"#/properties/${encodeURIComponent(name)}`;
    return [name, JSON.parse(JSON.stringify(new Writer(use, name).write(part)).replaceAll('"$ref":"#', place))];
  });
  const required = Object.keys(shape).filter((name) => isRequired(shape[name], use));
  return { type: "object", properties: Object.fromEntries(properties), required };
}

function isRequired(schema: StandardSchema, use: Use): boolean {
  if (use === "output" && toKind(schema) === "default") return true;
  return Object(schema["~standard"].validate(undefined)).issues !== undefined;
}

/** JSON Schemas for types that JSON cannot represent, in the form in which clients send them. */
const SENT: Readonly<Record<string, JsonSchema>> = {
  date: { type: "string", format: "date-time", [KIND]: "date" },
  bigint: { type: "string", pattern: "^-?\\d+$", [KIND]: "bigint" },
  set: { type: "array", uniqueItems: true, [KIND]: "set" },
  map: { type: "object", [KIND]: "map" },
};
/**
 * JSON Schemas for types that have another form in results than in {@linkcode SENT}. In a result, a bigint is a number
 * if a number can represent the bigint exactly.
 */
const RETURNED: Readonly<Record<string, JsonSchema>> = {
  bigint: { type: ["integer", "string"], pattern: "^-?\\d+$", [KIND]: "bigint" },
};
const SIMPLE: Readonly<Record<string, JsonSchema>> = {
  string: { type: "string" },
  number: { type: "number" },
  boolean: { type: "boolean" },
  null: { type: "null" },
  any: {},
  unknown: {},
  never: { not: {} },
  ...SENT,
};
/** Kinds whose names differ between libraries, each with the name that this file uses. */
const SAME: Readonly<Record<string, string>> = {
  picklist: "enum",
  nativeenum: "enum",
  strictobject: "object",
  looseobject: "object",
  variant: "union",
  discriminatedunion: "union",
  intersect: "intersection",
  stricttuple: "tuple",
  loosetuple: "tuple",
  exactoptional: "optional",
  undefinedable: "optional",
};
/** Names of properties that may contain the inner schema of a schema that only wraps another schema. */
const INNER = ["innerType", "wrapped", "schema", "type"];
const FORMATS: Readonly<Record<string, string>> = {
  email: "email",
  url: "uri",
  uuid: "uuid",
  datetime: "date-time",
  iso_timestamp: "date-time",
  iso_date: "date",
  date: "date",
  time: "time",
};

/** Returns the kind of a schema, with the name from {@linkcode SAME}. */
function toKind(schema: unknown): string {
  const { _zod, _def, type }: Record<string, unknown> = Object(schema);
  const name = String(Object(Object(_zod).def).type ?? Object(_def).typeName ?? type);
  const kind = name.replace(/^Zod/, "").replaceAll("_", "").toLowerCase();
  return SAME[kind] ?? kind;
}

/** Converts one schema and its definitions to JSON Schema, and marks types that JSON cannot represent. */
class Writer {
  readonly #use: Use;
  readonly #path: string[];
  /**
   * The schemas around the schema that is being converted. If a schema contains itself, its entry is the name of its
   * definition.
   */
  readonly #open = new Map<unknown, string | undefined>();
  readonly #defs: Record<string, JsonSchema> = {};

  constructor(use: Use, name?: string) {
    this.#use = use;
    this.#path = name === undefined ? [] : [name];
  }

  write(schema: StandardSchema): JsonSchema {
    const json = this.#write(schema);
    return Object.keys(this.#defs).length ? { ...json, $defs: this.#defs } : json;
  }

  #write(schema: unknown): JsonSchema {
    const { jsonSchema }: Partial<StandardSchema["~standard"]> = Object(Object(schema)["~standard"]);
    if (this.#open.has(schema)) {
      const name = this.#open.get(schema) ?? `part${this.#open.size}`;
      this.#open.set(schema, name);
      return { $ref: `#/$defs/${name}` };
    }
    this.#open.set(schema, undefined);
    const isKnown = Object(schema)._zod || Object(schema)._def || Object(schema).kind === "schema";
    const json = isKnown ? this.#describe(schema) : jsonSchema ? this.#ask(jsonSchema) : undefined;
    if (!json) throw this.#refuse(toKind(schema));
    const name = this.#open.get(schema);
    this.#open.delete(schema);
    if (!name) return json;
    this.#defs[name] = json;
    return { $ref: `#/$defs/${name}` };
  }

  #refuse(kind: string): TypeError {
    const place = this.#path.length ? ` at ${this.#path.join(".")}` : "";
    return new TypeError(
      `Cannot adapt a schema: JSON cannot represent ${
        kind === "undefined" ? "this type" : `the type ${kind}`
      }${place}; use a string and transform the string`,
    );
  }

  #inside(name: string, schema: unknown): JsonSchema {
    this.#path.push(name);
    const json = this.#write(schema);
    this.#path.pop();
    return json;
  }

  /**
   * Returns the JSON Schema that the schema library creates, with {@linkcode SENT} or {@linkcode RETURNED} for types
   * that the library cannot convert.
   */
  #ask(jsonSchema: NonNullable<StandardSchema["~standard"]["jsonSchema"]>): JsonSchema {
    const fallback = ({ base, code, domain, proto }: Record<string, unknown>) => {
      const kind = String(domain ?? Object(proto).name ?? code).toLowerCase();
      const sent = this.#use === "output" ? RETURNED[kind] ?? SENT[kind] : SENT[kind];
      if (!sent) throw this.#refuse(kind);
      return { ...Object(base), ...sent };
    };
    const options = { target: "draft-2020-12", libraryOptions: { fallback } } as const;
    const { $schema: _, ...json } = jsonSchema[this.#use](options);
    return json;
  }

  #describe(schema: unknown): JsonSchema | undefined {
    const its: Def & { readonly _zod?: { readonly def: Def } } = Object(schema);
    const def: Def = Object(its._zod?.def ?? its._def ?? its);
    const kind = toKind(schema);
    const json = this.#describeKind(kind, def, its);
    if (!json) return;
    const registry = Object(globalThis)["__zod_globalRegistry"];
    const { description, title } = Object(its._zod ? registry?.get?.(schema) : undefined);
    const annotations = {
      title,
      description: description ?? def.description ??
        (typeof its.description === "string" ? its.description : undefined),
    };
    const kept = Object.entries(annotations).filter(([, text]) => text !== undefined);
    return { ...json, ...toBounds(kind, def, its), ...Object.fromEntries(kept) };
  }

  #describeKind(kind: string, def: Def, its: Def): JsonSchema | undefined {
    const all = (parts: unknown, name = "[]") =>
      Array.from(parts as Iterable<unknown>, (part) => this.#inside(name, part)); // The cast is safe, because `parts` is a list.
    switch (kind) {
      case "literal":
      case "enum":
        return toChoices(def.values ?? def.entries ?? def.options ?? [def.value ?? def.literal]);
      case "array":
        return { type: "array", items: this.#inside("[]", def.element ?? def.item ?? def.type) };
      case "set":
        return { ...SENT.set, items: this.#inside("[]", def.valueType ?? def.value) };
      case "map":
      case "record":
        return this.#describeEntries(kind, def.keyType ?? def.key, def.valueType ?? def.value);
      case "tuple": {
        const rest = def.rest ? { items: this.#inside("[]", def.rest) } : { items: false };
        const prefixItems = all(def.items);
        return { type: "array", prefixItems, minItems: prefixItems.length, ...rest };
      }
      case "object":
        return this.#describeObject(def, String(its.type));
      case "union":
        return { anyOf: all(def.options, "|") };
      case "intersection":
        return { allOf: all(def.options ?? [def.left, def.right], "&") };
      case "nullable":
      case "nullish":
        return { anyOf: [this.#inside("?", def.innerType ?? def.wrapped), { type: "null" }], ...toDefault(def) };
      case "lazy":
        return this.#write(Object(def.getter).call());
      case "pipe":
      case "pipeline":
        return this.#use === "input" ? this.#inside("|", def.in) : this.#inside("|", def.out);
      case "effects":
      case "optional":
      case "nonoptional":
      case "default":
      case "prefault":
      case "catch":
      case "readonly":
      case "branded": {
        const inner = INNER.map((name) => def[name]).find((part) => Object(part)["~standard"]);
        return { ...this.#write(inner), ...toDefault(def) };
      }
      case "transform":
        return this.#use === "output" ? {} : undefined;
      default:
        return this.#use === "output" ? RETURNED[kind] ?? SIMPLE[kind] : SIMPLE[kind];
    }
  }

  #describeEntries(kind: string, key: unknown, value: unknown): JsonSchema {
    const [first, second] = [this.#inside("(key)", key), this.#inside("(value)", value)];
    const isNamed = first.type === "string" && !first[KIND];
    if (kind === "record") return { type: "object", propertyNames: first, additionalProperties: second };
    if (isNamed) return { ...SENT.map, additionalProperties: second };
    // In a result, a map is an object if it is empty, or if all its keys are strings.
    const asObject = { type: ["array", "object"], additionalProperties: second };
    return {
      ...this.#use === "output" ? asObject : { type: "array" },
      items: { type: "array", prefixItems: [first, second], minItems: 2, maxItems: 2 },
      [KIND]: "pairs",
    };
  }

  #describeObject(def: Def, type: string): JsonSchema {
    const shape: Shape = typeof def.shape === "function" ? def.shape() : def.shape ?? def.entries;
    const properties = Object.entries(shape).map(([name, part]) => [name, this.#inside(name, part)]);
    const required = Object.keys(shape).filter((name) => isRequired(shape[name], this.#use));
    const isStrict = def.unknownKeys === "strict" || type === "strict_object" ||
      toKind(def.catchall) === "never" && def.unknownKeys === undefined;
    return {
      type: "object",
      properties: Object.fromEntries(properties),
      ...required.length ? { required } : {},
      ...isStrict ? { additionalProperties: false } : {},
    };
  }
}

function toChoices(values: unknown): JsonSchema | undefined {
  // Skip the names, because a numeric TypeScript enum also contains its names as values.
  const entries = Array.isArray(values) ? undefined : Object.entries(Object(values));
  const all: readonly unknown[] = entries
    ? entries.filter(([name]) => typeof Object(values)[Object(values)[name]] !== "number").map(([, value]) => value)
    : Array.from(values as Iterable<unknown>); // The cast is safe, because `values` is a list.
  if (!all.every((one) => one === null || /^(string|number|boolean)$/.test(typeof one))) return;
  const types = [...new Set(all.map((one) => one === null ? "null" : typeof one))];
  return { type: types.length === 1 ? types[0] : types, ...(all.length === 1 ? { const: all[0] } : { enum: all }) };
}

function toDefault(def: Def): JsonSchema {
  const given = def.defaultValue ?? def.default;
  if (given === undefined) return {};
  const value: unknown = typeof given === "function" ? given() : given;
  const text = typeof value === "bigint" || value instanceof Set || value instanceof Map
    ? undefined
    : JSON.stringify(value);
  return text === undefined ? {} : { default: JSON.parse(text) };
}

/** Returns the JSON Schema keywords for the lengths, sizes and formats of a schema. */
function toBounds(kind: string, def: Def, its: Def): JsonSchema {
  const checks = [...toList(def.checks), ...toList(its.pipe)].map(toCheck);
  const json: Record<string, unknown> = {};
  const [least, most] = kind === "string"
    ? ["minLength", "maxLength"]
    : kind === "array" || kind === "set"
    ? ["minItems", "maxItems"]
    : kind === "number"
    ? ["minimum", "maximum"]
    : [];
  const put = (name: string | undefined, value: unknown) => {
    const number = isObject(value) ? value.value : value;
    if (name && typeof number === "number" && Math.abs(number) < Number.MAX_SAFE_INTEGER) json[name] = number;
  };
  put(least, def.minLength ?? def.minSize);
  put(most, def.maxLength ?? def.maxSize);
  if (kind === "number" && /int/.test(String(def.format))) json.type = "integer";
  if (kind === "string") addFormat(json, def.format, def.pattern);
  for (const { kind: zodKind, type, value, requirement, inclusive, regex } of checks) {
    const name = String(zodKind === "validation" ? type : zodKind);
    const bound = value ?? requirement;
    if (/^length/.test(name)) [least, most].forEach((each) => put(each, bound));
    else if (/^min/.test(name)) put(inclusive === false ? "exclusiveMinimum" : least, bound);
    else if (/^max/.test(name)) put(inclusive === false ? "exclusiveMaximum" : most, bound);
    else if (/^(int|integer)$/.test(name)) json.type = "integer";
    else if (name === "multipleOf" || name === "multiple_of") put("multipleOf", bound);
    else if (kind === "string") addFormat(json, name, regex ?? (name === "regex" ? requirement : undefined));
  }
  return json;
}

/** Returns a check with the names that zod 3 and valibot use. Converts a check of zod 4 to these names. */
function toCheck(check: unknown): Def {
  // `undefined` if the check is from zod 3 or valibot.
  const def: Def | undefined = Object(Object(check)._zod).def as Def | undefined;
  if (!def) return Object(check);
  const { check: name, minimum, maximum, length, value = minimum ?? maximum ?? length, inclusive, format, pattern } =
    def;
  const kind = String(name).replace("greater_than", "min").replace("less_than", "max").replace("_format", "");
  return {
    kind: kind === "number" && /int/.test(String(format)) ? "int" : kind === "string" ? format : kind,
    value,
    inclusive,
    regex: pattern,
  };
}

function addFormat(json: Record<string, unknown>, name: unknown, pattern: unknown): void {
  const format = FORMATS[String(name)];
  if (format) json.format = format;
  // Omit patterns with the flags i, m, s or y, because a JSON Schema pattern cannot have flags.
  else if (pattern instanceof RegExp && !/[imsy]/.test(pattern.flags)) json.pattern = pattern.source;
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) || value instanceof Set ? [...value] : [];
}

/** Returns the JSON Schema for clients, without {@linkcode KIND}. */
function withoutKinds(json: JsonSchema): JsonSchema {
  return JSON.parse(
    JSON.stringify(json, (key, value) => key === KIND && typeof value === "string" ? undefined : value),
  );
}
