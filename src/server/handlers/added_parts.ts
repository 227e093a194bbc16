/**
 * Creates the tokens of arguments and members that layers add, and adds them to the schemas of a tool.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { addProperty } from "../../core/schema/added_property.ts";
import type {
  Checked,
  CompiledSchema,
  FormatIssues,
  Infer,
  InferJson,
  Schema,
  Shape,
  StandardSchema,
} from "../../core/schema/schema.ts";
import type { JsonSchema } from "../../core/schema/json_schema.ts";
import { compileSchema, presetSchema, toProblem } from "../../core/schema/schema_compiler.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/known_options.ts";
import type { Call } from "../call/call.ts";
import { type Given, noteGiven, readGiven } from "../call/given.ts";
import type { AddedInternals, AddedParts, AddingTo, Argument, Member, Token } from "../engine/added.ts";

/** Options of {@linkcode member}. */
export interface MemberOptions<S extends Schema = Schema> {
  /** Name of the member: a letter or `_`, and up to 63 letters, digits and `_`. */
  readonly name: string;
  /** Schema of the value, with a description for the model. */
  readonly schema: S;
}

/** Options of {@linkcode argument}. */
export interface ArgumentOptions<S extends Schema = Schema> extends MemberOptions<S> {
  /**
   * Whether the model must send the argument. `"listed"` means that lists say so, but that a call without the argument
   * runs too, because clients cache lists. A call that a handler makes never needs the argument. Defaults to `false`.
   */
  readonly required?: boolean | "listed";
}

const MEMBER: KnownOptions<keyof MemberOptions> = {
  names: {
    name: { test: isName, remedy: "it must be a letter or _, and up to 63 letters, digits and _" },
    schema: true,
  },
};

const ARGUMENT: KnownOptions<keyof ArgumentOptions> = {
  names: {
    ...MEMBER.names,
    required: {
      test: (value) => value === "listed" || typeof value === "boolean",
      remedy: 'it must be true, false or "listed"',
    },
  },
};

function isName(name: unknown): boolean {
  return typeof name === "string" && /^[A-Za-z_]\w{0,63}$/.test(name) && name !== "__proto__";
}

/**
 * Creates an argument that a layer adds to tools, for the member `argument` of its steps. Lists show the argument in the
 * tool's input schema. Before the input schema, caches and idempotency keys, the server takes it out of the arguments.
 * The steps `limit`, `enter`, `run` and `result` read its value with `given(token)`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { argument, layer } from "@x/mcp/layers";
 * import { z } from "zod";
 *
 * const urgent = argument({ name: "urgent", schema: z.boolean().describe("Whether somebody waits for the result") });
 * const priority = layer(() => ({
 *   name: "priority",
 *   argument: urgent,
 *   run: ({ given }, next) => {
 *     console.error(given(urgent) ? "urgent" : "not urgent");
 *     return next();
 *   },
 * }));
 * const report = tool({ name: "report", use: [priority], run: () => "done" });
 *
 * export default createServer({ name: "reports", version: "1.0.0", handlers: [report] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or the schema cannot be converted to JSON Schema.
 */
export function argument<const S extends Schema>(options: ArgumentOptions<S>): Argument<ValueOf<S>> {
  checkOptions("make an argument", options, ARGUMENT);
  return toToken(options, "argument");
}

/**
 * Creates a member of structured content that a layer adds to the results of tools, for the member `member` of its
 * steps. Lists show the member in the tool's output schema, if the tool has one. The step `result` sets the value with
 * `call.set(token, value)`.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { layer, member } from "@x/mcp/layers";
 * import { z } from "zod";
 *
 * const asOf = member({ name: "as_of", schema: z.string().describe("Time of the data") });
 * const dated = layer(() => ({
 *   name: "dated",
 *   member: asOf,
 *   result: (_result, { set, server }) => void set(asOf, new Date(server.clock.date()).toISOString()),
 * }));
 * const price = tool({ name: "price", use: [dated], run: () => ({ price: 7 }) });
 *
 * export default createServer({ name: "prices", version: "1.0.0", handlers: [price] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or the schema cannot be converted to JSON Schema.
 */
export function member<const S extends Schema>(options: MemberOptions<S>): Member<ValueOf<S>> {
  checkOptions("make a member", options, MEMBER);
  return toToken(options, "member");
}

/** The type of the values of a schema. Unlike the input of a tool, the value of a raw JSON Schema need not be an object. */
export type ValueOf<S extends Schema> = S extends StandardSchema | Shape ? Infer<S> : InferJson<S>;

