/**
 * Prompts: messages that a user can insert by name.
 *
 * @see specification/2026-07-28/server/prompts
 */
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { INVALID_PARAMS, McpError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Content, Icon, Meta, PromptMessage } from "../../core/protocol/types.ts";
import type { CompiledSchema, Infer, Schema, StandardSchema } from "../../core/schema/schema.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import { listProperties } from "../../core/schema/walker.ts";
import { readScopes } from "../call/scopes.ts";
import type { Call } from "../call/call.ts";
import { type Binding, bindServices } from "../call/container.ts";
import type { Allow, Context } from "../call/context.ts";
import { checkOptions, type KnownOptions, toPlace, withoutNulls } from "../../core/known_options.ts";
import { compose } from "../call/middleware.ts";
import { type Unlayered, type UseItem, withLayers } from "../engine/layers.ts";
import {
  type Argument,
  bindAllow,
  type Feature,
  type Handler,
  type ListedParts,
  type Remake,
  showToLayers,
} from "../visibility/feature.ts";
import type { Filter } from "../visibility/guards.ts";
import { wireOnce } from "../visibility/pagination.ts";
import { LISTED, withInternals } from "../../core/internals.ts";
import { readRequirements, type Requirement } from "../call/question.ts";
import type { NoServices, Services, ServiceValues, SharedServiceValues } from "../call/service.ts";
import type { Typed } from "../../core/typed.ts";
import type { ListedPrompt } from "../../core/protocol/listed.ts";
import type { ListedOptions, SentOf } from "./tool.ts";
import { attempt } from "./attempt.ts";
import { type Callable, compileNamed, type NamedKind, runChecked } from "./callable.ts";
import { type Completers, completion, readArguments } from "./completion.ts";
import { loadResults } from "./content.ts";
import { fromListed } from "./listed.ts";
import { isContent, isDoubtful } from "./content_checks.ts";
import type { Sending } from "./encoded_results.ts";
import { DESCRIPTION, HANDLER, HANDLER_ELSEWHERE, HANDLER_HINTS } from "./option_names.ts";

/** A message that a prompt returns. Its content can be a plain string. */
export interface PromptMessageReturn {
  /** Sender of the message. */
  readonly role: "user" | "assistant";
  /** Text, or a content block. */
  readonly content: string | Content;
  /** Always omitted, because only content blocks have a type. */
  readonly type?: undefined;
}

/**
 * The return value of a prompt.
 *
 * - A string, a content block, bytes, a `Blob` or a `File` becomes one user message.
 * - Each of several content blocks becomes a user message.
 * - Messages and full results are sent unchanged.
 */
export type PromptReturn =
  | string
  | bigint
  | Date
  | URL
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | Response
  | ReadableStream
  | AsyncIterable<unknown>
  | Generator<unknown, unknown, undefined>
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | Content
  | PromptMessageReturn
  | readonly (Content | PromptMessageReturn)[]
  | { readonly description?: string; readonly messages: readonly PromptMessageReturn[] };

/** Options of a prompt. Only `name` and `run` are required. */
export interface PromptOptions<I extends Schema, S extends Services = NoServices, N extends string = string> {
  /** Name of the prompt, unique in the server. */
  readonly name: N;
  /** Display name. */
  readonly title?: string;
  /** Description that clients show to the user. */
  readonly description?: string;
  /**
   * Schema of the arguments. The schema must describe an object whose properties accept strings, and can convert these
   * strings. Without `input`, `run` gets an empty object.
   */
  readonly input?: I;
  /** Completers, keyed by argument name. A raw JSON Schema allows any name. */
  readonly complete?: Completers<Extract<keyof SentOf<I>, string>, ServiceValues<S>>;
  /** Icons that clients show in lists. */
  readonly icons?: readonly Icon[];
  /** Metadata for programs. Lists contain this metadata as `_meta`. */
  readonly _meta?: Meta;
  /** Middleware and layers around this prompt. The first middleware is the outermost. */
  readonly use?: readonly UseItem<Infer<I>, ServiceValues<S>, SharedServiceValues<S>>[];
  /** Services that `run`, `complete` and `allow` use, keyed by name. Created after the arguments are validated. */
  readonly services?: S;
  /** Describes an unexpected error. Defaults to the server's `mapError`, also if the function returns `undefined`. */
  readonly mapError?: MapError;
  /** Labels, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients do not see labels. */
  readonly tags?: readonly string[];
  /**
   * Decides whether a caller may see and get the prompt. For other callers, the prompt does not exist. `allow` cannot
   * use services that live for one call.
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
   * Returns the messages. If `run` throws a `ToolError`, the client gets the text of that error. For any other error,
   * the client gets only an error id.
   */
  readonly run: (input: Infer<I>, ctx: Context<ServiceValues<S>>) => PromptReturn | Promise<PromptReturn>;
}

