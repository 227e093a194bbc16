/**
 * Compiles schemas of any form to a JSON Schema and a validator.
 *
 * @module
 */
import { Room } from "../protocol/room.ts";
import { validateShape } from "./shape.ts";
import { isPromiseLike } from "../protocol/promises.ts";
import { type Inspected, inspectJsonSchema, type Issue, type JsonSchema, toPath, toText } from "./json_schema.ts";
import type { Checked, CompiledSchema, Schema, Shape, StandardSchema } from "./schema.ts";
import { checkResult, type StandardIssue, type StandardResult } from "./standard_result.ts";

/** The use and the location of a schema. */
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
    // Add the type, because the protocol requires it. A union of objects accepts only objects.
    if (Array.isArray(forms) && forms.every(({ type }) => type === "object")) return { type: "object", ...json };
    throw refuse('it accepts values that are not objects; give a schema whose type is "object"');
  }

  function show({ "~standard": { jsonSchema } }: StandardSchema): JsonSchema {
    // Omit the dialect: clients assume 2020-12, and some clients do not recognize its URL.
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
      throw refuse(`${what} cannot be converted to JSON Schema${isShown ? ` (${error})` : ""}; ${REMEDY}`, error);
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
    const shapes = parts.filter(isStandard);
    if (shapes.length && shapes.length < parts.length) {
      throw refuse("some of its properties are schemas and others are not; make every property a schema");
    }
    // `{}` is a shape as an input, because an input is an object. As an output, it is a JSON Schema that accepts any
    // value.
    made = !Array.isArray(schema) && (shapes.length || use === "input" && !parts.length)
      ? compileShape(schema as Shape, { write, use }) // Safe, because every property is a Standard Schema.
      : compileJson(toRoot(schema), inspectJsonSchema(schema, { name }));
  }
  compiled[use].set(schema, made);
  return made;
}

/**
 * The number of parts of a schema that are searched for the cause of an error. Without this limit, the search would
 * never end if a getter makes a new part each time.
 */
const MAX_PARTS = 1000;

// Errors of zod do not name the field. The cause is a part that has no JSON Schema although all parts of this part have
// a JSON Schema.
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
    // Skip parts that were searched before, because a schema may contain itself.
    if (seen.has(part) || seen.size > MAX_PARTS) continue;
    seen.add(part);
    const found = findUnshown(part, show, seen);
    if (found) return [...names, ...found];
  }
  return failing.length ? undefined : [];
}

/** Returns the parts of a schema, with their names if they are fields. Only zod exposes the parts of its schemas. */
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
  const json = {
    type: "object",
    properties: Object.fromEntries(parts.map(([name, part]) => {
      // A reference to the root of a part must lead to the new location of the part.
      const text = JSON.stringify(write(part, [name]));
      return [name, JSON.parse(text.replaceAll('"$ref":"#', `$&/properties/${encodeURIComponent(name)}`))];
    })),
    required: parts.flatMap(([name, part]) => {
      const { issues, value } = Object(part["~standard"].validate(undefined));
      // In an output, a property with a default is always present.
      return issues || use === "output" && value !== undefined ? name : [];
    }),
  };
  return {
    json: () => json,
    validate: async (value) => toChecked(await validateShape(shape, value)),
  };
}

/** Loads code that few servers need, because most servers describe their input by a Standard Schema. */
export const schemaRoom: Room<typeof import("./schema_room.ts")> = new Room(() => import("./schema_room.ts"));

function compileJson(json: JsonSchema, inspected: Inspected): CompiledSchema {
  const room = new Room(async () => (await schemaRoom.open()).createReader(inspected, toProblem));
  return {
    isRaw: true,
    json: () => json,
    validate: (value) => room.loaded ? room.loaded(value) : room.open().then((check) => check(value)),
  };
}

// arktype calls this function for types that JSON Schema cannot express. For dates and similar types it would write
// `{}`, which accepts values that the schema rejects, so these types are an error. Predicates of arktype only narrow a
// type, so the base of the predicate is written.
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
