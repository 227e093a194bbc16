/**
 * Compiles schemas of any form to a JSON Schema and a validator.
 */
import { toFrozen } from "../kit/frozen.ts";
import { LazyModule } from "../protocol/lazy_module.ts";
import { isPromiseLike } from "../protocol/promises.ts";
import { acceptsOnlyObjects, gatherDefs, inlineRoot } from "./json_refs.ts";
import { type Inspected, inspectJsonSchema, type JsonSchema, toPath, toText } from "./json_schema.ts";
import type { Checked, CompiledSchema, FormatIssues, Schema, Shape, StandardSchema } from "./schema.ts";
import { checkResult } from "./standard_result.ts";

export interface SchemaOptions {
  /** Use the input or the output type of a schema that transforms values. An input schema must describe objects. */
  readonly use: "input" | "output";
  /** Location for error messages, such as `tool "add"`. */
  readonly place: string;
}

/** The vendor of schemas that another server lists. */
export const FOREIGN = "x-mcp-foreign";

/** What to write for the schemas of a library that does not convert them itself, by vendor. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ["zod", "z.toJSONSchema(schema)), or zodToJsonSchema(schema) for zod 3"],
  ["valibot", "toJsonSchema(schema)), with @valibot/to-json-schema"],
]);
const MAX_ISSUES = 20;
const MAX_BYTES = 2000;

const compiled = { input: new WeakMap<object, CompiledSchema>(), output: new WeakMap<object, CompiledSchema>() };

/**
 * The result is cached.
 *
 * @throws {TypeError} with the location if the schema is invalid, or cannot be converted to JSON Schema.
 */
export function compileSchema(schema: Schema, { use, place }: SchemaOptions): CompiledSchema {
  const name = `the ${use} schema of ${place}`;
  const refuse = (state: string, cause?: unknown) => new TypeError(`Cannot use ${name}: ${state}`, { cause });
  if (Object(schema) !== schema) throw refuse("it is not an object; use a Standard Schema or a JSON Schema");
  const { [PRESET]: preset }: Preset = Object(schema);
  const known = compiled[use].get(schema) ?? preset?.[use];
  if (known) return known;

  function toRoot(given: JsonSchema): JsonSchema {
    // List the schema of another server unchanged.
    const json = isStandard(schema) && schema["~standard"].vendor === FOREIGN ? given : gatherDefs(given);
    if (use === "output" || json.type === "object") return json;
    // Add the type to a schema that accepts only objects, because the protocol requires `type: "object"`.
    const { type: _, ...rest } = inlineRoot(json);
    if (acceptsOnlyObjects(json, json)) return { type: "object", ...rest };
    const remedy = isStandard(schema) ? "name each argument, such as { text: schema }" : 'set its type to "object"';
    throw refuse(`it accepts values that are not objects, but the arguments of a call are an object; ${remedy}`);
  }

  function show({ "~standard": { jsonSchema, vendor } }: StandardSchema): JsonSchema {
    const shown = Object(jsonSchema)[use]({ target: "draft-2020-12", libraryOptions: { fallback } });
    // The schema of another server may have another dialect.
    if (vendor === FOREIGN) return shown;
    // Omit `$schema`, because clients assume 2020-12, and some clients do not recognize the URL of this dialect.
    const { $schema: _, ...json } = shown;
    return json;
  }

  function write(schema: StandardSchema, path: readonly string[] = []): JsonSchema {
    try {
      return show(schema);
    } catch (error) {
      const isShown = !!schema["~standard"].jsonSchema;
      const field = [...path, ...isShown && findUnshown(schema, show) || []].join(".");
      const what = field ? `its field ${field}` : "it";
      const json = isShown ? "json)" : REMEDIES.get(schema["~standard"].vendor) ?? "json)";
      const state = `${what} cannot be converted to JSON Schema${isShown ? ` (${error})` : ""}`;
      const isDate = isShown && schema["~standard"].vendor === "zod" && /\bDate\b/.test(String(error));
      throw refuse(`${state}; write ${isDate ? "z.iso.datetime(), or " : ""}withJsonSchema(schema, ${json}`, error);
    }
  }

  let made: CompiledSchema;
  if (isStandard(schema)) {
    const { "~standard": standard } = schema;
    let json: JsonSchema | undefined;
    if (!standard.jsonSchema) write(schema);
    made = {
      json: () => json ??= toFrozen(toRoot(write(schema))),
      validate(value, _call, format = toProblem) {
        const result = standard.validate(value);
        return isPromiseLike(result)
          ? Promise.resolve(result).then((result) => toChecked(result, format))
          : toChecked(result, format);
      },
    };
  } else {
    const parts = Object.values(schema);
    const shapes = parts.filter(isStandard);
    if (shapes.length && shapes.length < parts.length) {
      throw refuse("only some of its properties are schemas; make every property a schema");
    }
    // As an input, `{}` is a shape, because inputs are objects. As an output, `{}` is a JSON Schema that accepts any
    // value.
    made = !Array.isArray(schema) && (shapes.length || use === "input" && !parts.length)
      ? compileShape(schema as Shape, { write, use }) // The cast is safe, because every property is a Standard Schema.
      : compileJson(inspectJsonSchema(schema, { name, isOwn: true }), toRoot(schema));
  }
  compiled[use].set(schema, made);
  return made;
}