// Use `Object.assign` instead of a spread. Bundlers do not remove an unused spread, because spreading could run a
// getter.
const OPTIONS: KnownOptions<keyof PromptOptions<Schema>> = {
  names: /* @__PURE__ */ Object.assign({}, HANDLER, DESCRIPTION, { input: true, complete: true, run: true } as const),
  hints: /* @__PURE__ */ Object.assign(
    {
      arguments: "input",
      args: "input",
      argsSchema: "input",
      parameters: "input",
      handler: "run",
      execute: "run",
      callback: "run",
      load: "run",
    } as const,
    HANDLER_HINTS,
  ),
  elsewhere: HANDLER_ELSEWHERE,
};

/** A prompt for `handlers`. Tests can run it directly. */
export interface Prompt<Name extends string = string, Input = never, S = never, Sent = unknown>
  extends
    Handler,
    Typed<{ readonly kind: "prompt"; readonly name: Name; readonly input: Sent; readonly output: unknown }> {
  /** Name of the prompt. */
  readonly name: Name;
  /** The `run` function from the options, without validation. */
  readonly run: (input: Input, ctx: Context<S>) => unknown;
}

/** Creates prompts. */
export interface PromptFactory {
  /**
   * Creates a prompt.
   *
   * @throws {TypeError} if an option is unknown or invalid, or if a completer is for an argument that does not exist.
   */
  <
    const N extends string,
    const I extends Schema = Schema,
    S extends Services = NoServices,
  >(options: PromptOptions<I, S, N>): Prompt<N, Infer<I>, ServiceValues<S>, SentOf<I>>;
  /**
   * For proxies: creates a prompt that is listed as another server lists the prompt, with all its members. `run` gets the
   * arguments unchanged, because the other server validates them. Members of a wrong type are left out. A prompt that
   * cannot be listed is not served, and `observer.fault` gets the reason.
   *
   * @throws {TypeError} if `run` is not a function, or an option is unknown or invalid.
   */
  from<S extends Services = NoServices>(
    // An interface has no index signature.
    listed: ListedPrompt | Pick<ListedPrompt, "name" | "title" | "description" | "icons" | "arguments">,
    run: (
      input: Readonly<Record<string, string>>,
      ctx: Context<ServiceValues<S>>,
    ) => PromptReturn | Promise<PromptReturn>,
    options?: ListedOptions<Readonly<Record<string, string>>, S> & {
      /** Completers, keyed by argument name. Completers of arguments that the prompt does not have are not used. */
      readonly complete?: Completers<string, ServiceValues<S>>;
    },
  ): Prompt<string, Readonly<Record<string, string>>, ServiceValues<S>>;
}

/**
 * Creates a prompt.
 *
 * ```ts
 * import { prompt } from "@x/mcp";
 * import { z } from "zod";
 *
 * const review = prompt({
 *   name: "review",
 *   input: z.object({ code: z.string(), language: z.string().optional() }),
 *   complete: { language: (value) => ["go", "python", "rust"].filter((name) => name.startsWith(value)) },
 *   run: ({ code, language = "this" }) => `Review ${language} code:\n${code}`,
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or if a completer is for an argument that does not exist.
 */
export const prompt: PromptFactory = /* @__PURE__ */ Object.assign(makePrompt, {
  from<S extends Services = NoServices>(
    listed: object,
    run: PromptOptions<StandardSchema<Readonly<Record<string, string>>>, S>["run"],
    options: ListedOptions<Readonly<Record<string, string>>, S> & {
      readonly complete?: Completers<string, ServiceValues<S>>;
    } = {},
  ) {
    return fromListed({ kind: "prompt", listed, run, options, known: OPTIONS }, (listed) => {
      const inputs = toListedArguments(listed.arguments);
      const names = inputs.map(({ name }) => name);
      const complete = Object.fromEntries(
        Object.entries(options.complete ?? {}).filter(([name]) => names.includes(name)),
      );
      const { name, title, description, icons, _meta } = listed;
      // The cast is safe, because the types of the members have been checked.
      const members = { title, description, icons, _meta } as Omit<PromptOptions<Schema, S>, "name" | "run">;
      const parts: Elsewhere = { [LISTED]: { foreign: true, members: listed, inputs } };
      // The schema accepts all arguments, because the other server validates them.
      const input: StandardSchema<Readonly<Record<string, string>>> = anyText;
      return makePrompt({ ...members, ...options, ...parts, name, input, complete, run });
    });
  },
});

