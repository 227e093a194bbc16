/**
 * The contract of extensions: what they add to a server, and to single handlers.
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
  /** Whether clients with sessions lack the methods of the extension, and so cannot use it. */
  readonly lacksSessions: boolean;
  readonly options: AttributeOptions;
  /** Creates the extension that the handler at `place` registers, if it does. */
  readonly register?: (place: string) => Handler;
  /**
   * Combines the attributes of one handler, which was made with `options`. Throws if one of them is none, or two are in
   * conflict.
   */
  combine(attributes: readonly Attribute[], handler: ExtensibleHandler, options: object): HandlerExtensions;
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
   * Whether the handler registers the extension, so that it need not be one of the `handlers`. Only for extensions with
   * nothing but `settings`. Defaults to `false`.
   */
  readonly registers?: boolean;
  /**
   * Wraps each call of the handler: middleware, validation of the input, the handler and the encoding of its value. The
   * first attribute of a handler is the outermost.
   */
  readonly wrap?: Wrap;
  /** Returns what `mcp check` should warn of, and the remedy, or `undefined`. */
  readonly warn?: (handler: {
    /** The function of the handler. */
    readonly run: unknown;
  }) => string | undefined;
  /**
   * Checks the handlers of the server when they change. Returns what is wrong, such as `no resource "ui://chart"`, which
   * is thrown as a `TypeError` with the name of the handler.
   */
  readonly check?: (server: {
    /** Tests whether a handler is registered. `key` is its name, or the URI of a resource. */
    has(kind: "tool" | "resource" | "prompt", key: string): boolean;
  }) => string | undefined;
}

/** Wraps a call. */
export type Wrap = (call: WrappedCall, next: Next) => Result | Promise<Result>;

/**
 * Runs the handler once, and returns its result or throws an error for the client. What the handler sends goes to the
 * functions of `to`, and otherwise to the client.
 */
export type Next = (to?: Redirect) => Promise<Result>;

/** The handler that an attribute belongs to. */
export interface WrappedHandler {
  /** Name of a tool or a prompt, URI of a resource, or URI template. */
  readonly name: string;
  /** JSON Schema of the input of a tool or a prompt, if it has one. */
  readonly inputSchema?: JsonSchema;
  /** JSON Schema of the output of a tool, if it has one. */
  readonly outputSchema?: JsonSchema;
}

/** A call within an attribute. Its methods work when destructured. */
export interface WrappedCall {
  /** The handler. */
  readonly handler: WrappedHandler;
  /** What `start` of the extension has got. `undefined` if the extension has no `start`. */
  readonly server: ExtensionServer | undefined;
  /** The context that the handler receives. Its `signal` aborts when the handler should stop. */
  readonly ctx: Context;
  /** Aborts when the client cancels the request or disconnects before the response. */
  readonly signal: AbortSignal;
  /** Set if this extension, or another one of the server, made the call. `data` is what it gave. */
  readonly internal?: { readonly data: unknown };
  /**
   * Settings of the client for the extension, unverified. `undefined` if the client did not declare it, or if the
   * revision of the call lacks the methods of the extension. Then run the handler with `next`.
   */
  readonly declared: Params | undefined;
  /** Resolves when the input is valid and the handler starts. It never resolves if the call fails before. */
  untilRun(): Promise<void>;
  /** Whether the client has a session, whose revisions have no results of other types. */
  readonly hasSession: boolean;
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
   * Charges the client with bytes that the extension keeps for it. Returns a function that gives them back, or `undefined`
   * if there is no room: extensions keep 128 MiB for all clients, of which one client may have a quarter. It works as long
   * as the handler runs.
   */
  keep(bytes: number): (() => void) | undefined;
  /**
   * Creates a result with a `resultType` of the extension. Only results made by this have one.
   *
   * @throws {TypeError} if the client did not declare the extension, or has a session, whose revisions have no such
   * results.
   */
  result(resultType: string, fields: Params): Result;
}

/**
 * Starts an extension with its server. Returns the function that stops it, or nothing. It is called with the first
 * request, or with `server.ready()`. Calls that concern the extension wait until it has started.
 */
