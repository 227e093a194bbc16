/**
 * Runs the guards and encoders around a handler. Loaded with the first call that needs it, by `value_room.ts`.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, isResultError, isToolError, McpError, ToolError } from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call/call.ts";
import type { Binding } from "../core/call/container.ts";
import type { Context } from "../core/call/context.ts";
import { isQuestion } from "../core/call/question.ts";
import type { FeatureParts, MapError } from "../core/visibility/feature_parts.ts";
import type { Encoder, Filter, FilteredResult, HandlerGuards, OutputPart } from "../core/visibility/guards.ts";
import { describe } from "./attempt.ts";
import { isContent, toJson } from "./content_checks.ts";
import { EncodedResults } from "./encoded_results.ts";
import { guardMessages } from "./guarded_messages.ts";
import { readSyncVerdict } from "../core/call/verdict.ts";

/** A handler that may have guards. */
export interface Guarded {
  readonly guards?: HandlerGuards;
  /** Services of the handler. */
  readonly services?: Binding;
  /** Describes unexpected errors of the handler. */
  readonly mapError?: MapError;
  /** Set if a later check decides whether the handler starts. */
  readonly idempotency?: object;
}

/** One run of a handler. */
export interface FilteredRun {
  readonly call: Call;
  readonly core: FeatureParts;
  /** The validated input. */
  readonly value: unknown;
  /** Runs the handler with a guarded input. */
  readonly next: (value: unknown, filter: Filter) => Result | Promise<Result>;
}

/** A guard, without type parameters. */
type Guard = (value: unknown, ctx: Context<never>, part: OutputPart) => unknown;

/** Runs a handler between its guards. Those of the server are the outermost. */
export async function runFiltered(guarded: Guarded, run: FilteredRun): Promise<Result> {
  const { call, core: { filters }, next } = run;
  const { guards, services, idempotency } = guarded;
  const outputs = new OutputGuards(guarded, run);
  return await outputs.guardErrors(call, async () => {
    const input = await passInput(run.value, filters?.guards, call);
    const passOwn = async (_call: Call, ctx: Context<never> = call) => await passInput(input, guards, ctx);
    const value = guards?.input?.length ? await (services?.share(passOwn) ?? passOwn)(call) : input;
    // A cancelled call does not start its handler.
    if (call.ended) throw call.reason;
    if (!idempotency) call.onRun?.();
    return await next(value, (returns, ctx, sending) => outputs.run(returns, ctx, sending));
  });
}

async function passInput(given: unknown, guards: HandlerGuards | undefined, ctx: Context<never>): Promise<unknown> {
  let value = given;
  // The types of the handler say that its guards take its input.
  for (const guard of (guards?.input ?? []) as readonly ((value: unknown, ctx: Context<never>) => unknown)[]) {
    const passed = await guard(value, ctx);
    // A guard that decides by true or false would let every call pass, with that as its input.
    if (typeof passed === "boolean" && typeof value !== "boolean") {
      const remedy = "throw a ToolError to refuse the call, or return nothing to let it pass";
      throw new TypeError(`Cannot guard the input: a guard returned ${passed}; ${remedy}`);
    }
    // `null` is a value like any other.
    if (passed !== undefined) value = passed;
  }
  return value;
}

function listOutput(guards: HandlerGuards | undefined): readonly Guard[] {
  return (guards?.output ?? []) as readonly Guard[]; // The types of the handler say that its guards take its output.
}

/** Errors that the guards have seen. */
const guardedErrors = new WeakSet<object>();

/** The output guards and the encoders around one run of a handler. */
class OutputGuards {
  readonly #guarded: Guarded;
  readonly #run: FilteredRun;
  /** The guards of the handler, then those of the server. */
  readonly #own: readonly Guard[];
  readonly #outer: readonly Guard[];

  constructor(guarded: Guarded, run: FilteredRun) {
    this.#guarded = guarded;
    this.#run = run;
    this.#own = listOutput(guarded.guards);
    this.#outer = listOutput(run.core.filters?.guards);
  }

