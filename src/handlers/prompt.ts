/**
 * Prompts: what a user can start with one word.
 *
 * @see specification/2026-07-28/server/prompts
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { Content, Icon, Meta, PromptMessage } from "../protocol/types.ts";
import { type CompiledSchema, compileSchema, type Infer, type InferInput, type Schema } from "../schema/schema.ts";
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
import { attempt } from "./attempt.ts";
import { type Completers, completion, readArguments } from "./completion.ts";
import { isContent, isDoubtful, loadResults, type Sending } from "./content.ts";

/** One message of a prompt. Text may be given as a string. */
export interface PromptMessageReturn {
  /** Whose message it is. */
  readonly role: "user" | "assistant";
  /** A text, or a content block. */
  readonly content: string | Content;
  /** Of content blocks alone. */
  readonly type?: undefined;
}

/**
 * What a prompt may return. A string or a content block is one message of the user, and so are bytes, a `Blob` or a
 * `File`. Several blocks are as many messages. Messages and full results are sent as they are. A stream, a `Response`,
 * an iterable, a `Map`, a `Set`, a `Date`, a `URL` and a `bigint` are encoded as in the result of a tool. A `Response`
 * with an error status is refused.
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

/** Names of what a schema takes; of a raw JSON Schema any names. */
export type ArgumentNames<I extends Schema> = Extract<
  keyof (unknown extends InferInput<I> ? Infer<I> : InferInput<I>),
  string
>;

/** What a prompt is made of. Only `name` and `run` must be said. */
export interface PromptOptions<I extends Schema> {
  /** Unique in the server. */
  readonly name: string;
  /** The name for people. */
  readonly title?: string;
  /** What the prompt is for. */
  readonly description?: string;
  /** What the prompt takes: an object of strings. A schema may turn them into something else. Without it, nothing. */
  readonly input?: I;
  /** Suggests values for arguments. */
  readonly complete?: Completers<ArgumentNames<I>>;
  /** Pictures for lists. */
  readonly icons?: readonly Icon[];
  /** More about it, for programs. */
  readonly _meta?: Meta;
  /** Code around this prompt's calls; the first is the outermost. */
  readonly use?: readonly Middleware[];
  /** Whether a caller may see and get the prompt; to others it does not exist. */
  readonly allow?: Allow;
  /**
   * What the client must have declared, such as `["elicitation"]`. A call of another client is refused with -32021 (over
   * HTTP with status 400) and does not run. Defaults to nothing: a question that the client cannot answer is then
   * refused where it is asked.
   */
  readonly needs?: readonly Need[];
  /** Writes the messages. What it throws as a `ToolError` the client is told; of other errors only an id. */
  readonly run: (input: Infer<I>, ctx: Context) => PromptReturn | Promise<PromptReturn>;
}

/** A prompt, ready to be registered, or to be run by a test. */
export interface Prompt<Input = never> extends Handler {
  /** As it was given. */
  readonly name: string;
  /** The function as it was given: nothing is checked. */
  readonly run: (input: Input, ctx: Context) => unknown;
}

/**
 * Makes a prompt.
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
 * @throws {TypeError} if the name or the schema cannot be used, or a completer is for no argument of it.
 */
export function prompt<const I extends Schema = Schema>(options: PromptOptions<I>): Prompt<Infer<I>> {
  const { name, run, complete, allow } = options;
  const place = `prompt ${quote(name)}`;
  if (typeof name !== "string" || !name) throw new TypeError(`Cannot make ${place}: it has no name`);
  if (typeof run !== "function") throw new TypeError(`Cannot make ${place}: run is not a function`);
  const definition = define(options, place);
  const names = definition.inputs.map((argument) => argument.name);
  const also = [completion({ type: "ref/prompt", name, place, names, complete, allow })];
  return { name, run, allow, [INTERNALS]: { feature: prompts, key: name, definition, also } };
}

/** One argument, as clients see it. */
interface Argument {
  readonly name: string;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly required?: boolean;
}

/** A prompt as the registry sees it: its types are forgotten, its schema does the checking. */
interface Definition extends Entry {
  readonly input?: CompiledSchema;
  readonly inputs: readonly Argument[];
  readonly needs?: readonly string[];
  readonly invoke: (call: Call, input: unknown, core: Core) => Result | Promise<Result>;
}

