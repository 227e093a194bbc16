/**
 * The interface of guards, which check the input and output of handlers, and of encoders, which convert values of
 * custom types.
 *
 * @module
 */
import type { Context } from "../call/context.ts";
import type { KnownOptions, OptionRule } from "../call/known_options.ts";
import type { NoServices } from "../call/service.ts";
import type { TextCopy } from "../../protocol/text_option.ts";

/**
 * Checks an input after its validation. Returns a changed input, or `undefined` to leave the input unchanged. Throw a
 * `ToolError` to refuse the call with a message for the model.
 */
export type InputGuard<I = unknown, S = NoServices> = (input: I, ctx: Context<S>) => I | void | Promise<I | void>;

/** The kind of output that a guard checks. */
export type OutputPart = Parameters<OutputGuard>[2];

/**
 * Checks everything that a client receives from a handler and from the handler's middleware and services: the encoded
 * value, errors, questions, log messages and progress messages. Returns a changed value, or `undefined` to leave the
 * value unchanged. Throw a `ToolError` to refuse the call with a message for the model, also if the handler catches the
 * error of its question. If the guard throws for a log or progress message, the server drops this message, and the
 * handler continues. Messages that the guard itself sends with `ctx` pass no guards.
 *
 * `part` states what `output` is:
 *
 * - `"result"`: the handler's return value as JSON, or its content blocks.
 * - `"error"`: `{ content, isError: true }` for an error that the model reads, or `{ code, message, data }`.
 * - `"log"`: a log message's data as JSON.
 * - `"progress"`: the text of a progress message.
 * - `"question"`: the params of a request to the client as JSON: `{ message, requestedSchema }` or
 *   `{ mode: "url", message, url }` for an elicitation, or `{ messages, systemPrompt, … }` for sampling. A guard cannot
 *   add members. The answer counts only for the changed question, so always return the same change for the same question.
 */
export type OutputGuard<O = unknown, S = NoServices> = (
  output: O,
  ctx: Context<S>,
  part: "result" | "error" | "log" | "progress" | "question",
) => unknown;

/** Guards for the input and the output. The guards in a list run in the order of the list. */
export interface Guards<I = unknown, O = unknown, SI = NoServices, SO = NoServices> {
  /**
   * Input guards, which run after the input was validated and before services are created. Therefore input guards
   * cannot use services that live for one call.
   */
  readonly input?: readonly InputGuard<I, SI>[];
  /**
   * Output guards, which run after the encoders, and before the output is validated and copied to text. Output guards
   * also check the handler's errors, questions, log messages and progress messages.
   */
  readonly output?: readonly OutputGuard<O, SO>[];
}

/**
 * Converts values of a custom type, at any place in a result, before the built-in conversions.
 *
 * ```ts
 * import { createServer, type Encoder } from "@x/mcp";
 *
 * class Money {
 *   readonly cents: number;
 *   readonly currency: string;
 *
 *   constructor(cents: number, currency: string) {
 *     this.cents = cents;
 *     this.currency = currency;
 *   }
 * }
 * const money: Encoder = {
 *   test: (value) => value instanceof Money,
 *   encode: ({ cents, currency }: Money) => `${(cents / 100).toFixed(2)} ${currency}`,
 * };
 * export default createServer({ name: "shop", version: "1.0.0", encoders: [money] });
 * ```
 */
export interface Encoder {
  /** Tests whether this encoder converts a value. Not called for strings, numbers, booleans, `null` and `undefined`. */
  readonly test: (value: unknown) => boolean;
  /** Converts a value that passed the test to any value that a handler may return. Must be synchronous. */
  readonly encode: (value: never) => unknown;
}

/** Guards and encoders for all handlers of a server. */
export interface Filters {
  readonly guards?: HandlerGuards;
  readonly encoders?: readonly Encoder[];
}

/** Runs a handler with its context, and applies encoders and output guards to the handler's value. */
export type Filter = (
  run: (ctx: Context<never>) => unknown,
  ctx: Context<never>,
  sending: FilteredResult,
) => Promise<unknown>;

/** The facts about a handler that are required to filter its result. */
export interface FilteredResult {
  /** Kind and name of the handler for error messages, such as `tool "add"`. */
  readonly place: string;
  /** The format of the text copy of structured content. */
  readonly text?: TextCopy;
  /** Media type of a resource. `undefined` for tools and prompts. */
  readonly mimeType?: string;
}

/** {@linkcode Guards} without type parameters. */
export interface HandlerGuards {
  readonly input?: readonly ((input: never, ctx: Context<never>) => unknown)[];
  readonly output?: readonly ((output: never, ctx: Context<never>, part: OutputPart) => unknown)[];
}

export const GUARDS: KnownOptions<keyof Guards> = {
  names: { input: "functions", output: "functions" },
  hints: { before: "input", after: "output" },
};

export const ENCODERS: OptionRule = {
  findProblem(value) {
    const isEncoder = (each: unknown) =>
      [Object(each).test, Object(each).encode].every((part) => typeof part === "function");
    if (!Array.isArray(value)) return "must be a list; write it in brackets";
    if (!Array.from(value).every(isEncoder)) {
      return "contains an item without test() and encode(); each encoder needs both";
    }
  },
};
