/**
 * The interface of extensions, which add behavior to a server or to single handlers.
 *
 * @see specification/2026-07-28/basic (Extensions)
 * @module
 */
import type { Params, Result } from "../protocol/jsonrpc.ts";
import type { LogLevel, Meta } from "../protocol/types.ts";
import type { ChangeNotifier, ClientFacts, Context, Principal, ProgressOptions } from "./call/context.ts";
import type { Engine } from "./era.ts";
import type { Lives, Published } from "./call/lives.ts";
import { withAlso } from "./visibility/registry.ts";
import type { Awaitable, Store } from "./store.ts";
import type { CancelReason } from "./call/observer.ts";
import type { Clock } from "./capacity/timers.ts";
import type { JsonSchema } from "../schema/schema.ts";
import type { Handler, HandlerExtensions } from "./visibility/feature.ts";
import { INTERNALS } from "./call/internals.ts";
import { readRequirements, type Requirement } from "./call/question.ts";

/** What an extension adds to one handler: an entry in the `extensions` option of a tool, a resource or a prompt. */
export interface Attribute {
  /** Identifier of the extension, such as `com.example/audit`. */
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
  /** Identifier of the extension, such as `com.example/audit`. */
  readonly id: string;
  /**
   * Whether the extension is unavailable to clients with sessions, because its methods do not exist in their revisions.
   */
  readonly lacksSessions: boolean;
  readonly options: AttributeOptions;
  /** Creates the extension that the handler at `place` registers. `undefined` if the handler registers none. */
  readonly register?: (place: string) => Handler;
  /**
   * Combines the attributes of one handler. `options` are the options of the handler. Throws if a value is not an
   * attribute, or if two attributes conflict.
   */
  combine(attributes: readonly Attribute[], handler: ExtensibleHandler, options: object): HandlerExtensions;
}

/**
 * A handler that receives attributes.
 *
 * @internal
 */
export interface ExtensibleHandler {
  /** Kind and name of the handler. */
  readonly place: string;
  readonly requires?: readonly string[];
  readonly _meta?: Meta;
}

/** Options of an attribute. All options are optional. */
export interface AttributeOptions {
  /**
   * Metadata for the handler's entry in the list of handlers, such as the list of tools. The `_meta` of the handler
   * takes precedence. Two attributes of a handler must not set the same key.
   */
  readonly list?: Meta;
  /**
   * Whether the client must have declared the extension. A call from any other client fails with code -32021 (over HTTP
   * with status 400), and the handler does not run. Defaults to `false`.
   */
  readonly required?: boolean;
  /**
   * Whether the handler registers the extension, so that it need not be in the list `handlers`. Only for extensions
   * that have only `settings`. Defaults to `false`.
   */
  readonly registers?: boolean;
  /**
   * Wraps each call: middleware, validation of the input, the handler itself, and the encoding of its return value. The
   * first attribute of a handler is the outermost.
   */
  readonly wrap?: Wrap;
  /** Returns the text of a warning for `mcp check`, with a remedy, or `undefined` for no warning. */
  readonly warn?: (handler: {
    /** The function of the handler. */
    readonly run: unknown;
  }) => string | undefined;
  /**
   * Checks the attribute against the server's handlers, whenever the handlers change. Returns a description of the
   * problem, such as `no resource "ui://chart"`. The server throws the description as a `TypeError` with the name of
   * the handler.
   */
  readonly check?: (server: {
    /** Tests whether a handler is registered. `key` is its name, or the URI of a resource. */
    has(kind: "tool" | "resource" | "prompt", key: string): boolean;
  }) => string | undefined;
}

/** Wraps a call. */
export type Wrap = (call: WrappedCall, next: Next) => Result | Promise<Result>;

/**
 * Runs the handler once. Returns its result, or throws an error for the client. Messages of the handler go to the
 * matching functions in `to`. Messages without a matching function go to the client.
 */
export type Next = (to?: Redirect) => Promise<Result>;

/** The handler that has the attribute. */
export interface WrappedHandler {
  /** Name of a tool or a prompt, URI of a resource, or URI template of a resource template. */
  readonly name: string;
  /** JSON Schema of the input of a tool or a prompt, if it has one. */
  readonly inputSchema?: JsonSchema;
  /** JSON Schema of the output of a tool, if it has one. */
  readonly outputSchema?: JsonSchema;
}