interface Elsewhere {
  readonly [LISTED]?: ListedParts;
}

function toListedArguments(given: unknown): readonly Argument[] {
  // The cast is safe, because only arguments with a name remain, and clients get their other members unchanged.
  return (Array.isArray(given) ? given.filter((each) => typeof Object(each).name === "string") : []) as Argument[];
}

const anyText: StandardSchema<Readonly<Record<string, string>>> = {
  "~standard": {
    version: 1,
    vendor: "x-mcp",
    validate: (value) => ({ value: value as Readonly<Record<string, string>> }), // The cast is safe, because arguments are always strings.
    jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
  },
};

function makePrompt<
  const N extends string,
  const I extends Schema = Schema,
  S extends Services = NoServices,
>(given: PromptOptions<I, S, N> & Elsewhere): Prompt<N, Infer<I>, ServiceValues<S>, SentOf<I>> {
  const place = toPlace("prompt", given);
  const { [LISTED]: listed }: Elsewhere = Object(given);
  if (!listed) checkOptions(`make ${place}`, given, OPTIONS);
  const { name, run, complete } = given;
  if (typeof name !== "string" || !name) throw new TypeError(`Cannot make ${place}: it has no name; set name`);
  if (typeof run !== "function") {
    throw new TypeError(`Cannot make ${place}: run is not a function; rename the handler to run`);
  }
  const options = withLayers(given, { kind: "prompt", name });
  const services = bindServices(options.services, place);
  const definition = define(options, place, services);
  const { allow } = definition;
  const names = definition.inputs.map((argument) => argument.name);
  const { scopes, layers } = definition;
  const { mapError } = options;
  const completed = { place, names, complete, allow, scopes, services, mapError, apply: layers?.completion };
  const also = [completion({ type: "ref/prompt", name, ...completed })];
  const remake: Remake = (change) => makePrompt(change(given));
  const { foreign } = listed ?? {};
  const internals = { feature: prompts, key: name, definition, also, services, scopes, layers, remake, foreign };
  return withInternals({ name, run, allow, tags: options.tags }, internals);
}

interface Definition extends Callable {
  readonly input?: CompiledSchema;
  readonly inputs: readonly Argument[];
}

function define<I extends Schema, S extends Services>(
  options: Unlayered<PromptOptions<I, S> & Elsewhere>,
  place: string,
  services: Binding | undefined,
): Definition {
  const { name, allow, use = [], run, layers } = options;
  const { title, description, icons, _meta } = withoutNulls(options);
  const input = options.input === undefined ? undefined : compileSchema(options.input, { use: "input", place });
  const { inputs = input ? toArguments(toTester(options.input, input), place) : [], members } = options[LISTED] ?? {};
  const invoke = async (
    call: Call,
    ctx: Context<never> = call,
    value: unknown,
    core: FeatureParts,
    filter: Filter | undefined,
  ) => {
    // The cast is safe, because the input schema validated `value`.
    const returns = (ctx: Context<never>) => call.startHandler(() => run(value as Infer<I>, ctx));
    const sending = { place, call, core };
    return toPromptResult(await (filter ? filter(returns, ctx, sending) : returns(ctx)), sending);
  };
  return {
    key: name,
    allow: bindAllow(allow, services),
    services,
    mapError: options.mapError,
    refuse(problem) {
      throw new McpError(INVALID_PARAMS, `Cannot get ${quote(name)}: ${problem}`);
    },
    input,
    inputs,
    scopes: readScopes(options.scopes, place),
    requires: layers?.requires ?? readRequirements(options.requires, place),
    layers,
    wire: showToLayers(
      layers,
      wireOnce(() => {
        const listed = inputs.length ? inputs : undefined;
        return { ...members, name, title, description, arguments: listed, icons, _meta };
      }),
    ),
    invoke: compose(use, services?.inject(invoke) ?? invoke),
  };
}

