/**
 * Tools: what a model can do here.
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
import { type Need, readNeeds } from "../core/question.ts";
import { createList, type Entry } from "../core/pagination.ts";
import { encode, isContent, toJson } from "./content.ts";
import type { Encoded } from "./encoders.ts";

/**
 * What a tool may return. A string or a number becomes text; an object or an array becomes structured content and
 * text; content blocks and full results stay what they are. Bytes, a `Blob` or a `File` become an image or a sound, or an
 * embedded resource with a URI such as `result:report.pdf` (`result:bytes` without a name). Nothing becomes no content.
 *
 * Values that JSON has no word for, such as a `Map`, a stream or a `Response`, are refused.
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

/** What a tool is made of. Only `name` and `run` must be said. */
export interface ToolOptions<I extends Schema, O extends Schema> {
  /** 1 to 128 letters, digits, `_`, `-` and `.`; unique in the server. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** What the tool does, for the model that decides to call it. */
  readonly description?: string;
  /** What the tool takes: an object. Without it, nothing. */
  readonly input?: I;
  /** What the tool gives. The result is checked before it is sent. */
  readonly output?: O;
  /** Hints about what the tool does. */
  readonly annotations?: ToolAnnotations;
  /** Images that stand for the tool. */
  readonly icons?: readonly Icon[];
  /** Free metadata, shown on the list. */
  readonly _meta?: Meta;
  /** Code around this tool's calls; the first is the outermost. */
  readonly use?: readonly Middleware[];
  /** Whether a caller may see and call the tool; to others it does not exist. */
  readonly allow?: Allow;
  /**
   * What the client must have declared, such as `["elicitation"]`. A call of another client is refused with -32021 (over
   * HTTP with status 400) and does not run. Defaults to nothing: a question that the client cannot answer is then
   * refused where it is asked.
   */
  readonly needs?: readonly Need[];
  /** Does the work. What it throws as a `ToolError` the model reads; other errors stay here. */
  readonly run: (
    input: Infer<I>,
    ctx: Context,
  ) =>
    | (Schema extends O ? ToolReturn : InferInput<O> | ToolResult)
    | Promise<Schema extends O ? ToolReturn : InferInput<O> | ToolResult>;
}

/** A tool, ready to be registered, or to be run by a test. */
export interface Tool<Input = never> extends Handler {
  /** The name that clients call. */
  readonly name: string;
  /** The function as it was given: nothing is checked. */
  readonly run: (input: Input, ctx: Context) => unknown;
}

/**
 * Makes a tool.
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
 * @throws {TypeError} if the name, a schema or a need cannot be used.
 */
export function tool<I extends Schema = Schema, O extends Schema = Schema>(options: ToolOptions<I, O>): Tool<Infer<I>> {
  const { name, run } = options;
  if (typeof name !== "string" || !/^[\w.-]{1,128}$/.test(name)) {
    throw new TypeError(`Cannot make tool ${quote(name)}: a name is 1 to 128 letters, digits, "_", "-" and "."`);
  }
  if (typeof run !== "function") throw new TypeError(`Cannot make tool ${quote(name)}: run is not a function`);
  return { name, run, allow: options.allow, [INTERNALS]: { feature: tools, key: name, definition: define(options) } };
}

/** A tool as the registry sees it: its types are forgotten, its schemas do the checking. */
interface Definition extends Entry {
  readonly input?: CompiledSchema;
  readonly output?: CompiledSchema;
  readonly headers?: readonly HeaderParam[];
  readonly needs?: readonly string[];
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
    needs: readNeeds(options.needs, place),
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
      // `value` is what the input schema let through, which is what Infer stands for.
      const returned: unknown = run(value as Infer<I>, call);
      // Query builders and their like can be awaited, and are no promises.
      return typeof Object(returned).then === "function" ? Promise.resolve(returned).then(answer) : answer(returned);
    }),
  };
}

function toHeaders(input: CompiledSchema): readonly HeaderParam[] | undefined {
  const headers = findHeaderParams(input.json());
  return headers.length ? headers : undefined;
}

/** The feature that all tools belong to. */
const tools: Feature = {
  name: "tools",
  compile(handlers, core) {
    const definitions = toDefinitions<Definition>(handlers);
    // Asked for whatever a client gives as a name.
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

/** A tool as a call finds it. */
class ToolRunner implements Runner {
  readonly allow?: Allow;
  readonly headers?: readonly HeaderParam[];
  readonly needs?: readonly string[];
  readonly #definition: Definition;
  readonly #core: Core;

  constructor(definition: Definition, core: Core) {
    this.allow = definition.allow;
    this.headers = definition.headers;
    this.needs = definition.needs;
    this.#definition = definition;
    this.#core = core;
  }

  // A tool that answers at once makes no promise.
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
  // Told as a result, not as an error: the model reads it and can mend its call.
  return checked.problem === undefined
    ? invoke(call, checked.value)
    : toToolError(`Cannot call ${key}: ${checked.problem}`);
}

/** What the model is told of an error; throws what it is not for. */
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
  return text ? withText(value, { text }) : encode(value, place).then((encoded) => withText(value, encoded));
}

function withText(value: unknown, { text = "", block }: Encoded): Result {
  return {
    content: [block ?? toText(text)],
    structuredContent: !block && typeof value === "object" ? value ?? undefined : undefined,
  };
}

function toText(text: string): Content {
  return { type: "text", text };
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) && value.content.every(isContent);
}