export type StartExtension = (server: ExtensionServer) => Awaitable<(() => unknown) | void>;

/** What an extension can do with its server. Its methods work when destructured. */
export interface ExtensionServer extends ChangeNotifier {
  /**
   * The store of the server, with keys, logs and topics of this extension alone. `undefined` if the server has none:
   * then use `memoryStore()` of `@x/mcp/stores`, or refuse to start.
   */
  readonly store?: ExtensionStore;
  /** Seals a JSON value into an opaque text, which only this extension of the server, on any instance, can open. */
  readonly seal: (value: unknown) => Promise<string>;
  /** Opens what `seal` has made. Returns `undefined` if the text was changed, or was sealed by anybody else. */
  readonly open: (text: string) => Promise<unknown>;
  /** Aborts when the server begins to close, or the extension is removed. */
  readonly signal: AbortSignal;
  /** The clock of the server. */
  readonly clock: Clock;
  /**
   * Runs a handler of the server for a caller, without a request of a client. `allow`, scopes, capabilities, middleware
   * and attributes hold as for a client. Admission, rates and the queue do not. The call takes a place of
   * `limits.calls.detached`. Observers see the transport `internal`.
   *
   * @throws {McpError} that a client would get.
   */
  readonly call: (request: InternalRequest) => Promise<Result>;
}

/** The store of a server, as an extension sees it. The server closes it. */
export type ExtensionStore = Omit<Store, "close" | typeof INTERNALS>;

/** A call of {@linkcode ExtensionServer.call}. */
export interface InternalRequest {
  /** Method, such as `tools/call`. */
  readonly method: string;
  /** Parameters, as JSON. Defaults to `{}`. */
  readonly params?: Params;
  /** The caller. Defaults to none. */
  readonly principal?: Principal;
  /** The client, such as the `ctx.client` of an earlier call. Defaults to a client without capabilities. */
  readonly client?: ClientFacts;
  /** Anything for the attributes of the handler, which find it as `call.internal.data`. No client can set it. */
  readonly data?: unknown;
  /** Milliseconds after which the call is cancelled. Defaults to the time of the handler. */
  readonly timeoutMs?: number;
  /** Cancels the call when it aborts. */
  readonly signal?: AbortSignal;
}

/**
 * Called when a topic gets its first subscriber on this instance. Returns a function for when it has none any more.
 * `server` is what `start` has got.
 */
export type WatchTopic = (
  topic: string,
  server: ExtensionServer | undefined,
) => Awaitable<(() => unknown) | void>;

/**
 * An extension that lives as long as its server.
 *
 * @internal
 */
export interface Life {
  /** Id of the extension. */
  readonly id: string;
  readonly start?: StartExtension;
  /** The keys of its subscriptions. */
  readonly keys: ReadonlyMap<string, WatchTopic | undefined>;
  /** What `publish` calls: one function for each server that somebody may listen to. */
  readonly servers: Set<(key: string, published: Published) => void>;
  /** Creates what keeps all such extensions of a server. */
  create(engine: Engine): LivesSet;
}

/**
 * All such extensions of a server.
 *
 * @internal
 */
export interface LivesSet extends Lives {
  /** Replaces the extensions. Those that are gone are stopped. */
  set(lives: readonly Life[]): void;
}

/** Opens, adds and removes the lives of the extensions among the handlers of a server. */
export function updateLives(engine: Engine): void {
  const { host, registry } = engine;
  // `extension()` made each of them.
  const found = registry.handlers.flatMap(withAlso).flatMap(({ [INTERNALS]: { life } }) => life ? [life as Life] : []);
  if (!found.length && !host.lives) return;
  // Only this function sets it.
  const lives = (host.lives ??= found[0].create(engine)) as LivesSet;
  lives.set(found);
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
   * Asks the client, and returns its answer as the client sent it, which is then checked. The client has the capabilities
   * that the question needs. A question that the handler repeats under the same key has the same answer, and does not
   * arrive twice.
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
  const combined = combine(extensions, { ...own, place }, options);
  return { ...combined, extensions: combined };
}

/** State of a handler with something else in `extensions`. */
export const NO_ATTRIBUTE = "make its extensions with extension.attribute()";
