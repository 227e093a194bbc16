/**
 * Runs the guards and encoders around a handler. Loaded by `lazy_values.ts` when a call first needs guards or encoders.
 */
import { ignoreRejections } from "../../core/protocol/promises.ts";
import {
  INTERNAL_ERROR,
  isMcpError,
  isResultError,
  isToolError,
  McpError,
  toFailedText,
  ToolError,
} from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import type { Binding } from "../call/container.ts";
import type { Context } from "../call/context.ts";
import { CALL } from "../../core/internals.ts";
import type { SentGuard } from "../call/sent_guard.ts";
import { isQuestion } from "../call/question.ts";
import { noteGuards } from "../call/reads.ts";
import type { HandlerLayers } from "../visibility/feature.ts";
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import type {
  EncodedValue,
  Encoder,
  Filter,
  FilteredResult,
  GuardSteps,
  HandlerGuards,
  OutputPart,
} from "../visibility/guards.ts";
import { describe } from "./attempt.ts";
import { toJson, toText } from "./content_checks.ts";
import { EncodedResults } from "./encoded_results.ts";
import { guardMessages } from "./guarded_messages.ts";
import { type GuardedQuestions, guardQuestions } from "./guarded_questions.ts";
import { readSyncVerdict } from "../call/verdict.ts";
import { lazyWireCheck } from "../call/lazy_wire_check.ts";

export interface Guarded {
  readonly layers?: HandlerLayers;
  readonly services?: Binding;
  readonly mapError?: MapError;
}

export interface FilteredRun {
  readonly call: Call;
  readonly core: FeatureParts;
  /** The validated input. */
  readonly value: unknown;
  /** Runs the handler with a guarded input. */
  readonly next: (value: unknown, filter: Filter) => Result | Promise<Result>;
}

const NO_STEPS: GuardSteps = { input: [], output: [] };
const NO_GUARDS: HandlerGuards = { own: NO_STEPS, outer: NO_STEPS };

/** Runs a handler between its guards. The guards of the server are the outermost. */
export async function runFiltered(guarded: Guarded, run: FilteredRun): Promise<Result> {
  const { call, next } = run;
  const { layers: { guards, keyed } = {}, services } = guarded;
  const outputs = new OutputGuards(guarded, run);
  return await outputs.guardErrors(call, () =>
    outputs.guardSent(async () => {
      const { outer, own } = guards ?? NO_GUARDS;
      const input = await passInput(run.value, outer, call);
      const passOwn = async (_call: Call, ctx: Context<never> = call) => await passInput(input, own, ctx);
      const value = own.input.length ? await (services?.share(passOwn) ?? passOwn)(call) : input;
      // A cancelled call does not start its handler.
      if (call.ended) throw call.endError;
      // With an idempotency key, `onRun` is called only after the key has been claimed.
      if (!keyed) call.onRun?.();
      const result = await next(value, (returns, ctx, sending) => outputs.run(returns, ctx, sending));
      return guards?.isWrapped ? await outputs.guardChanged(result) : result;
    }));
}

async function passInput(given: unknown, guards: GuardSteps, ctx: Context<never>): Promise<unknown> {
  let value = given;
  for (const guard of guards.input) {
    const passed = await guard(value, ctx);
    // Reject booleans and errors. Otherwise a guard that returns them to allow or refuse a call would let every call
    // pass, and replace the input with the value.
    if (typeof passed === "boolean" && typeof value !== "boolean" || passed instanceof Error) {
      const remedy = "throw a ToolError to refuse the call, or return nothing to allow the call";
      const state = `a guard returned ${passed instanceof Error ? "an error" : passed}`;
      throw new TypeError(`Cannot guard the input: ${state}; ${remedy}`);
    }
    // Only `undefined` keeps the value. `null` replaces it.
    if (passed !== undefined) value = passed;
  }
  return value;
}

/** Errors that have passed the output guards, and must not pass the guards again. */
const guardedErrors = new WeakSet<object>();

class OutputGuards {
  readonly #guarded: Guarded;
  readonly #run: FilteredRun;
  /** The guards of the handler. They run before the guards of the server. */
  readonly #own: GuardSteps["output"];
  readonly #outer: GuardSteps["output"];
  /** The context of the handler while the handler runs. Otherwise the call. */
  #ctx: Context<never>;
  #questions?: GuardedQuestions;
  /** Names of the layers whose guards have changed the result. */
  readonly #changers = new Set<string>();
  /** The last result that has passed the guards as JSON, before middleware has changed it. */
  #noted?: string;
  #messages?: Pick<SentGuard, "say" | "said">;
  /** The log and progress methods of the guards themselves. */
  readonly #direct: Pick<Context<never>, "log" | "progress">;
  /** The last error that has passed the guards, and the error for the client. */
  #passed?: readonly [error: unknown, left: Error];

