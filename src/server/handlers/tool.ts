/**
 * Tools: functions that a model can call.
 *
 * @see specification/2026-07-28/server/tools
 */
import type { FeatureParts, MapError, PublishedTool, PublishSchema } from "../visibility/feature_parts.ts";
import {
  INVALID_PARAMS,
  isMcpError,
  isResultError,
  isToolError,
  McpError,
  quote,
  toFailedText,
} from "../../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../../core/protocol/jsonrpc.ts";
import { MAX_LINE, TEXT_COPY } from "../../core/protocol/text_option.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Content, Icon, Meta, ToolAnnotations, ToolResult } from "../../core/protocol/types.ts";
import type { Checked, CompiledSchema, Infer, InferInput, Schema, StandardSchema } from "../../core/schema/schema.ts";
import { compileSchema, lazySchemaChecks } from "../../core/schema/schema_compiler.ts";
import { findHeaderParams, type HeaderParam } from "../../core/schema/header_params.ts";
import { readScopes } from "../call/scopes.ts";
import type { Call } from "../call/call.ts";
import { type Binding, bindServices } from "../call/container.ts";
import type { Allow, Context } from "../call/context.ts";
import { checkOptions, type KnownOptions, toPlace, withoutNulls } from "../../core/known_options.ts";
import { compose } from "../call/middleware.ts";
import { type UseItem, withLayers } from "../engine/layers.ts";
import {
  bindAllow,
  type Feature,
  type GroupedOptions,
  type Handler,
  type ListedParts,
  type Remake,
  showToLayers,
} from "../visibility/feature.ts";
import type { Filter } from "../visibility/guards.ts";
import { wireOnce } from "../visibility/pagination.ts";
import { ABOUT, LISTED, withInternals } from "../../core/internals.ts";
import { readRequirements, type Requirement } from "../call/question.ts";
import type { NoServices, Services, ServiceValues, SharedServiceValues } from "../call/service.ts";
import { describe } from "./attempt.ts";
import { loadResults } from "./content.ts";
import { hasResultMembers, isContent, isDoubtful, toJson, toText } from "./content_checks.ts";
import type { Sending } from "./encoded_results.ts";
import type { ListedTool } from "../../core/protocol/listed.ts";
import type { Typed } from "../../core/typed.ts";
import { toToolOptions } from "./tool_from.ts";
import { fromListed } from "./listed.ts";
import { type Callable, compileNamed, type NamedKind, runChecked, type Vary } from "./callable.ts";
import { loadValues } from "./lazy_values.ts";
import type { ToolVariant } from "./variant.ts";
import { ANNOTATIONS, DESCRIPTION, HANDLER, HANDLER_ELSEWHERE, HANDLER_HINTS } from "./option_names.ts";

/**
 * The return value of a tool.
 *
 * - A string or a number becomes text.
 * - An object or an array becomes structured content and text.
 * - Content blocks and full results are sent unchanged.
 * - Bytes, a `Blob` or a `File` become an image or audio, or text if their media type is text. Other media types become
 *   an embedded resource with a URI such as `result:report.pdf`, or `result:bytes` without a name.
 * - A `ReadableStream` is read to its end: bytes become media, strings become text, other values become an array.
 * - A `Response` becomes a value, text or media by its content type. An error status makes the result an error.
 * - A `Map`, `Set`, `Date`, `URL`, `bigint`, generator or async iterable becomes JSON of its content. A map whose keys
 *   are not all strings becomes an array of pairs. A bigint beyond the safe integers becomes a string.
 * - `undefined` becomes an empty list of content.
 *
 * The same conversions apply within objects and arrays. An array of texts, content blocks and media becomes content in
 * the same order. For media in any other object or array, the JSON contains the URI of the media, such as
 * `result:chart`, and the media follow as content. Such a result has no structured content, unless the tool has an
 * output schema, because some clients pass only structured content to the model.
 *
 * A value that matches the output schema of the tool becomes structured content: any JSON value, including `null` and an
 * object with a property `content`.
 *
 * Reading is limited to `limits.calls.resultBytes` bytes and 60 seconds. Any other value causes an error that names the
 * type of the value.
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

/** Options of a tool. Only `name` and `run` are required. */
export interface ToolOptions<
  I extends Schema,
  O extends Schema,
  S extends Services = NoServices,
  N extends string = string,