function toToken<T extends Argument | Member>(
  { name, schema, required }: ArgumentOptions,
  kind: AddedInternals["kind"],
): T {
  const place = `${kind} ${quote(name)}`;
  if (name === undefined || schema === undefined) {
    const missing = name === undefined ? "name" : "schema";
    throw new TypeError(`Cannot make ${name === undefined ? `a ${kind}` : place}: ${missing} is missing; set both`);
  }
  const value = new TokenValue(name, schema, place);
  value.json();
  const internals: AddedInternals = { kind, required, value, add };
  // The cast is safe, because the type parameter of a token has no value.
  return Object.freeze({ name, [INTERNALS]: internals }) as unknown as T;
}

/** Reads the values of a token. */
class TokenValue {
  readonly #name: string;
  readonly #compiled: CompiledSchema;
  readonly #toJson: () => JsonSchema;

  constructor(name: string, schema: Schema, place: string) {
    this.#name = name;
    const isStandard = "~standard" in Object(schema);
    const parts = Object.values(Object(schema));
    const isShape = !isStandard && parts.length > 0 && parts.every((part) => "~standard" in Object(part));
    // Unlike the input of a tool, the value need not be an object.
    const compiled = this.#compiled = compileSchema(schema, { use: isShape ? "input" : "output", place });
    // The cast is safe because of the test.
    const shape = isStandard ? compileSchema({ [name]: schema as StandardSchema }, { use: "input", place }) : undefined;
    this.#toJson = () => {
      if (shape) return shape.json();
      const text = JSON.stringify(compiled.json()).replaceAll('"$ref":"#', `$&/properties/${name}`);
      return { type: "object", properties: { [name]: JSON.parse(text) } };
    };
  }

  /** Returns the schema of an object whose only property is the value. */
  json(): JsonSchema {
    return this.#toJson();
  }

  check(value: unknown): Checked | Promise<Checked> {
    if (value === undefined && this.#compiled.isRaw) {
      const { default: preset } = Object(this.#compiled.json());
      return preset === undefined ? { problem: `${this.#name}: required` } : { value: structuredClone(preset) };
    }
    const format: FormatIssues = (issues) =>
      toProblem(issues.map((issue) => {
        const { path = [], message } = issue;
        const name = this.#name;
        if (typeof path !== "string") return { message, path: [name, ...path] };
        return { message, path: path && !path.startsWith("[") ? `${name}.${path}` : name + path };
      }));
    return this.#compiled.validate(value, undefined, format);
  }
}

function add({ place, arguments: given, members, input, output, isForeign }: AddingTo): AddedParts {
  const absent = new Map<Argument | Member, string>();
  const toSchema = (schema: Schema | undefined, use: "input" | "output", tokens: readonly Token[]) => {
    const own = schema === undefined ? undefined : compileSchema(schema, { use, place });
    const placed: (Argument | Member)[] = [];
    let json = own?.json() ?? { type: "object", properties: {} };
    for (const [at, { token, layer }] of tokens.entries()) {
      const { name, [INTERNALS]: { kind, required, value } } = token;
      const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
      const other = tokens.slice(0, at).find((each) => each.token.name === name);
      if (other) {
        throw refuse(
          `the layers ${other.layer} and ${layer} both add the ${kind} ${quote(name)}; use only one of them`,
        );
      }
      const added = addProperty(json, { name, schema: value.json(), isRequired: !!required });
      const about = `the layer ${layer} cannot add the ${kind} ${quote(name)}`;
      if (typeof added === "object") {
        json = added;
        placed.push(token);
      } else if (added === "closed") {
        absent.set(token, `${about}, because the ${use} schema permits no other names; describe one object in it`);
      } else if (isForeign) {
        absent.set(token, `${about}, because the tool has its own, which it keeps`);
      } else {
        throw refuse(
          `the layer ${layer} adds the ${kind} ${quote(name)}, which the tool itself has; rename one of them`,
        );
      }
    }
    return { own, placed, json: toFrozen(json) };
  };
  const parts: { input?: Schema; output?: Schema; open?: AddedParts["open"] } = {};
  const inputs = toSchema(input, "input", given);
  if (inputs.placed.length) {
    const reader = new ArgumentReader(inputs.placed, inputs.own);
    parts.open = (call) => reader.open(call);
    parts.input = toSchemaOf("input", { json: () => inputs.json, validate: (...all) => reader.validate(...all) });
  }
  if (output === undefined) return { ...parts, absent };
  const outputs = toSchema(output, "output", members);
  if (outputs.own && outputs.placed.length) {
    parts.output = toSchemaOf("output", { ...outputs.own, json: () => outputs.json });
  }
  return { ...parts, absent };
}

