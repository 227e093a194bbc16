/**
 * Guards of the input and output of handlers, and encoders of the server's own types: the interface between handlers
 * and the code that runs them.
 *
 * @module
 */
import type { Context } from "../call/context.ts";
import type { KnownOptions, OptionRule } from "../call/known_options.ts";
import type { NoServices } from "../call/service.ts";
import type { TextCopy } from "../../protocol/text_option.ts";

/**
 * Checks a validated input. Returns a changed input, or `undefined` to keep the input. Throws a `ToolError` to refuse
 * the call with a text for the model.
 */
export type InputGuard<I = unknown, S = NoServices> = (input: I, ctx: Context<S>) => I | void | Promise<I | void>;

/** The part of an output that a guard checks. */
export type OutputPart = Parameters<OutputGuard>[2];

/**
 * Checks everything that a client receives from a handler: the encoded value, errors, log messages and progress
 * messages. Returns a changed value, or `undefined` to keep the value. Throws a `ToolError` to refuse the call with a
 * text for the model. If the guard throws for a log or progress message, that message is not sent.
 *
 * `part` states what `output` is:
 *
 * - `"result"`: the value of the handler as JSON, or its content blocks.
 * - `"error"`: `{ content, isError: true }` for an error that the model reads, or `{ code, message, data }`.
 * - `"log"`: the data of a log message as JSON.
 * - `"progress"`: the text of a progress message.
 */
export type OutputGuard<O = unknown, S = NoServices> = (
  output: O,
  ctx: Context<S>,
  part: "result" | "error" | "log" | "progress",
) => unknown;

/** Guards. They run in the order of the lists. */
export interface Guards<I = unknown, O = unknown, SI = NoServices, SO = NoServices> {
  /**
   * Guards of the input. They run after the input schema and before the services, so they cannot use services that live
   * for one call.
   */
  readonly input?: readonly InputGuard<I, SI>[];
  /**
   * Guards of the output. They run after encoders, and before the output schema and the text copy. They also check
   * errors, log messages and progress messages of the handler.
   */
  readonly output?: readonly OutputGuard<O, SO>[];
}

/**
 * Converts values of your own type before the built-in conversions, wherever they occur in a result.
 *
 * ```ts
 * import { createServer, type Encoder } from "@x/mcp";
 *
 * class Money {
 *   constructor(readonly cents: number, readonly currency: string) {}
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

/** Guards and encoders of all handlers of a server. */
export interface Filters {
  readonly guards?: HandlerGuards;
  readonly encoders?: readonly Encoder[];
}

/**
 * Runs a handler, and applies encoders and guards to its value. `run` receives a context whose messages pass through
 * the guards.
 */
export type Filter = (
  run: (ctx: Context<never>) => unknown,
  ctx: Context<never>,
  sending: FilteredResult,
) => Promise<unknown>;

/** The parts of a handler that filtering its result needs. */
export interface FilteredResult {
  /** Subject of error messages, such as `tool "add"`. */
  readonly place: string;
  /** The text copy of structured content. */
  readonly text?: TextCopy;
  /** Media type of a resource. `undefined` for other handlers. */
  readonly mimeType?: string;
}

/** Guards, without type parameters. */
export interface HandlerGuards {
  readonly input?: readonly ((input: never, ctx: Context<never>) => unknown)[];
  readonly output?: readonly ((output: never, ctx: Context<never>, part: OutputPart) => unknown)[];
}

/** The names of {@linkcode Guards}. */
export const GUARDS: KnownOptions<keyof Guards> = {
  names: { input: "functions", output: "functions" },
  hints: { before: "input", after: "output" },
};

/** The rule for the option `encoders`. */
export const ENCODERS: OptionRule = {
  findProblem(value) {
    const isEncoder = (each: unknown) =>
      [Object(each).test, Object(each).encode].every((part) => typeof part === "function");
    if (!Array.isArray(value)) return "is not a list; it must be a list of encoders";
    if (!Array.from(value).every(isEncoder)) {
      return "contains an item without test() and encode(); each encoder needs both";
    }
  },
};