  constructor(guarded: Guarded, run: FilteredRun) {
    this.#guarded = guarded;
    this.#run = run;
    const { own, outer } = guarded.layers?.guards ?? NO_GUARDS;
    this.#own = own.output;
    this.#outer = outer.output;
    this.#ctx = run.call;
    const { log, progress } = run.call;
    this.#direct = { log, progress };
  }

  get #isOpen(): boolean {
    return !this.#own.length && !this.#outer.length;
  }

  async run(returns: (ctx: Context<never>) => unknown, ctx: Context<never>, sending: FilteredResult): Promise<unknown> {
    const { call, core } = this.#run;
    const { encoders = [] } = core;
    const toOwn = (value: unknown) => encoders.length ? new OwnEncoder(encoders).encode(value) : value;
    if (this.#isOpen) return toOwn(await returns(ctx));
    this.#ctx = ctx;
    try {
      return await this.guardErrors(ctx, async () => {
        const { keep, kept } = sending;
        const results = new EncodedResults({ ...sending, call, core });
        let encoded;
        try {
          // A generator of the handler runs while its values are encoded.
          encoded = kept ?? await this.#encode(toOwn(await returns(ctx)), results);
          // Copy the value, because a guard may change it.
          keep?.(JSON.parse(JSON.stringify(encoded)));
        } finally {
          await this.#messages?.said();
          // Throw the error of a refused question here too, so that an idempotency key keeps no result of such a run.
          await this.#questions?.untilChecked();
        }
        return results.finish(toOwn(await this.#pass(encoded.value, ctx, "result")), encoded);
      });
    } finally {
      // The services that live for the call end with the handler.
      this.#ctx = call;
    }
  }

  /**
   * Runs the handler with its services and middleware, whose questions and messages pass the guards.
   *
   * @throws the error of a guard that refused a question, even if the handler has caught this error.
   */
  async guardSent<T>(run: () => Promise<T>): Promise<T> {
    if (this.#isOpen) return await run();
    const { call, core } = this.#run;
    const pass = (value: unknown, part: OutputPart) => this.#pass(value, this.#ctx, part);
    const { ask, untilChecked } = this.#questions = guardQuestions(call, (params) => pass(params, "question"));
    const { say, said } = this.#messages = guardMessages(pass, (error) => core.report(error, call));
    await noteGuards(call);
    // Never remove the guard, because work that the handler has not awaited can still send messages.
    const noteResult = (result: Result) => void (this.#noted = JSON.stringify(result));
    call.guardSent({ ask, say, said, noteResult });
    try {
      return await run();
    } finally {
      await said();
      await untilChecked();
    }
  }

  /** Passes a result through the guards if middleware has changed the result that had passed the guards. */
  async guardChanged(result: Result): Promise<Result> {
    const { call } = this.#run;
    const text = JSON.stringify(result);
    // A middleware that only copies the result changes nothing.
    if (text === this.#noted) return result;
    const given: unknown = JSON.parse(text);
    const passed = toGuardedResult(call, await this.#pass(given, call, "result"));
    return (await lazyWireCheck.load()).checkResult(call, passed, "an output guard");
  }

  // Copy plain data, so that a guard cannot change an object that the handler still uses.
  async #encode(value: unknown, results: EncodedResults): Promise<EncodedValue> {
    if (["string", "boolean", "undefined"].includes(typeof value) || value === null) return { value };
    const text = typeof value === "object" ? toJson(value) : undefined;
    if (text === undefined) {
      ignoreRejections(value);
      return await results.forGuards(value);
    }
    const plain: unknown = JSON.parse(text);
    // A date or a URL is a string in JSON, but it becomes structured content and not text.
    return Object(plain) === plain ? { value: plain } : { value: plain, finish: "scalar" };
  }

  async #pass(given: unknown, ctx: Context<never>, part: OutputPart): Promise<unknown> {
    const { call } = this.#run;
    const { services } = this.#guarded;
    const pass = async (value: unknown, guards: GuardSteps["output"], ctx: Context<never>) => {
      const quiet = this.#toQuiet(ctx);
      for (const guard of guards) {
        const passed = await guard(value, quiet, part);
        // Only `undefined` keeps the value. `null` replaces it, so that a guard can remove a secret.
        if (passed === undefined || passed === value) continue;
        value = passed;
        if (part === "result") this.#changers.add(guard.name);
      }
      return value;
    };
    const passOwn = async (_call: Call, ctx: Context<never> = call) => await pass(given, this.#own, ctx);
    // Outside of the handler, the guards get only services that outlive the call. Errors are excluded, because the
    // creation of such a service may have failed.
    const isOutside = ctx === call && part !== "error" && this.#own.length > 0;
    const own = isOutside && services ? await services.share(passOwn)(call) : await passOwn(call, ctx);
    return this.#outer.length ? await pass(own, this.#outer, call) : own;
  }

  /** Messages of a guard pass no guards, because a guard that awaits its message would wait for itself. */
  #toQuiet(ctx: Context<never>): Context<never> {
    const { call } = this.#run;
    const { log, progress } = this.#direct;
    return new Proxy(ctx, {
      get(target, name) {
        if (name === "log") return log;
        if (name === "progress") return progress;
        if (name === CALL) return call;
        // Use `target` as the receiver, because the getters of a call use its private fields.
        return Reflect.get(target, name, target);
      },
    });
  }

  /** Passes the text of errors through the guards, unless the client gets only an error id. */
  async guardErrors<T>(ctx: Context<never>, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      const { call } = this.#run;
      // Neither a question nor the reason for a cancellation contains text from the handler.
      if (this.#isOpen || call.ended || isQuestion(error) || guardedErrors.has(Object(error))) throw error;
      // The error of a refused question is thrown again when the run ends.
      if (this.#passed && this.#passed[0] === error) throw this.#passed[1];
      const left = await this.#guardError(error, ctx);
      guardedErrors.add(left);
      this.#passed = [error, left];
      throw left;
    }
  }

  async #guardError(error: unknown, ctx: Context<never>): Promise<Error> {
    const { call, core } = this.#run;
    const { method, subject } = call;
    let words = error;
    if (!isToolError(error) && !isMcpError(error)) {
      const reported = core.report(this.#explain(error), { method, subject });
      if (isResultError(error)) return reported;
      // `mapError` describes the error for the client. Without a description, the client gets only an error id.
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
      // A ToolError or McpError from a guard replaces the error. Any other error from a guard is a fault, and the
      // client gets only an error id, because the guard has not checked the text.
      if (isToolError(failed) || isMcpError(failed)) return failed;
      return toUnexpected(core.report(failed, { method, subject }), call);
    }
  }

  /** Names the layers that have changed an invalid result, because the handler may have returned a valid result. */
  #explain(error: unknown): unknown {
    if (!isResultError(error) || !this.#changers.size) return error;
    const names = Array.from(this.#changers, (name) => `"${name}"`).join(", ");
    return new Error(`${Object(error).message} (changed by the layer ${names})`, { cause: error });
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

function toGuardedResult({ method }: Call, left: unknown): unknown {
  if (method !== "tools/call") return left;
  if (typeof left === "string") return { content: [toText(left)] };
  return Array.isArray(left) ? { content: left } : left;
}

const NO_WORDS =
  "Cannot send an error: an output guard returned no message for the error; return a string, a result or the error";

function toUnexpected(reported: McpError, { method }: Call): Error {
  if (method !== "tools/call") return reported;
  return new ToolError(toFailedText(reported));
}

function toError(left: unknown): ToolError {
  if (typeof left === "string") return new ToolError(left);
  // This is a full result. Its content blocks are checked before they are sent.
  if (isObject(left) && Array.isArray(left.content)) return new ToolError(left.content);
  throw new TypeError(NO_WORDS);
}

// Maximum number of nested levels, equal to the limit of the built-in encoders.
const MAX_DEPTH = 128;

class OwnEncoder {
  readonly #encoders: readonly Encoder[];
  /** The values around the value that is being encoded, to detect a value that contains itself. */
  readonly #open = new Set<object>();

  constructor(encoders: readonly Encoder[]) {
    this.#encoders = encoders;
  }

  /** Returns `value` itself if no encoder applies to the value or to any of its parts. */
  encode(value: unknown): unknown {
    if (value === null || ["string", "number", "boolean", "undefined"].includes(typeof value)) return value;
    const encoder = this.#encoders.find((each) => readSyncVerdict(each.test(value), "an encoder's test()"));
    // Encoders also apply to the parts of an encoder's result, but not to the result itself. The cast is safe, because
    // `test` accepted the value.
    const made = encoder ? encoder.encode(value as never) : value;
    if (typeof made !== "object" || made === null) return made;
    // The built-in encoders reject values that are too deep or contain themselves.
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
    // Values with a toJSON() method convert themselves. The built-in encoders read Node.js streams.
    if ("toJSON" in value || "pipe" in value || ArrayBuffer.isView(value)) return value;
    // The cast is safe, because the test found the async iterator.
    if (Symbol.asyncIterator in value) return this.#iterate(value as AsyncIterable<unknown>);
    const tag = Object.prototype.toString.call(value);
    if (tag === "[object Generator]") return this.#iterateNow(value as Iterable<unknown>); // The cast is safe, because the tag identifies a generator.
    if (tag !== "[object Object]") return value;
    const keys = Object.keys(value);
    const parts = this.#encodeAll(Object.values(value));
    return parts ? Object.fromEntries(keys.map((key, i) => [key, parts[i]])) : value;
  }

  /** Returns `undefined` if no encoder applies to any part. */
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