> {
  /** Name of the tool, unique in the server: 1 to 128 letters, digits, `_`, `-` and `.`. */
  readonly name: N;
  /** Display name. */
  readonly title?: string;
  /** Description for the model, which uses it to decide whether to call the tool. */
  readonly description?: string;
  /**
   * Schema of the arguments. The schema must describe an object. Without `input`, `run` gets an empty object, even if
   * the client sends arguments.
   */
  readonly input?: I;
  /**
   * Whether an argument may be JSON text where the input schema expects an object, array, number or boolean. Some
   * models write `"[1, 2]"` for `[1, 2]`. Defaults to the server's `lenientArguments`.
   */
  readonly lenientArguments?: boolean;
  /**
   * Schema of the structured content, which can be any JSON value. Each result is validated before it is sent. Clients
   * of revisions in which structured content is always an object get any other value only as text.
   */
  readonly output?: O;
  /**
   * The text that accompanies structured content: `"full"` is the structured content as JSON, `"summary"` lists its
   * keys with their types and lengths in at most 500 characters, and `"none"` omits the text. If `run` returns text
   * itself, that text is sent unchanged. Clients of revisions without structured content get the full JSON as text, and
   * so do all clients if the value has media. In a text of more than 16,384 characters, each element has its own line.
   * Defaults to the server's `text`.
   */
  readonly text?: "full" | "summary" | "none";
  /** Hints about the tool's behavior. */
  readonly annotations?: ToolAnnotations;
  /** Icons that clients show in lists. */
  readonly icons?: readonly Icon[];
  /** Metadata for programs. Lists contain this metadata as `_meta`. */
  readonly _meta?: Meta;
  /** Middleware and layers around this tool. The first middleware is the outermost. */
  readonly use?: readonly UseItem<Infer<I>, ServiceValues<S>, SharedServiceValues<S>>[];
  /** Services that `run`, `allow` and the layers use, keyed by name. Created after the input is validated. */
  readonly services?: S;
  /** Describes an unexpected error. Defaults to the server's `mapError`, also if the function returns `undefined`. */
  readonly mapError?: MapError;
  /** Labels, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients do not see labels. */
  readonly tags?: readonly string[];
  /**
   * Words by which `toolSearch` finds the tool, in addition to its name and description, such as `["whoami", "me"]`.
   * Clients do not see these words.
   */
  readonly about?: readonly string[];
  /**
   * Changes the tool for one caller, such as its description or input schema. Calls from this caller are validated
   * against the changed input schema. If `forCaller` throws, the tool does not exist for this caller. Lists that
   * contain such a tool have the cache scope `"private"`. Always return the same schema object, because the server
   * compiles each schema object once.
   */
  readonly forCaller?: (
    ctx: Context<SharedServiceValues<S>>,
  ) => ToolVariant<Infer<I>> | undefined | Promise<ToolVariant<Infer<I>> | undefined>;
  /**
   * Decides whether a caller may see and call the tool. For other callers, the tool does not exist. `allow` cannot use
   * services that live for one call.
   */
  readonly allow?: Allow<SharedServiceValues<S>>;
  /**
   * Scopes that the caller must have, such as `["notes:write"]`. A request from any other caller fails with code
   * -31403, and over HTTP with status 403. Use `allow` to hide the handler too. By default, no scopes are required.
   */
  readonly scopes?: readonly string[];
  /**
   * Capabilities that the client must have declared, such as `["elicitation"]`. A call from any other client fails
   * before the handler runs, with code -32021, and over HTTP with status 400.
   *
   * By default, no capabilities are required. A call then fails only if the handler uses a capability that the client
   * lacks.
   */
  readonly requires?: readonly Requirement[];
  /**
   * Runs the tool. The model reads the message of a `ToolError`. Any other error goes to `observer.fault`, and the
   * client gets only an error id.
   */
  readonly run: (
    input: Infer<I>,
    ctx: Context<ServiceValues<S>>,
  ) => ToolResult | ToolResultOf<O> | Promise<ToolResult | ToolResultOf<O>>;
}