/** Key of what a schema is compiled to. Global, because another copy of the library may serve the tool. */
const PRESET: unique symbol = Symbol.for("mcp.compiled");

interface Preset {
  readonly [PRESET]?: { readonly [use in SchemaOptions["use"]]?: CompiledSchema };
}

/** Sets what a schema is compiled to, for a schema that only the library can read. */
export function presetSchema(schema: StandardSchema, use: SchemaOptions["use"], made: CompiledSchema): void {
  Object.defineProperty(schema, PRESET, { value: { [use]: made } });
}

/** Maximum number of parts to search for the cause of an error. A getter may return a new part at each access. */
const MAX_PARTS = 1000;

// Finds the field that causes a conversion error, because zod's errors do not name the field. The cause is the
// innermost part that cannot be converted.
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
    // Skip parts that were already searched, because a schema may contain itself.
    if (seen.has(part) || seen.size > MAX_PARTS) continue;
    seen.add(part);
    const found = findUnshown(part, show, seen);
    if (found) return [...names, ...found];
  }
  return failing.length ? undefined : [];
}

/**
 * Returns the parts of a schema. The names are the field name of a part that is a field, otherwise empty. Only zod
 * exposes the parts of its schemas.
 */
function listParts(schema: StandardSchema & { readonly def?: unknown }): (readonly [string[], StandardSchema])[] {
  return Object.entries(Object(schema.def)).flatMap(([key, value]: [string, unknown]) => {
    const inner = isStandard(value) ? [[key, value] as const] : Object.entries<unknown>(Object(value));
    return inner.flatMap(([name, part]) => isStandard(part) ? [[key === "shape" ? [name] : [], part] as const] : []);
  });
}

function compileShape(
  shape: Shape,
  { write, use }: Pick<SchemaOptions, "use"> & {
    readonly write: (part: StandardSchema, path: readonly string[]) => JsonSchema;
  },
): CompiledSchema {
  const parts = Object.entries(shape);
  const json = toFrozen(gatherDefs({
    type: "object",
    properties: Object.fromEntries(parts.map(([name, part]) => {
      // Rewrite references to the root of the part, because that root is now a property of the object.
      const text = JSON.stringify(write(part, [name]));
      return [name, JSON.parse(text.replaceAll('"$ref":"#', `$&/properties/${encodeURIComponent(name)}`))];
    })),
    required: parts.flatMap(([name, part]) => {
      const { issues, value } = Object(part["~standard"].validate(undefined));
      // In an output, a property with a default is always present.
      return issues || use === "output" && value !== undefined ? name : [];
    }),
  }));
  return {
    json: () => json,
    validate: async (value, _call, format = toProblem) =>
      toChecked(await (await lazySchemaChecks.load()).validateShape(shape, value), format),
  };
}

/** Loaded on demand, because most servers describe their inputs with Standard Schemas. */
export const lazySchemaChecks: LazyModule<typeof import("./schema_checks.ts")> = new LazyModule(() =>
  import("./schema_checks.ts")
);

function compileJson(inspected: Inspected, root: JsonSchema): CompiledSchema {
  let json: JsonSchema | undefined;
  const reader = new LazyModule(async () => (await lazySchemaChecks.load()).createReader(inspected));
  return {
    isRaw: true,
    json: () => json ??= toFrozen(root),
    validate: (value, _call, format = toProblem) =>
      reader.loaded ? reader.loaded(value, format) : reader.load().then((check) => check(value, format)),
  };
}

// Called by arktype for types that JSON Schema cannot express. Throws for dates and similar types, because arktype
// would convert them to `{}`, which accepts values that the schema rejects. An arktype predicate only narrows a type,
// so the base type of the predicate is used.
function fallback({ base, code, domain, proto }: Readonly<Record<string, unknown>>): unknown {
  const odd = domain ?? Object(proto).name ?? (code === "date" && code);
  if (!odd) return base;
  throw new TypeError(`JSON has no ${odd}`);
}

function isStandard(schema: unknown): schema is StandardSchema {
  return "~standard" in Object(schema);
}

function toChecked(result: StandardSchema.Result, format: FormatIssues): Checked {
  checkResult(result);
  return result.issues ? { problem: format(result.issues) } : result;
}

/** Describes issues in at most 2 KB. */
export const toProblem: FormatIssues = (issues) => {
  const lines = issues.slice(0, MAX_ISSUES).map(({ path = "", message }) => {
    const keys = typeof path === "string" ? [] : Array.from(path, (step) => typeof step === "object" ? step.key : step);
    return toText({ path: typeof path === "string" ? path : toPath(keys), message: message.slice(0, 300) });
  });
  if (issues.length > MAX_ISSUES) lines.push(`and ${issues.length - MAX_ISSUES} more`);
  const text = lines.join("; ");
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_BYTES));
  return read < text.length ? text.slice(0, read) + "…" : text;
};