/** Returns a schema that is compiled to `made`. */
function toSchemaOf(use: "input" | "output", made: CompiledSchema): StandardSchema {
  const schema: StandardSchema = {
    "~standard": {
      version: 1,
      vendor: "x-mcp",
      // Another copy of the library would validate the arguments without the call.
      validate() {
        throw new TypeError("Cannot validate a value: another copy of the library serves the tool; import it once");
      },
      jsonSchema: { input: made.json, output: made.json },
    },
  };
  presetSchema(schema, use, made);
  return schema;
}

interface Reading {
  readonly token: Argument | Member;
  readonly value?: unknown;
  readonly problem?: string;
}

/** Takes the added arguments out of the arguments of a tool's calls. */
class ArgumentReader {
  readonly #tokens: readonly (Argument | Member)[];
  readonly #own: CompiledSchema | undefined;

  constructor(tokens: readonly (Argument | Member)[], own: CompiledSchema | undefined) {
    this.#tokens = tokens;
    this.#own = own;
  }

  open(call: Call): Promise<void> | undefined {
    const given = call.params.arguments ?? {};
    // The tool refuses arguments that are not an object.
    if (readGiven(call) || !isObject(given)) return;
    const taken = this.#take(given, call);
    if (taken instanceof Promise) return taken.then((taken) => noteGiven(call, taken));
    noteGiven(call, taken);
  }

  validate(value: unknown, call?: object, format?: FormatIssues): Checked | Promise<Checked> {
    if (!isObject(value)) return this.#check(value, call, format);
    const known = call as Call | undefined; // The cast is safe, because the caller passes the call.
    const before = known && readGiven(known);
    const finish = (given: Given) => {
      if (known) noteGiven(known, given);
      const checked = this.#check(given.rest, call, format);
      return checked instanceof Promise ? checked.then((own) => join(given, own)) : join(given, checked);
    };
    // Arguments that were adapted to the schema are read again.
    const taken = before?.source === value ? before : this.#take(value, known);
    return taken instanceof Promise ? taken.then(finish) : finish(taken);
  }

  /** Without a schema, the tool gets no arguments, because they were not validated. */
  #check(value: unknown, call: object | undefined, format: FormatIssues | undefined): Checked | Promise<Checked> {
    return this.#own ? this.#own.validate(value, call, format) : { value: {} };
  }

  #take(source: Params, call: Call | undefined): Given | Promise<Given> {
    const names = new Set(this.#tokens.map(({ name }) => name));
    const rest = Object.fromEntries(Object.entries(source).filter(([name]) => !names.has(name)));
    const finish = (readings: readonly Reading[]): Given => ({
      source,
      rest,
      tokens: this.#tokens,
      values: new Map(readings.flatMap(({ token, value }) => value === undefined ? [] : [[token, value]])),
      problem: readings.flatMap(({ problem }) => problem ?? []).join("; ") || undefined,
    });
    const readings = this.#tokens.map((token) => {
      const given = Object.hasOwn(source, token.name) ? source[token.name] : undefined;
      const checked = token[INTERNALS].value.check(given);
      const toReading = (checked: Checked) => readChecked(token, given, { checked, call });
      return checked instanceof Promise ? checked.then(toReading) : toReading(checked);
    });
    return readings.some((reading) => reading instanceof Promise)
      ? Promise.all(readings).then(finish)
      : finish(readings as Reading[]); // The cast is safe, because none of them is a promise.
  }
}

/** A call of a handler needs no added argument, because its author may not know the layers of the called tool. */
function readChecked(
  token: Argument | Member,
  given: unknown,
  { checked, call }: { readonly checked: Checked; readonly call: Call | undefined },
): Reading {
  if (checked.problem === undefined) return { token, value: checked.value };
  const isOfClient = call !== undefined && !call.outer && !call.internal;
  // Some clients send `null` for an optional member without a value.
  const isAbsent = given === undefined || given === null;
  if (isAbsent && !(token[INTERNALS].required === true && isOfClient)) return { token };
  return { token, problem: checked.problem };
}

function join({ problem }: Given, own: Checked): Checked {
  if (problem === undefined) return own;
  return { problem: own.problem === undefined ? problem : `${problem}; ${own.problem}` };
}