export const TOOL: KnownOptions<keyof ToolOptions<Schema, Schema>> = {
  names: {
    ...HANDLER,
    ...DESCRIPTION,
    input: true,
    lenientArguments: "boolean",
    output: true,
    text: TEXT_COPY,
    annotations: ANNOTATIONS,
    about: "texts",
    forCaller: "function",
    run: true,
  },
  hints: {
    ...HANDLER_HINTS,
    parameters: "input",
    arguments: "input",
    args: "input",
    schema: "input",
    handler: "run",
    execute: "run",
    callback: "run",
    readOnlyHint: "annotations.readOnlyHint",
    destructiveHint: "annotations.destructiveHint",
    idempotentHint: "annotations.idempotentHint",
    openWorldHint: "annotations.openWorldHint",
  },
  elsewhere: {
    ...HANDLER_ELSEWHERE,
    ...Object.fromEntries(
      [["cache"], ["retry"], ["circuit"], ["confirm"], ["idempotency", "idempotent"], ["idempotencyKey", "idempotent"]]
        .map(([name, layer = name]) => [name, `${name} is a layer: use: [${layer}(…)]`]),
    ),
  },
};

/** The type that a tool's `run` returns, as inferred from the output schema. */
export type ToolResultOf<O extends Schema> = Schema extends O ? ToolReturn : InferInput<O> | ToolResult;

/**
 * A tool for `handlers`. Tests can run it directly. `Sent` is the type of the arguments as clients send them, before
 * the input schema converts them.
 */
export interface Tool<Name extends string = string, Input = never, Output = unknown, Services = never, Sent = unknown>
  extends
    Handler,
    Typed<{ readonly kind: "tool"; readonly name: Name; readonly input: Sent; readonly output: Output }> {
  /** Name of the tool. */
  readonly name: Name;
  /** The `run` function from the options, without validation. */
  readonly run: (input: Input, ctx: Context<Services>) => unknown;
}

/** Type of a tool's structured content, from the output schema. `unknown` if the tool has no output schema. */
export type OutputOf<O extends Schema> = Schema extends O ? unknown
  : unknown extends Infer<O> ? NonNullable<unknown> | null
  : Infer<O>;

/** The type of the arguments that clients send to a tool or prompt, as inferred from the input schema. */
export type SentOf<I extends Schema> = Schema extends I ? Readonly<Record<string, never>>
  : unknown extends InferInput<I> ? Infer<I>
  : InferInput<I>;

/** Creates tools. */
export interface ToolFactory {
  /**
   * Creates a tool.
   *
   * @throws {TypeError} if an option is unknown or invalid.
   */
  <
    const N extends string,
    const I extends Schema = Schema,
    const O extends Schema = Schema,
    S extends Services = NoServices,
  >(options: ToolOptions<I, O, S, N>): Tool<N, Infer<I>, OutputOf<O>, ServiceValues<S>, SentOf<I>>;
  /**
   * For proxies: creates a tool that is listed as another server lists the tool, with all its members. `run` gets the
   * arguments unchanged, and its result is sent unchanged, because the other server validates both.
   *
   * Members of a wrong type are left out. A tool that cannot be listed, for example because it has no name, is not
   * served, and `observer.fault` gets the reason.
   *
   * @throws {TypeError} if `run` is not a function, or an option is unknown or invalid.
   */
  from<S extends Services = NoServices>(
    // An interface has no index signature.
    listed:
      | ListedTool
      | Pick<ListedTool, "name" | "title" | "description" | "icons" | "inputSchema" | "outputSchema" | "annotations">,
    run: ToolOptions<StandardSchema<Params, Params>, StandardSchema, S>["run"],
    options?: ListedOptions<Params, S> & Pick<ToolOptions<Schema, Schema>, "about">,
  ): Tool<string, Params, unknown, ServiceValues<S>>;
}

