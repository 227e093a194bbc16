/**
 * Tools: functions that a model can call.
 *
 * @see specification/2026-07-28/server/tools
 * @module
 */
import {
  INVALID_PARAMS,
  isMcpError,
  isResultError,
  isToolError,
  McpError,
  quote,
  ResultError,
} from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import type { Content, Icon, Meta, ToolAnnotations, ToolResult } from "../protocol/types.ts";
import {
  type Checked,
  type CompiledSchema,
  compileSchema,
  type Infer,
  type InferInput,
  type Schema,
} from "../schema/schema.ts";
import { findHeaderParams, type HeaderParam } from "../schema/header_params.ts";
import type { Call } from "../core/call.ts";
import type { Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import { compose, type Middleware } from "../core/middleware.ts";
import {
  type Allow,
  type Feature,
  type Handler,
  revealTo,
  type Runner,
  toDefinitions,
  toMethod,
} from "../core/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import { createList, type Entry } from "../core/pagination.ts";
import { encode, isContent, toJson } from "./content.ts";
import type { Encoded } from "./encoders.ts";

/**
 * The return value of a tool.
 *
 * - A string or a number becomes text.
 * - An object or an array becomes structured content and text.
 * - Content blocks and full results are sent unchanged.
 * - Bytes, a `Blob` or a `File` become an image or audio. Other media types become an embedded resource with a URI such
 *   as `result:report.pdf`, or `result:bytes` without a name.
 * - `undefined` and `null` become no content.
 *
 * Values that JSON cannot represent, such as a `Map`, a stream or a `Response`, are an error.
 */
export type ToolReturn =
  | string
  | number
  | boolean
  | null
  | undefined
  | void
  | readonly unknown[]
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | { readonly toJSON: (key: string) => unknown }
  | { readonly [key: string]: unknown }
  | (object & {
    readonly [Symbol.toStringTag]?: never;
    readonly [Symbol.iterator]?: never;
    readonly [Symbol.asyncIterator]?: never;
    readonly apply?: never;
    readonly bodyUsed?: never;
    readonly lastIndex?: never;
  });

/** Options of a tool. Only `name` and `run` are required. */
export interface ToolOptions<I extends Schema, O extends Schema> {
  /** Name of the tool, unique in the server: 1 to 128 letters, digits, `_`, `-` and `.`. */
  readonly name: string;
  /** Name for people. */
  readonly title?: string;
  /** Description for the model, which uses it to decide whether to call the tool. */
  readonly description?: string;
  /** Schema of the arguments: an object. Defaults to no arguments. */
  readonly input?: I;
  /** Schema of the result, which is validated before it is sent. */
  readonly output?: O;
  /** Hints about the tool's behavior. */
  readonly annotations?: ToolAnnotations;
  /** Icons of the tool. */
  readonly icons?: readonly Icon[];
  /** Metadata for lists. */
  readonly _meta?: Meta;
  /** Middleware for this tool. The first one is the outermost. */
  readonly use?: readonly Middleware[];
  /** Decides whether a caller may see and call the tool. For other callers it does not exist. */
  readonly allow?: Allow;
  /** Runs the tool. The model reads a `ToolError` that it throws. For any other error it gets an id. */
  readonly run: (
    input: Infer<I>,
    ctx: Context,
  ) =>
    | (Schema extends O ? ToolReturn : InferInput<O> | ToolResult)
    | Promise<Schema extends O ? ToolReturn : InferInput<O> | ToolResult>;
}

/** A tool for `handlers`. Tests can run it directly. */
export interface Tool<Input = never> extends Handler {
  /** Name of the tool. */
  readonly name: string;
  /** The `run` function from the options, without validation. */
  readonly run: (input: Input, ctx: Context) => unknown;
}

/**
 * Creates a tool.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { z } from "zod";
 *
 * const add = tool({
 *   name: "add",
 *   description: "Adds two numbers",
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   run: ({ a, b }) => a + b,
 * });
 * ```
 *
 * @throws {TypeError} if the name or a schema is invalid.
 */
export function tool<I extends Schema = Schema, O extends Schema = Schema>(options: ToolOptions<I, O>): Tool<Infer<I>> {
  const { name, run } = options;
  if (typeof name !== "string" || !/^[\w.-]{1,128}$/.test(name)) {
    throw new TypeError(`Cannot make tool ${quote(name)}: a name is 1 to 128 letters, digits, "_", "-" and "."`);
  }
  if (typeof run !== "function") throw new TypeError(`Cannot make tool ${quote(name)}: run is not a function`);
  return { name, run, allow: options.allow, [INTERNALS]: { feature: tools, key: name, definition: define(options) } };
}

/** A tool for the registry, without its type parameters. Its schemas validate at runtime. */
interface Definition extends Entry {
  readonly input?: CompiledSchema;
  readonly output?: CompiledSchema;
  readonly headers?: readonly HeaderParam[];
  readonly invoke: (call: Call, input: unknown) => Result | Promise<Result>;
}

function define<I extends Schema, O extends Schema>(options: ToolOptions<I, O>): Definition {
  const { name, title, description, annotations, icons, _meta, allow, use = [], run } = options;
  const place = `tool ${JSON.stringify(name)}`;
  const input = options.input && compileSchema(options.input, { use: "input", place });
  const output = options.output && compileSchema(options.output, { use: "output", place });
  const answer = (value: unknown) => output ? toCheckedResult(value, place, output) : toPlainResult(value, place);
  return {
    key: name,
    allow,
    input,
    output,
    headers: input && toHeaders(input),
    wire: () => ({
      name,
      title,
      description,
      inputSchema: input?.json() ?? { type: "object", properties: {} },
      outputSchema: output?.json(),
      annotations,
      icons,
      _meta,
    }),
    invoke: compose(use, (call, value: unknown) => {
      // The input schema has validated `value`, so its type is Infer.
      const returned: unknown = run(value as Infer<I>, call);
      // Query builders are thenables but not promises.
      return typeof Object(returned).then === "function" ? Promise.resolve(returned).then(answer) : answer(returned);
    }),
  };
}

function toHeaders(input: CompiledSchema): readonly HeaderParam[] | undefined {
  const headers = findHeaderParams(input.json());
  return headers.length ? headers : undefined;
}

/** The feature that serves all tools. */
const tools: Feature = {
  name: "tools",
  compile(handlers, core) {
    const definitions = toDefinitions<Definition>(handlers);
    // The keys are unknown, because a client may send any value as a name.
    const byName = new Map<unknown, ToolRunner>(
      definitions.map((definition) => [definition.key, new ToolRunner(definition, core)]),
    );
    const find = (call: Call) => {
      const { name } = call.params;
      const found = byName.get(name);
      return found && !found.allow ? found : revealTo(call, found, { core, refusal: () => toUnknown(name) });
    };
    return {
      capabilities: { tools: { listChanged: true } },
      methods: {
        "tools/list": toMethod(createList("tools", definitions, core), { stable: true }),
        "tools/call": { subject: "name", asks: true, find },
      },
    };
  },
};

/** The runner of a tool. */
class ToolRunner implements Runner {
  readonly allow?: Allow;
  readonly headers?: readonly HeaderParam[];
  readonly #definition: Definition;
  readonly #core: Core;

  constructor(definition: Definition, core: Core) {
    this.allow = definition.allow;
    this.headers = definition.headers;
    this.#definition = definition;
    this.#core = core;
  }

  // Fast path: a tool that returns synchronously needs no promise.
  run(call: Call): Result | Promise<Result> {
    const definition = this.#definition;
    const { arguments: given = {} } = call.params;
    if (!isObject(given)) {
      throw new McpError(INVALID_PARAMS, `Cannot call ${quote(definition.key)}: arguments is not an object`);
    }
    try {
      const reading = definition.input ? definition.input.validate(given) : { value: given };
      const result = reading instanceof Promise
        ? reading.then((checked) => invoke(definition, call, checked))
        : invoke(definition, call, reading);
      return result instanceof Promise
        ? result.catch((error) => toFailed(definition, call, error, this.#core))
        : result;
    } catch (error) {
      return toFailed(definition, call, error, this.#core);
    }
  }
}

function toUnknown(name: unknown): McpError {
  return new McpError(INVALID_PARAMS, `Unknown tool: ${quote(name)}`);
}

function invoke({ key, invoke }: Definition, call: Call, checked: Checked): Result | Promise<Result> {
  // Invalid arguments become a result and not an error, so that the model can read the problem and fix its call.
  return checked.problem === undefined
    ? invoke(call, checked.value)
    : toToolError(`Cannot call ${key}: ${checked.problem}`);
}

/** Returns the result with which the model learns of an error. Throws errors that are not for the model. */
function toFailed({ key }: Definition, call: Call, error: unknown, core: Core): Result {
  if (isMcpError(error) || (call.ended && error === call.reason)) throw error;
  if (isToolError(error)) return toToolError(error.content);
  const told = core.report(error, { method: call.method, subject: key });
  if (isResultError(error)) throw told;
  const words = core.describeError?.(error, call) ?? `${told.message} (${Object.values(told.data ?? {})})`;
  return toToolError(isToolError(words) ? words.content : words);
}

function toToolError(content: string | readonly Content[]): Result {
  return { content: typeof content === "string" ? [toText(content)] : content, isError: true };
}

function toCheckedResult(value: unknown, place: string, output: CompiledSchema): Result | Promise<Result> {
  const full = isToolResult(value) ? value : undefined;
  if (full?.isError) return { ...full };
  const reading = output.validate(full ? full.structuredContent : value);
  const finish = (checked: Checked): Result | Promise<Result> => {
    if (checked.problem !== undefined) throw new ResultError(`Cannot send the result of ${place}: ${checked.problem}`);
    return full ? toFullResult(full, place) : toJsonResult(checked.value, place);
  };
  return reading instanceof Promise ? reading.then(finish) : finish(reading);
}

function toPlainResult(value: unknown, place: string): Result | Promise<Result> {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (value === undefined) return { content: [] };
  if (isToolResult(value)) return toFullResult(value, place);
  if (isContent(value)) return { content: [value] };
  if (Array.isArray(value) && value.length && value.every(isContent)) return { content: value };
  return toJsonResult(value, place);
}

function toFullResult(full: ToolResult, place: string): Result | Promise<Result> {
  const { structuredContent } = full;
  return structuredContent === undefined || toJson(structuredContent)
    ? { ...full }
    : encode(structuredContent, place).then(() => ({ ...full }));
}

function toJsonResult(value: unknown, place: string): Result | Promise<Result> {
  const text = toJson(value);
  const finish = ({ text = "", block }: Encoded): Result => ({
    content: [block ?? toText(text)],
    structuredContent: !block && typeof value === "object" ? value ?? undefined : undefined,
  });
  return text ? finish({ text }) : encode(value, place).then(finish);
}

function toText(text: string): Content {
  return { type: "text", text };
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) && value.content.every(isContent);
}