  get #isOpen(): boolean {
    return !this.#own.length && !this.#outer.length;
  }

  /** Runs the handler, and returns its value as the encoders and guards leave it. */
  async run(returns: (ctx: Context<never>) => unknown, ctx: Context<never>, sending: FilteredResult): Promise<unknown> {
    const { call, core } = this.#run;
    const encoders = core.filters?.encoders ?? [];
    const toOwn = (value: unknown) => encoders.length ? new OwnEncoder(encoders).encode(value) : value;
    if (this.#isOpen) return toOwn(await returns(ctx));
    return await this.guardErrors(ctx, async () => {
      const { watched, settled } = guardMessages(ctx, call, (value, part) => this.#pass(value, ctx, part));
      let value;
      try {
        value = toOwn(await returns(watched));
      } finally {
        await settled();
      }
      const encoded = await this.#encode(value, sending);
      const left = toOwn(await this.#pass(encoded.value, ctx, "result"));
      return encoded.finish ? encoded.finish(left) : left;
    });
  }

  // Plain data is copied, so that a guard that changes it does not change what the handler keeps.
  async #encode(
    value: unknown,
    sending: FilteredResult,
  ): Promise<{ value: unknown; finish?: (left: unknown) => unknown }> {
    if (["string", "boolean", "undefined"].includes(typeof value) || value === null) return { value };
    const { call, core } = this.#run;
    const results = new EncodedResults({ ...sending, call, core, isContent });
    const text = typeof value === "object" ? toJson(value) : undefined;
    if (text === undefined) return await results.forGuards(value);
    const plain: unknown = JSON.parse(text);
    // A date or a URL is a string in JSON, but is not sent as a text.
    return Object(plain) === plain ? { value: plain } : { value: plain, finish: (left) => results.ofScalar(left) };
  }

  async #pass(given: unknown, ctx: Context<never>, part: OutputPart): Promise<unknown> {
    const { call } = this.#run;
    let value = given;
    const all = [...this.#own.map((guard) => ({ guard, ctx })), ...this.#outer.map((guard) => ({ guard, ctx: call }))];
    for (const { guard, ctx } of all) {
      const passed = await guard(value, ctx, part);
      // `null` is a value like any other, by which a guard may replace a secret.
      if (passed !== undefined) value = passed;
    }
    return value;
  }

  /** Runs something whose errors pass the guards, if the client sees more of them than an id. */
  async guardErrors<T>(ctx: Context<never>, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      const { call } = this.#run;
      // The reason of a cancelled call, and a question, are none of the handler's words.
      if (this.#isOpen || call.ended || isQuestion(error) || guardedErrors.has(Object(error))) throw error;
      const left = await this.#guardError(error, ctx);
      guardedErrors.add(left);
      throw left;
    }
  }

  async #guardError(error: unknown, ctx: Context<never>): Promise<Error> {
    const { call, core } = this.#run;
    const { method, subject } = call;
    let words = error;
    if (!isToolError(error) && !isMcpError(error)) {
      const reported = core.report(error, { method, subject });
      if (isResultError(error)) return reported;
      // The client sees what `mapError` says of the error, or else an id.
      const said = describe({ call, core, mapError: this.#guarded.mapError }, error);
      const isText = typeof said === "string";
      if (!isText && !isToolError(said) && !isMcpError(said)) return toUnexpected(reported, call);
      words = !isText
        ? said
        : method === "tools/call"
        ? new ToolError(said)
        : new McpError(INTERNAL_ERROR, said, reported.data);
    }
    try {
      return await this.#guardWords(words, ctx);
    } catch (failed) {
      // A guard may refuse the error with other words. Anything else must not show what it has not checked.
      if (isToolError(failed) || isMcpError(failed)) return failed;
      return toUnexpected(core.report(failed, { method, subject }), call);
    }
  }

  async #guardWords(words: unknown, ctx: Context<never>): Promise<Error> {
    if (isToolError(words)) {
      return toError(
        await this.#pass(JSON.parse(JSON.stringify({ content: words.content, isError: true })), ctx, "error"),
      );
    }
    const { code, message, data } = Object(words);
    const given: unknown = JSON.parse(JSON.stringify({ code, message, data }));
    const left = Object(await this.#pass(given, ctx, "error"));
    if (typeof left.message !== "string") throw new TypeError(NO_WORDS);
    return new McpError(Number.isInteger(left.code) ? left.code : code, left.message, left.data);
  }
}

const NO_WORDS =
  "Cannot send an error: an output guard returned no words for it; return a string, a result or the error";

/** Returns what a client gets of an unexpected error. */
function toUnexpected(reported: McpError, { method }: Call): Error {
  if (method !== "tools/call") return reported;
  return new ToolError(`${reported.message} (${Object.values(reported.data ?? {})})`);
}

function toError(left: unknown): ToolError {
  if (typeof left === "string") return new ToolError(left);
  // A result has content blocks, which are checked before they are sent.
  if (isObject(left) && Array.isArray(left.content)) return new ToolError(left.content);
  throw new TypeError(NO_WORDS);
}

// As deep as the built-in encoders go.
const MAX_DEPTH = 128;

/** Replaces values of the server's own types in one result. */
class OwnEncoder {
  readonly #encoders: readonly Encoder[];
  /** Parents of the value that is being encoded. */
  readonly #open = new Set<object>();

  constructor(encoders: readonly Encoder[]) {
    this.#encoders = encoders;
  }

  /** Returns the value itself if nothing in it is replaced. */
  encode(value: unknown): unknown {
    if (value === null || ["string", "number", "boolean", "undefined"].includes(typeof value)) return value;
    const encoder = this.#encoders.find((each) => readSyncVerdict(each.test(value), "test of an encoder"));
    // The encoder has tested the value. Its result is not tested again, but the parts of the result are.
    const made = encoder ? encoder.encode(value as never) : value;
    if (typeof made !== "object" || made === null) return made;
    // The built-in encoders refuse what is too deep or holds itself.
    if (this.#open.has(made) || this.#open.size > MAX_DEPTH) return made;
    this.#open.add(made);
    const encoded = this.#encodeParts(made);
    this.#open.delete(made);
    return encoded;
  }

  #encodeParts(value: object): unknown {
    if (Array.isArray(value)) return this.#encodeAll(value) ?? value;
    if (value instanceof Map) {
      const entries = this.#encodeAll([...value].flat());
      return entries ? new Map(value.size ? toPairs(entries) : []) : value;
    }
    if (value instanceof Set) {
      const items = this.#encodeAll([...value]);
      return items ? new Set(items) : value;
    }
    if (value instanceof ReadableStream) {
      if (value.locked) return value;
      return value.pipeThrough(
        new TransformStream<unknown, unknown>({ transform: (chunk, to) => to.enqueue(this.encode(chunk)) }),
      );
    }
    // Values with a toJSON() method convert themselves.
    // The built-in encoders read streams of Node.js as bodies.
    if ("toJSON" in value || "pipe" in value || ArrayBuffer.isView(value)) return value;
    if (Symbol.asyncIterator in value) return this.#iterate(value as AsyncIterable<unknown>); // as just seen
    const tag = Object.prototype.toString.call(value);
    if (tag === "[object Generator]") return this.#iterateNow(value as Iterable<unknown>); // as the tag says
    if (tag !== "[object Object]") return value;
    const keys = Object.keys(value);
    const parts = this.#encodeAll(Object.values(value));
    return parts ? Object.fromEntries(keys.map((key, i) => [key, parts[i]])) : value;
  }

  /** Returns `undefined` if nothing is replaced. */
  #encodeAll(parts: readonly unknown[]): unknown[] | undefined {
    let encoded: unknown[] | undefined;
    for (const [i, part] of parts.entries()) {
      const made = this.encode(part);
      if (made !== part) (encoded ??= [...parts])[i] = made;
    }
    return encoded;
  }

  async *#iterate(items: AsyncIterable<unknown>): AsyncGenerator<unknown, void, undefined> {
    for await (const item of items) yield this.encode(item);
  }

  *#iterateNow(items: Iterable<unknown>): Generator<unknown, void, undefined> {
    for (const item of items) yield this.encode(item);
  }
}

function toPairs(flat: readonly unknown[]): [unknown, unknown][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}