export const prompts: Feature = {
  name: "prompts",
  compile: (handlers, core) => compileNamed<Definition>(PROMPTS, handlers, core),
};

const PROMPTS: NamedKind<Definition> = {
  kind: "prompt",
  method: "prompts/get",
  toRun: (definition, core) => (call) => getPrompt(definition, call, core),
};

async function getPrompt(definition: Definition, call: Call, core: FeatureParts): Promise<Result> {
  const { key, input, mapError } = definition;
  const args = readArguments(call.params.arguments ?? {}, `Cannot get ${quote(key)}`);
  return await attempt({ core, call, subject: key, mapError }, async () => {
    const checked = input ? await input.validate(args, call) : { value: {} };
    return await runChecked(definition, call, checked, core);
  });
}

// Returns a schema that `isCoerced` can test synchronously. An object of schemas is always validated asynchronously, so
// the returned schema validates a single argument with the schema of this argument.
function toTester(schema: Schema | undefined, input: CompiledSchema): CompiledSchema {
  if (input.isRaw || "~standard" in Object(schema)) return input;
  return {
    ...input,
    validate(given) {
      const [[name, value]] = Object.entries(Object(given));
      const result = Object(schema)[name]["~standard"].validate(value);
      return result instanceof Promise ? result : { problem: JSON.stringify(result.issues) };
    },
  };
}

// Returns the arguments that lists describe. Rejects a schema that accepts no string, because arguments are always
// strings in the protocol, so every call would fail.
function toArguments(input: CompiledSchema, place: string): Argument[] {
  return listProperties(input.json()).map(({ name, schema, isRequired }) => {
    const { type, title, description }: Params = Object(schema);
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (type !== undefined && !types.includes("string") && !types.some((type) => isCoerced(input, name, type))) {
      throw new TypeError(
        `Cannot make ${place}: argument ${quote(name)} is of type ${type}, but arguments arrive as strings; ` +
          "use a string, or a schema that converts text, such as z.coerce.number()",
      );
    }
    return { name, title, description, required: isRequired || undefined };
  });
}

/** A sample value of each JSON type that text can be converted to. */
const SAMPLES: Readonly<Record<string, unknown>> = { number: 1, integer: 1, boolean: true };

// Whether a schema converts text. A schema such as z.coerce.number() has the same JSON Schema as z.number(). To
// distinguish these schemas, a number and its text are validated. Only a coercing schema reports the same issues for
// both values. The test omits all other arguments. The issues about missing arguments are the same for the number and
// its text.
function isCoerced(input: Pick<CompiledSchema, "validate">, name: string, type: unknown): boolean {
  const sample = SAMPLES[String(type)];
  if (sample === undefined) return false;
  try {
    const [given, asText] = [sample, String(sample)].map((value) => input.validate({ [name]: value }));
    // An asynchronous schema cannot be tested here, because `prompt()` is synchronous.
    if (given instanceof Promise || asText instanceof Promise) {
      Promise.allSettled([given, asText]);
      return false;
    }
    return given.problem === asText.problem;
  } catch {
    return false;
  }
}

async function toPromptResult(value: unknown, sending: Sending): Promise<Result> {
  const isFull = isObject(value) && Array.isArray(value.messages);
  const given: unknown = isFull ? value.messages : value;
  const messages = toMessages(given) ?? toMessages(await (await loadResults(sending, given)).ofPrompt(given));
  if (!messages) throw new Error(`Cannot send ${sending.place}: run did not return text, content or messages`);
  const result: Result = isFull ? { ...value, messages } : { messages };
  const isFine = !isFull && !messages.some(({ content }) => isDoubtful(content));
  return isFine ? result : (await loadResults(sending, result)).check(result);
}

function toMessages(given: unknown): PromptMessage[] | undefined {
  const messages = typeof given === "string" ? [toTextMessage("user", given)] : [given].flat().map(toMessage);
  return messages.every(isMessage) ? messages : undefined;
}

function toMessage(one: unknown): unknown {
  if (isContent(one)) return { role: "user", content: one };
  return isObject(one) && typeof one.content === "string" ? toTextMessage(one.role, one.content) : one;
}

function toTextMessage(role: unknown, text: string): unknown {
  return { role, content: { type: "text", text } };
}

function isMessage(value: unknown): value is PromptMessage {
  return isObject(value) && (value.role === "user" || value.role === "assistant") && isContent(value.content);
}
