/**
 * Tools: what a model can do here.
 *
 * @see specification/2026-07-28/server/tools
 * @module
 */
import { INVALID_PARAMS, isMcpError, isResultError, isToolError, McpError, quote } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
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
import { isContent, isDoubtful, loadResults, type Sending, toJson } from "./content.ts";

/**
 * What a tool may return. Each value is sent as what it means to a model:
 *
 * - A string or a number is text. An object or an array is structured content, and JSON text. `undefined` is no content.
 * - Content blocks and full results are sent as they are.
 * - Bytes, a `Blob` or a `File` are an image or a sound, text if that is their type, or else an embedded resource with a
 *   URI such as `result:report.pdf` (`result:bytes` without a name).
 * - A `ReadableStream` is read to its end: bytes become media, strings a text, and other values an array. A `Response`
 *   becomes a value, a text or media by its content type. One with an error status makes the result an error.
 * - `Map`, `Set`, `Date`, `URL`, `bigint`, generators and async iterables are JSON of what they hold: a map is an object,
 *   or an array of pairs if not all keys are strings, and a bigint beyond the safe integers is a string.
 *
 * The same holds within objects and arrays. Media in an array of texts, content blocks and media are content in their
 * order. Elsewhere JSON has their URI, such as `result:chart`, and they follow the JSON text as content.
 *
 * `limits.calls` bounds what is read, by `resultBytes` and `readMs`. Other values are refused by name.
 */
export type ToolReturn =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | void
  | readonly unknown[]
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | Response
  | ReadableStream
  | AsyncIterable<unknown>
  | Generator<unknown, unknown, undefined>
  | { readonly toJSON: (key: string) => unknown }
  | { readonly [key: string]: unknown }
  | (object & {
    readonly [Symbol.toStringTag]?: never;
    readonly [Symbol.iterator]?: never;
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
  /** What the tool takes: an object. Without it, nothing. See {@linkcode Schema} for what it may be. */
  readonly input?: I;
  /**
   * Whether an argument may be JSON text where the input wants an object, an array, a number or a boolean, because some
   * models write `"[1, 2]"` for `[1, 2]`. Defaults to the server's `lenientArguments`.
   */
  readonly lenientArguments?: boolean;
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
export function tool<const I extends Schema = Schema, const O extends Schema = Schema>(
  options: ToolOptions<I, O>,
): Tool<Infer<I>> {
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
  readonly lenient?: boolean;
  readonly output?: CompiledSchema;
  readonly headers?: readonly HeaderParam[];
  readonly needs?: readonly string[];
  readonly invoke: (call: Call, input: unknown, core: Core) => Result | Promise<Result>;
}

function define<I extends Schema, O extends Schema>(options: ToolOptions<I, O>): Definition {
  const { name, title, description, annotations, icons, _meta, allow, use = [], run } = options;
  const place = `tool ${JSON.stringify(name)}`;
  const input = options.input && compileSchema(options.input, { use: "input", place });
  const output = options.output && compileSchema(options.output, { use: "output", place });
  return {
    key: name,
    allow,
    input,
    lenient: options.lenientArguments,
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
    invoke: compose(use, (call, value: unknown, core: Core) => {
      const answer = (value: unknown) => {
        const sending = { place, call, core };
        return output ? toCheckedResult(value, sending, output) : toPlainResult(value, sending);
      };
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
      const { input, lenient = this.#core.lenientArguments } = definition;
      const reading = !input
        ? { value: given }
        : lenient
        ? readLeniently(input, given, this.#core)
        : input.validate(given);
      const result = reading instanceof Promise
        ? reading.then((checked) => invoke(definition, call, checked, this.#core))
        : invoke(definition, call, reading, this.#core);
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

async function readLeniently(input: CompiledSchema, given: Params, { limits }: Core): Promise<Checked> {
  const { adaptInput } = await import("../schema/adapt_input.ts");
  return await input.validate(adaptInput(given, input.json(), { jsonText: limits.request }));
}

function invoke({ key, invoke }: Definition, call: Call, checked: Checked, core: Core): Result | Promise<Result> {
  // Told as a result, not as an error: the model reads it and can mend its call.
  return checked.problem === undefined
    ? invoke(call, checked.value, core)
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

function toCheckedResult(value: unknown, sending: Sending, output: CompiledSchema): Result | Promise<Result> {
  const full = isToolResult(value) ? value : undefined;
  if (full?.isError) return { ...full };
  const given = full ? full.structuredContent : value;
  const finish = ({ problem, value }: { readonly problem?: string; readonly value?: unknown }) => {
    if (problem !== undefined) {
      return loadResults(sending).then((to) => to.ofTool(given, { full, output, problem }));
    }
    return full ? toFullResult(full, sending, output) : toJsonResult(value, sending, output);
  };
  const reading = output.validate(given);
  return reading instanceof Promise ? reading.then(finish) : finish(reading);
}

function toPlainResult(value: unknown, sending: Sending): Result | Promise<Result> {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (value === undefined) return { content: [] };
  if (isToolResult(value)) return toFullResult(value, sending);
  if (isContent(value)) return toFullResult({ content: [value] }, sending);
  if (Array.isArray(value) && value.length && value.every(isContent)) {
    return toFullResult({ content: value }, sending);
  }
  return toJsonResult(value, sending);
}

function toFullResult(full: ToolResult, sending: Sending, output?: CompiledSchema): Result | Promise<Result> {
  const { content, structuredContent } = full;
  const isFine = (structuredContent === undefined || toJson(structuredContent)) && !content.some(isDoubtful);
  return isFine ? { ...full } : loadResults(sending).then((to) => to.ofTool(structuredContent, { full, output }));
}

function toJsonResult(value: unknown, sending: Sending, output?: CompiledSchema): Result | Promise<Result> {
  const text = toJson(value);
  return text
    ? { content: [toText(text)], structuredContent: typeof value === "object" ? value ?? undefined : undefined }
    : loadResults(sending).then((to) => to.ofTool(value, { output }));
}

function toText(text: string): Content {
  return { type: "text", text };
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) && value.content.every(isContent);
}