/** Options of `tool.from` and `prompt.from` besides the entry of a list. `Input` is the type of the arguments. */
export type ListedOptions<Input, S extends Services = NoServices> =
  & Pick<ToolOptions<Schema, Schema, S>, "services" | "mapError" | "tags" | "allow" | "scopes" | "requires">
  & {
    /** Middleware and layers around the handler. The first middleware is the outermost. */
    readonly use?: readonly UseItem<Input, ServiceValues<S>, SharedServiceValues<S>>[];
  };

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
 * @throws {TypeError} if an option is unknown or invalid.
 */
export const tool: ToolFactory = Object.assign(makeTool, {
  from<S extends Services = NoServices>(
    listed: object,
    run: ToolOptions<StandardSchema<Params, Params>, StandardSchema, S>["run"],
    options?: ListedOptions<Params, S> & Pick<ToolOptions<Schema, Schema>, "about">,
  ) {
    const given = { kind: "tool", listed, run, options, known: TOOL };
    return fromListed(given, (listed) => makeTool({ ...toToolOptions(listed, run), ...options }));
  },
});

function makeTool<
  const N extends string,
  const I extends Schema = Schema,
  const O extends Schema = Schema,
  S extends Services = NoServices,
>(options: ToolOptions<I, O, S, N> & Elsewhere): Tool<N, Infer<I>, OutputOf<O>, ServiceValues<S>, SentOf<I>> {
  const place = toPlace("tool", options);
  const { [LISTED]: listed }: Elsewhere = Object(options);
  if (!listed) checkOptions(`make ${place}`, options, TOOL);
  const { name, run } = options;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  // The name of a tool from elsewhere was checked when it was read.
  if (!listed && !(typeof name === "string" && /^[\w.-]{1,128}$/.test(name))) {
    throw refuse('a name is 1 to 128 letters, digits, "_", "-" and "."');
  }
  if (typeof run !== "function") throw refuse("run is not a function; rename the handler to run");
  const services = bindServices(options.services, place);
  const definition = define(options, services);
  const { allow, layers, scopes } = definition;
  const remake: Remake = (change) => makeTool(change(options));
  const internals = {
    feature: tools,
    key: name,
    definition,
    services,
    scopes,
    layers,
    remake,
    foreign: listed?.foreign,
    documented: listed?.documented,
    about: [options[ABOUT], options.about],
  };
  return withInternals({ name, run, allow, tags: options.tags }, internals);
}

interface Elsewhere extends Pick<GroupedOptions, typeof ABOUT> {
  readonly [LISTED]?: ListedParts;
}

export interface Definition extends Callable {
  /** Whether middleware or a layer wants to see the final result of each call. */
  readonly seesResults?: boolean;
  readonly input?: CompiledSchema;
  readonly lenient?: boolean;
  readonly output?: CompiledSchema;
  readonly vary?: Vary<Definition>;
}

