/**
 * The interface of the code that runs guards, which check the input and output of handlers, and of encoders, which
 * convert values of custom types.
 */
import type { Context } from "../call/context.ts";
import type { OptionRule } from "../../core/known_options.ts";
import type { TextCopy } from "../../core/protocol/text_option.ts";

/**
 * The kind of output that an output guard receives:
 *
 * - `"result"`: the handler's return value as JSON, or its content blocks.
 * - `"error"`: `{ content, isError: true }` for an error that the model reads, or `{ code, message, data }`.
 * - `"log"`: a log message's data as JSON.
 * - `"progress"`: the text of a progress message.
 * - `"question"`: the params of a request to the client as JSON: `{ message, requestedSchema }` or
 *   `{ mode: "url", message, url }` for an elicitation, or `{ messages, systemPrompt, … }` for sampling. A guard cannot
 *   add members. The answer counts only for the changed question, so always return the same change for the same question.
 */
export type OutputPart = "result" | "error" | "log" | "progress" | "question";

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

export type Filter = (
  run: (ctx: Context<never>) => unknown,
  ctx: Context<never>,
  sending: FilteredResult,
) => Promise<unknown>;

export interface FilteredResult {
  /** Kind and name of the handler for error messages, such as `tool "add"`. */
  readonly place: string;
  /** The format of the text copy of structured content. */
  readonly text?: TextCopy;
  /** Media type of a resource. `undefined` for tools and prompts. */
  readonly mimeType?: string;
  /** Gets the handler's value before the output guards, if there are output guards. */
  readonly keep?: (encoded: EncodedValue) => void;
  /** The value of an earlier run, to pass through the output guards instead of running the handler. */
  readonly kept?: EncodedValue;
}

/** The value of a handler before the output guards. Contains only JSON. */
export interface EncodedValue {
  /** `undefined` if the handler returned nothing. */
  readonly value?: unknown;
  /**
   * How to build the result from the value that the guards return: `copy` adds the text copy of structured content with
   * media, and `scalar` makes a string structured content.
   */
  readonly finish?: "copy" | "scalar";
  /** Media type of the text of a resource, if the handler returned a media type with the text. */
  readonly mimeType?: string;
}

export interface GuardSteps {
  readonly input: readonly ((input: unknown, ctx: Context<never>) => unknown)[];
  readonly output: readonly ((output: unknown, ctx: Context<never>, part: OutputPart) => unknown)[];
}

/** The steps `onInput` and `onOutput` of the layers around a handler. */
export interface HandlerGuards {
  /** Steps of layers of the handler and of its groups. */
  readonly own: GuardSteps;
  /** Steps of layers of the server. They get no services, so that they can refuse a call before services are created. */
  readonly outer: GuardSteps;
  /** Whether middleware can change a result that has passed the output guards. */
  readonly isWrapped?: boolean;
}

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