/** The call that an attribute wraps. Its methods work when destructured. */
export interface WrappedCall {
  /** The handler. */
  readonly handler: WrappedHandler;
  /** The object that was passed to the extension's `start` function. `undefined` if the extension has no `start`. */
  readonly server: ExtensionServer | undefined;
  /** The context that the handler receives. Its `signal` aborts when the handler should stop. */
  readonly ctx: Context;
  /** Aborts when the client cancels the request or disconnects before the response. */
  readonly signal: AbortSignal;
  /** Set if an extension of the server made the call. `data` is the value that the extension passed. */
  readonly internal?: { readonly data: unknown };
  /**
   * Settings that the client declared for the extension. They are not verified. `undefined` if the client did not
   * declare the extension, or if the revision of the call lacks the extension's methods. In that case, run the handler
   * with `next`.
   */
  readonly declared: Params | undefined;
  /** Resolves when the input is valid and the handler starts. Never resolves if the call fails before that. */
  untilRun(): Promise<void>;
  /** Whether the client has a session. Revisions with sessions do not allow other types of results. */
  readonly hasSession: boolean;
  /**
   * Whether this request or its response asks the client a question. In that case, return the value that `next`
   * returns, so that the client receives the question.
   */
  readonly isAsking: boolean;
  /**
   * Lets the handler continue after the response. The handler then has its own memory charge, timeout and signal. Only
   * `cancel`, the timeout and the closing of the server abort this signal. Messages of the handler are dropped unless
   * they are redirected. `next` still settles with the outcome.
   *
   * `limits.calls.detached` limits the number of such handlers. These handlers take no slots from other calls, so a
   * client can still answer and cancel them.
   *
   * @throws {TypeError} if the client is being asked a question, see `isAsking`.
   * @throws {McpError} with code -31503 at the limit, or if the server is closing.
   */
  detach(options?: DetachOptions): void;
  /**
   * The reason why the handler was cancelled. `undefined` if it was not cancelled. After a timeout or a cancellation,
   * `next` rejects with the reason of `ctx.signal`, which has the same `why`.
   */
  readonly why: CancelReason | undefined;
  /** Cancels the handler: aborts its signal with this message. `next` rejects at once with the reason. */
  cancel(message?: string): void;
  /**
   * Charges the client for bytes that the extension keeps for the client. Returns a function that releases the charge,
   * or `undefined` if there is no room. Extensions keep at most 128 MiB for all clients together, and 32 MiB for one
   * client. The charge also ends when the handler ends.
   */
  keep(bytes: number): (() => void) | undefined;
  /**
   * Creates a result with a `resultType` of the extension. Results that are created in another way have no `resultType`
   * of an extension.
   *
   * @throws {TypeError} if the client did not declare the extension, or has a session, because revisions with sessions
   * have no such results.
   */
  result(resultType: string, fields: Params): Result;
}

/**
 * Starts an extension with its server. May return a function that stops the extension. Called with the first request,
 * or by `server.ready()`. Calls that use the extension wait until it has started.
 */
export type StartExtension = (server: ExtensionServer) => Awaitable<(() => unknown) | void>;

/** The functions of a server that an extension can use. They work when destructured. */
export interface ExtensionServer extends ChangeNotifier {
  /**
   * The store of the server. Its keys, logs and topics are separate from those of other extensions. `undefined` if the
   * server has no store: use `memoryStore()` of `@x/mcp/stores` instead, or refuse to start.
   */
  readonly store?: ExtensionStore;
  /** Seals a JSON value into opaque text. Only this extension of the server can open it, on any instance. */
  readonly seal: (value: unknown) => Promise<string>;
  /**
   * Opens text that `seal` has returned. Returns `undefined` if the text was changed, or was not sealed by this
   * extension of the server.
   */
  readonly open: (text: string) => Promise<unknown>;
  /** Aborts when the server begins to close, or when the extension is removed. */
  readonly signal: AbortSignal;
  /** The clock of the server. */
  readonly clock: Clock;
  /**
   * Runs a handler of the server on behalf of a caller, without a client's request. `allow`, scopes, capabilities,
   * middleware and attributes apply as for a client. Admission, rates and the queue do not apply. The call counts
   * towards `limits.calls.detached`. For observers, its transport is `internal`.
   *
   * @throws {McpError} in the same cases in which a client would get the error.
   */
  readonly call: (request: InternalRequest) => Promise<Result>;
}

/** The part of a server's store that an extension receives. The server closes the store. */
export type ExtensionStore = Omit<Store, "close" | typeof INTERNALS>;