function define<I extends Schema, O extends Schema, S extends Services>(
  given: ToolOptions<I, O, S> & Elsewhere,
  services: Binding | undefined,
): Definition {
  const place = `tool ${JSON.stringify(given.name)}`;
  const { title, description, icons, annotations } = withoutNulls(given);
  const hints = annotations && withoutNulls(annotations);
  const visible = bindAllow(given.allow, services);
  const scopes = readScopes(given.scopes, place);
  const hasOutput = given.output !== undefined;
  const about = { kind: "tool", name: given.name, annotations: hints, hasOutput, allow: visible, scopes } as const;
  const options = withLayers(given, about);
  const { name, run, text, use = [], layers, _meta } = options;
  // Only `undefined` means that there is no schema. Compile any other value, so that an invalid schema throws instead
  // of accepting all arguments.
  const input = options.input === undefined ? undefined : compileSchema(options.input, { use: "input", place });
  const output = options.output === undefined ? undefined : compileSchema(options.output, { use: "output", place });
  // Convert the schema to JSON Schema now, so that a failure throws here. Otherwise every tools/list request would
  // fail.
  output?.json();
  const invoke = (
    call: Call,
    ctx: Context<never> = call,
    value: unknown,
    core: FeatureParts,
    filter: Filter | undefined,
  ): Result | Promise<Result> => {
    const sending = { place, call, core, text, output };
    const answer = (value: unknown) => {
      return output ? toCheckedResult(value, sending, output) : toPlainResult(value, sending);
    };
    // The cast is safe for the reason below.
    if (filter) return filter((ctx) => call.startHandler(() => run(value as never, ctx)), ctx, sending).then(answer);
    // Fast path: without `startHandler`, no closure is needed. The cast is safe, because the input schema validated
    // `value`.
    const returned = call.watched || call.ended
      ? call.startHandler(() => run(value as never, ctx)) // The cast is safe for the reason above.
      : run(value as never, ctx);
    // Wait for thenables too, because a query builder is a thenable but not a promise. `isPromiseLike` is not used,
    // because another function would increase the cost of each call.
    return typeof Object(returned).then === "function" ? Promise.resolve(returned).then(answer) : answer(returned);
  };
  const injected = services?.inject(invoke) ?? invoke;
  return {
    key: name,
    allow: visible,
    services,
    mapError: options.mapError,
    refuse,
    vary: options.forCaller && (async (call, core) => {
      const { toVariant } = await loadValues();
      return await toVariant(options, { call, core, services, define });
    }),
    input,
    lenient: options.lenientArguments,
    output,
    headers: input && toHeaders(input),
    scopes,
    requires: layers?.requires ?? readRequirements(options.requires, place),
    layers,
    seesResults: use.length > 0 || layers?.seesResults === true,
    wire: showToLayers(
      layers,
      wireOnce(({ publishSchema }) => ({
        ...given[LISTED]?.members,
        name,
        title,
        description,
        inputSchema: toPublic(input, publishSchema, { tool: name, use: "input" }) ?? { type: "object", properties: {} },
        outputSchema: toPublic(output, publishSchema, { tool: name, use: "output" }),
        annotations: hints,
        icons,
        _meta: _meta ?? undefined,
      })),
    ),
    // Check the idempotency key inside the middleware, so that the middleware also runs for repeated calls.
    invoke: compose(use, layers?.keyed?.(injected, services) ?? injected),
  };
}

function toPublic(schema: CompiledSchema | undefined, publish: PublishSchema | undefined, about: PublishedTool) {
  if (!schema || !publish) return schema?.json();
  const published: unknown = publish(structuredClone(schema.json()), about);
  if (!isStrayPromise(published) && isObject(published)) return published;
  throw new TypeError(`Cannot list tool ${quote(about.tool)}: publishSchema must return a schema object`);
}

function toHeaders(input: CompiledSchema): readonly HeaderParam[] | undefined {
  const schema = input.json();
  // Search the JSON text first, because few schemas have such annotations, and serializing a schema is much faster than
  // searching its nodes.
  const headers = JSON.stringify(schema).includes('"x-mcp-header"') ? findHeaderParams(schema) : [];
  return headers.length ? headers : undefined;
}

export const tools: Feature = {
  name: "tools",
  compile: (handlers, core) => compileNamed(TOOLS, handlers, core),
};

const TOOLS: NamedKind<Definition> = {
  kind: "tool",
  method: "tools/call",
  // Fast path: a tool that returns synchronously needs no promise.
  toRun: (definition, core) => (call) => {
    // Some clients send `null` for an optional member without a value.
    const given = call.params.arguments ?? {};
    if (!isObject(given)) {
      throw new McpError(INVALID_PARAMS, `Cannot call ${quote(definition.key)}: arguments is not an object`);
    }
    try {
      const { input, lenient = core.lenientArguments } = definition;
      const reading = !input
        // Without a schema, pass no arguments to the handler, because they were not validated.
        ? { value: {} }
        : lenient
        ? readLeniently(input, given, call, core)
        : input.validate(given, call);
      const result = reading instanceof Promise
        ? reading.then((checked) => runChecked(definition, call, checked, core))
        : runChecked(definition, call, reading, core);
      return result instanceof Promise ? result.catch((error) => toFailed(definition, call, error, core)) : result;
    } catch (error) {
      return toFailed(definition, call, error, core);
    }
  },
};

