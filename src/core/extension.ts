/**
 * The contract of extensions: what they add to a server, and to single handlers.
 *
 * @see specification/2026-07-28/basic (Extensions)
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { LogLevel, Meta } from "../protocol/types.ts";
import type { Context, ProgressOptions } from "./call/context.ts";
import type { CancelReason } from "./call/observer.ts";
import type { HandlerExtensions } from "./visibility/feature.ts";
import { INTERNALS } from "./call/internals.ts";
import { readRequirements, type Requirement } from "./call/question.ts";

/** Additions of an extension to one handler: an entry of `extensions` of a tool, a resource or a prompt. */
export interface Attribute {
  /** Id of the extension. */
  readonly extension: string;
  /**
   * Internal state for the handler.
   *
   * @ignore
   */
  readonly [INTERNALS]: AttributeInternals;
}

/**
 * Internal state of an attribute.
 *
 * @internal
 */
export interface AttributeInternals {
  /** Id of the extension. */
  readonly id: string;
  /** Whether the extension has methods or keys of subscriptions. */
  readonly hasMethods: boolean;
  readonly options: AttributeOptions;
  /** Combines the attributes of one handler. Throws if one of them is none, or two are in conflict. */
  combine(attributes: readonly Attribute[], handler: ExtensibleHandler): HandlerExtensions;
}

/**
 * A handler that gets attributes.
 *
 * @internal
 */
export interface ExtensibleHandler {
  /** Kind and name of the handler. */
  readonly place: string;
  readonly requires?: readonly string[];
  readonly _meta?: Meta;
}

/** Options of an attribute. All are optional. */
export interface AttributeOptions {
  /**
   * Metadata for the entry of the handler in its list. The `_meta` of the handler takes precedence. Two attributes of a
   * handler cannot set the same key.
   */
  readonly list?: Meta;
  /**
   * Whether the client must have declared the extension. A call from any other client fails with code -32021, over HTTP
   * with status 400, and the handler does not run. Defaults to `false`.
   */
  readonly required?: boolean;
  /**
   * Wraps each call of the handler: middleware, validation of the input, the handler and the encoding of its value. The
   * first attribute of a handler is the outermost.
   */
  readonly wrap?: Wrap;
  /**
   * Checks the handlers of the server when they change. Returns what is wrong, such as `no resource "ui://chart"`, which
   * is thrown as a `TypeError` with the name of the handler.
   */
  readonly check?: (server: ServerHandlers) => string | undefined;
}

/** The handlers of a server, for {@linkcode AttributeOptions.check}. */
export interface ServerHandlers {
  /** Tests whether a handler is registered. `key` is its name, or the URI of a resource. */
  has(kind: "tool" | "resource" | "prompt", key: string): boolean;
}

/** Wraps a call. */
export type Wrap = (call: WrappedCall, next: Next) => Result | Promise<Result>;

/**
 * Runs the handler once, and returns its result or throws an error for the client. What the handler sends goes to the
 * functions of `to`, and otherwise to the client.
 */
export type Next = (to?: Redirect) => Promise<Result>;

/** A call within an attribute. Its methods work when destructured. */
export interface WrappedCall {
  /** The context that the handler receives. Its `signal` aborts when the handler should stop. */
  readonly ctx: Context;
  /** Aborts when the client cancels the request or disconnects before the response. */
  readonly signal: AbortSignal;
  /**
   * Settings of the client for the extension, unverified. `undefined` if the client did not declare it, or if the
   * revision of the call lacks the methods of the extension. Then run the handler with `next`.
   */
  readonly declared: Params | undefined;
  /** Resolves when the input is valid and the handler starts. It never resolves if the call fails before. */
  untilRun(): Promise<void>;
  /**
   * Whether the client is asked by this request, or will be asked by its response. Then return what `next` returns, so
   * that the client gets the question.
   */
  readonly isAsking: boolean;
  /**
   * Lets the handler go on after the response. It then has a memory charge and a timeout of its own, and a signal that
   * only `cancel`, the timeout and the end of the server abort. Messages of the handler are dropped unless they are
   * redirected. `next` still settles with the outcome.
   *
   * `limits.calls.detached` bounds the number of such handlers. They take no slots of other calls, so that a client can
   * still answer and cancel them.
   *
   * @throws {TypeError} if the client is being asked, see `isAsking`.
   * @throws {McpError} with code -31503 at the limit, or if the server is closing.
   */
  detach(options?: DetachOptions): void;
  /**
   * Why the handler was cancelled. `undefined` while it was not. After a timeout or a cancellation, `next` rejects with
   * the reason of `ctx.signal`, whose `why` is the same.
   */
  readonly why: CancelReason | undefined;
  /** Cancels the handler: aborts its signal with this message. `next` rejects with the reason at once. */
  cancel(message?: string): void;
  /**
   * Creates a result with a `resultType` of the extension. Only results made by this have one.
   *
   * @throws {TypeError} if the client did not declare the extension.
   */
  result(resultType: string, fields: Params): Result;
}