function define<I extends Schema>(options: PromptOptions<I>, place: string): Definition {
  const { name, title, description, icons, _meta, allow, use = [], run } = options;
  const input = options.input && compileSchema(options.input, { use: "input", place });
  const inputs = input ? toArguments(input, place) : [];
  return {
    key: name,
    allow,
    input,
    inputs,
    needs: readNeeds(options.needs, place),
    wire: () => ({ name, title, description, arguments: inputs.length ? inputs : undefined, icons, _meta }),
    invoke: compose(use, async (call, value: unknown, core: Core) => {
      // `value` is what the input schema let through, which is what Infer stands for.
      return toPromptResult(await run(value as Infer<I>, call), { place, call, core });
    }),
  };
}

/** The feature that all prompts belong to. */
const prompts: Feature = {
  name: "prompts",
  compile(handlers, core) {
    const definitions = toDefinitions<Definition>(handlers);
    // Asked for whatever a client gives as a name.
    const byName = new Map<unknown, Found>(
      definitions.map((definition) => {
        const { key, allow, needs } = definition;
        return [key, { allow, needs, run: (call) => getPrompt(definition, call, core) }];
      }),
    );
    const find = (call: Call) => {
      const { name } = call.params;
      const refusal = () => new McpError(INVALID_PARAMS, `Unknown prompt: ${quote(name)}`);
      return revealTo(call, byName.get(name), { core, refusal });
    };
    return {
      capabilities: { prompts: { listChanged: true } },
      methods: {
        "prompts/list": toMethod(createList("prompts", definitions, core), { stable: true }),
        "prompts/get": { subject: "name", asks: true, find },
      },
    };
  },
};

/** A prompt as a call finds it. */
interface Found extends Runner {
  readonly allow?: Allow;
}

async function getPrompt({ key, input, invoke }: Definition, call: Call, core: Core): Promise<Result> {
  const { arguments: given = {} } = call.params;
  const state = `Cannot get ${quote(key)}`;
  const args = readArguments(given, state);
  return await attempt({ core, call, subject: key }, async () => {
    const checked = input ? await input.validate(args) : { value: args };
    if (checked.problem !== undefined) throw new McpError(INVALID_PARAMS, `${state}: ${checked.problem}`);
    return await invoke(call, checked.value, core);
  });
}

// On the wire every argument is a string, so one whose schema takes no string could never be given.
function toArguments(input: CompiledSchema, place: string): Argument[] {
  const schema = input.json();
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(isObject(schema.properties) ? schema.properties : {}).map(([name, property]) => {
    const { type, title, description }: Params = isObject(property) ? property : {};
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (type !== undefined && !types.includes("string") && !types.some((type) => isCoerced(input, name, type))) {
      throw new TypeError(
        `Cannot make ${place}: argument ${quote(name)} is of type ${type}, but arguments arrive as strings; ` +
          "take a string, and convert it as z.coerce.number() does",
      );
    }
    return { name, title, description, required: required.includes(name) || undefined };
  });
}

/** Values of each type, as they are and as strings. */
const SAMPLES: Readonly<Record<string, unknown>> = { number: 1, integer: 1, boolean: true };

// A schema such as z.coerce.number() is shown like z.number(). What tells them apart is that it finds the same wrong with
// a number as with the number's text. No other argument is given: what is wrong with those is the same both times.
function isCoerced(input: CompiledSchema, name: string, type: unknown): boolean {
  const sample = SAMPLES[String(type)];
  if (sample === undefined) return false;
  try {
    const [given, asText] = [sample, String(sample)].map((value) => input.validate({ [name]: value }));
    // A schema that takes time cannot be tried here.
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
  const messages = toMessages(given) ?? toMessages(await (await loadResults(sending)).ofPrompt(given));
  if (!messages) throw new Error(`Cannot send ${sending.place}: run did not return text, content or messages`);
  const content = messages.map(({ content }) => content);
  if (content.some(isDoubtful)) (await loadResults(sending)).checkContent({ content });
  return isFull ? { ...value, messages } : { messages };
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