async function readLeniently(
  input: CompiledSchema,
  given: Params,
  call: Call,
  { limits }: FeatureParts,
): Promise<Checked> {
  const { adaptInput } = await lazySchemaChecks.load();
  const adapted = adaptInput(given, input.json(), { jsonText: limits.request, dropsNull: true });
  return adapted.problem === undefined ? await input.validate(adapted.value, call) : adapted;
}

// Returns a result instead of a protocol error, so that the model can read it and correct its call.
function refuse(problem: string, { params: { name } }: Call): Result {
  return toErrorText(`Cannot call ${name}: ${problem}`);
}

/** Describes the error to the model. Throws the error again if the client must get a protocol error instead. */
function toFailed(
  { key, mapError }: Definition,
  call: Call,
  error: unknown,
  core: FeatureParts,
): Result | Promise<Result> {
  const sending = { place: `tool ${quote(key)}`, call, core };
  if (isMcpError(error)) throw error;
  if (isToolError(error)) return toToolError(error.content, sending);
  const reported = core.report(error, { method: call.method, subject: key });
  if (isResultError(error)) throw reported;
  const words = describe({ core, call, mapError }, error);
  if (isMcpError(words)) throw words;
  if (isToolError(words)) return toToolError(words.content, sending);
  // `mapError` may return a promise in spite of its type. A promise would be sent as `{}`.
  return toErrorText(typeof words === "string" ? words : toFailedText(reported));
}

function toErrorText(text: string): Result {
  return { content: [toText(text)], isError: true };
}

/** Returns a result with content of the author, which may be invalid. */
function toToolError(content: readonly Content[], sending: Sending): Result | Promise<Result> {
  const result = { content, isError: true };
  const isFine = content.every((block) => isContent(block) && !isDoubtful(block));
  return isFine ? result : loadResults(sending, content).then((to) => to.check(result));
}

function toCheckedResult(value: unknown, sending: Sending, output: CompiledSchema): Result | Promise<Result> {
  const full = isToolResult(value) && hasResultMembers(value) ? value : undefined;
  // Do not validate errors, because the output schema does not apply to them.
  if (full?.isError) return toFullResult(full, sending);
  const given = full ? full.structuredContent : value;
  const finish = ({ problem, value }: { readonly problem?: string; readonly value?: unknown }) => {
    if (problem !== undefined) {
      return loadResults(sending, given).then((to) => to.ofTool(given, { full, problem }));
    }
    // Send the value that the schema returned. The value that the handler returned may lack defaults, or have
    // properties that the schema does not list.
    return full ? toFullResult({ ...full, structuredContent: value }, sending) : toJsonResult(value, sending);
  };
  const reading = output.validate(given);
  return reading instanceof Promise ? reading.then(finish) : finish(reading);
}

function toPlainResult(value: unknown, sending: Sending): Result | Promise<Result> {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (value === undefined) return { content: [] };
  if (isToolResult(value)) return toFullResult(value, sending);
  if (isContent(value)) return toFullResult({ content: [value] }, sending);
  if (
    Array.isArray(value) && value.every((item) => typeof item === "string" || isContent(item)) && value.some(isContent)
  ) {
    return toFullResult({ content: value.map((item) => typeof item === "string" ? toText(item) : item) }, sending);
  }
  return toJsonResult(value, sending);
}

function toFullResult(full: ToolResult, sending: Sending): Result | Promise<Result> {
  const { content, structuredContent, isError = false, _meta } = full;
  const isPlain = _meta === undefined && !("resultType" in full);
  const isFine = (structuredContent === undefined || toJson(structuredContent)) && isPlain &&
    typeof isError === "boolean" && !content.some(isDoubtful);
  return isFine ? { ...full } : loadResults(sending, full).then((to) => to.ofTool(structuredContent, { full }));
}

function toJsonResult(value: unknown, sending: Sending): Result | Promise<Result> {
  const { output, text = sending.core.text ?? "full" } = sending;
  const copy = toJson(value);
  return copy && text === "full" && copy.length <= MAX_LINE
    ? {
      content: [toText(copy)],
      structuredContent: output ? value : typeof value === "object" ? value ?? undefined : undefined,
    }
    : loadResults(sending, value).then((to) => to.ofTool(value, {}));
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value.content) && value.content.every(isContent);
}