/** Options of {@linkcode WrappedCall.detach}. */
export interface DetachOptions {
  /**
   * Milliseconds after which the handler is cancelled. Defaults to the `timeoutMs` of the handler, which is
   * `limits.calls.timeoutMs` unless it has limits of its own.
   */
  readonly timeoutMs?: number;
}

/**
 * Receives what a handler sends, instead of the client. The last parameter of each function does what would happen
 * without the redirection: it sends the message, asks, or keeps the value. What has no function here goes to the client
 * until its request has a response. After that, messages are dropped, and questions fail.
 *
 * Errors of `progress` and `log` are reported and do not reach the handler.
 */
export interface Redirect {
  /** Receives progress that grows, even if the client did not ask for it. */
  readonly progress?: (progress: number, options: ProgressOptions, direct: () => Promise<void>) => void;
  /** Receives the log messages that the client wants. */
  readonly log?: (level: LogLevel, data: unknown, logger: string | undefined, direct: () => Promise<void>) => void;
  /**
   * Asks the client, and returns its answer. The client has the capabilities that the question needs. A question that
   * the handler repeats under the same key has the same answer, and does not arrive twice.
   */
  readonly ask?: (question: RedirectedQuestion, direct: () => Promise<unknown>) => Promise<unknown>;
  /** Computes a JSON value once per key. Without it, values are kept in memory until the handler ends. */
  readonly once?: (key: string, make: () => unknown, direct: () => Promise<unknown>) => Promise<unknown>;
}

/** A request to the client: elicitation, sampling or roots. */
export interface RedirectedQuestion {
  /** Key of the question within the call. */
  readonly key: string;
  /** Method of the request, such as `elicitation/create`. */
  readonly method: string;
  /** Parameters of the request. */
  readonly params: Params;
  /** Checks an answer. Returns `undefined` if it is valid, and otherwise what is wrong. */
  check(answer: unknown): Promise<string | undefined>;
}

/** Requirements of a handler on its client, and its additions to the list. */
export interface Extended {
  readonly requires?: readonly string[];
  readonly _meta?: Meta;
  readonly extensions?: HandlerExtensions;
}

/**
 * Reads the options of a handler that extensions can add to. `place` names the handler.
 *
 * @throws {TypeError} if a need is unknown, or if an item of `extensions` is no attribute.
 */
export function readExtensions(
  options: {
    readonly requires?: readonly Requirement[];
    readonly _meta?: Meta;
    readonly extensions?: readonly Attribute[];
  },
  place: string,
): Extended {
  const { requires, _meta, extensions } = options;
  const own = { requires: readRequirements(requires, place), _meta };
  if (extensions === undefined || Array.isArray(extensions) && !extensions.length) return own;
  const combine = Array.isArray(extensions) ? extensions[0]?.[INTERNALS]?.combine : undefined;
  if (!combine) throw new TypeError(`Cannot make ${place}: ${NO_ATTRIBUTE}`);
  const combined = combine(extensions, { ...own, place });
  return { ...combined, extensions: combined };
}

/** State of a handler with something else in `extensions`. */
export const NO_ATTRIBUTE = "make its extensions with extension.attribute()";