/** The call that {@linkcode ExtensionServer.call} makes. */
export interface InternalRequest {
  /** Method, such as `tools/call`. */
  readonly method: string;
  /** Parameters, as JSON. Defaults to `{}`. */
  readonly params?: Params;
  /** The caller. Defaults to an anonymous caller. */
  readonly principal?: Principal;
  /** The client, such as the `ctx.client` of an earlier call. Defaults to a client without capabilities. */
  readonly client?: ClientFacts;
  /**
   * Any value for the handler's attributes, which read the value as `call.internal.data`. Clients cannot set this
   * value.
   */
  readonly data?: unknown;
  /** Milliseconds after which the call is cancelled. Defaults to the timeout of the handler. */
  readonly timeoutMs?: number;
  /** Signal that cancels the call when it aborts. */
  readonly signal?: AbortSignal;
}

/**
 * Called when a topic gets its first subscriber on this instance. Returns a function that is called when the last
 * subscriber has left. `server` is the object that was passed to `start`.
 */
export type WatchTopic = (
  topic: string,
  server: ExtensionServer | undefined,
) => Awaitable<(() => unknown) | void>;

/**
 * An extension that starts and stops with its server.
 *
 * @internal
 */
export interface Life {
  /** Identifier of the extension, such as `com.example/audit`. */
  readonly id: string;
  readonly start?: StartExtension;
  /** The listen keys of its subscriptions. */
  readonly keys: ReadonlyMap<string, WatchTopic | undefined>;
  /** Functions that `publish` calls, one for each server that may have subscribers. */
  readonly servers: Set<(key: string, published: Published) => void>;
  /** Creates the object that starts and stops all such extensions of a server. */
  create(engine: Engine): LivesSet;
}

/**
 * All extensions that start and stop with one server.
 *
 * @internal
 */
export interface LivesSet extends Lives {
  /** Replaces the set of extensions. Extensions that are no longer in the set are stopped. */
  set(lives: readonly Life[]): void;
}

/** Starts and stops extensions after the handlers of a server have changed. */
export function updateLives(engine: Engine): void {
  const { host, registry } = engine;
  // The cast is safe, because `extension()` created each of these objects.
  const found = registry.handlers.flatMap(withAlso).flatMap(({ [INTERNALS]: { life } }) => life ? [life as Life] : []);
  if (!found.length && !host.lives) return;
  // The cast is safe, because only this function sets `lives`.
  const lives = (host.lives ??= found[0].create(engine)) as LivesSet;
  lives.set(found);
}

/** Options of {@linkcode WrappedCall.detach}. */
export interface DetachOptions {
  /**
   * Milliseconds after which the handler is cancelled. Defaults to the timeout of the handler, which is
   * `limits.calls.timeoutMs` unless its quota has another timeout.
   */
  readonly timeoutMs?: number;
}

/**
 * Functions that receive the messages of a handler instead of the client. The last parameter of each function is the
 * default behavior: it sends the message, asks the client, or keeps the value. Messages without a function here go to
 * the client until its request has a response. After that, messages are dropped, and questions fail.
 *
 * Errors thrown by `progress` and `log` are reported to the observer, and do not reach the handler.
 */
export interface Redirect {
  /** Receives progress that has increased, even if the client did not ask for progress. */
  readonly progress?: (progress: number, options: ProgressOptions, direct: () => Promise<void>) => void;
  /** Receives the log messages that the client wants. */
  readonly log?: (level: LogLevel, data: unknown, logger: string | undefined, direct: () => Promise<void>) => void;
  /**
   * Asks the client, and returns the unchanged answer of the client. The server validates the answer afterwards. The
   * client has the capabilities that the question requires. If the handler repeats a question under the same key, it
   * gets the same answer, and this function is not called again.
   */
  readonly ask?: (question: RedirectedQuestion, direct: () => Promise<unknown>) => Promise<unknown>;
  /** Computes a JSON value once per key. Without this function, values are kept in memory until the handler ends. */
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
  /** Checks an answer. Returns `undefined` if the answer is valid, and otherwise a description of the problem. */
  check(answer: unknown): Promise<string | undefined>;
}

/** What a handler requires of its client, and what it adds to its entry in the list of handlers. */
export interface Extended {
  readonly requires?: readonly string[];
  readonly _meta?: Meta;
  readonly extensions?: HandlerExtensions;
}

/**
 * Reads the options of a handler that can have attributes. `place` names the handler.
 *
 * @throws {TypeError} if a requirement is unknown, or if an item of `extensions` is not an attribute.
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
  const combined = combine(extensions, { ...own, place }, options);
  return { ...combined, extensions: combined };
}

/** Last part of the error message for a value in `extensions` that is not an attribute. */
export const NO_ATTRIBUTE = "make its extensions with extension.attribute()";
