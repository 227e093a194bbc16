/**
 * The interface of extensions, which add behavior to a server or to single handlers.
 *
 * @see specification/2026-07-28/basic (Extensions)
 */
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { LogLevel } from "../../core/protocol/types.ts";
import type { Context, OnceOptions, ProgressOptions } from "../call/context.ts";
import type { Engine } from "./era.ts";
import type { Lives, Published } from "../call/lives.ts";
import { withAlso, withoutSpares } from "../visibility/registry.ts";
import type { Awaitable, StoreInternals } from "./store.ts";
import type { CancelReason } from "../call/observer.ts";
import type { JsonSchema } from "../../core/schema/schema.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { KeptBytes, ServerHandle, StartPart } from "./server_handle.ts";

/**
 * Runs the handler. Can be called only once. Resolves to the handler's result, or rejects with the error that the
 * client would receive. The functions in `to` receive the handler's messages. Messages without a matching function are
 * sent to the client.
 */
export type Next = (to?: Redirect) => Promise<Result>;

/** The call that a layer of an extension wraps. The methods can be destructured. */
export interface WrappedCall {
  /** The handler that has the layer. */
  readonly handler: {
    /** Name of a tool or a prompt, URI of a resource, or URI template of a resource template. */
    readonly name: string;
    /** JSON Schema of the tool's or prompt's input, if any. */
    readonly inputSchema?: JsonSchema;
    /** JSON Schema of the tool's output, if any. */
    readonly outputSchema?: JsonSchema;
  };
  /** The object that `start` of the extension received. `undefined` if the extension has no `start` function. */
  readonly server: ServerHandle | undefined;
  /** The handler's context. `ctx.signal` aborts when the handler should stop. */
  readonly ctx: Context;
  /** Aborts when the client cancels the request or disconnects before the response. */
  readonly signal: AbortSignal;
  /** Set if a server extension made the call. `data` is the value that the extension passed. */
  readonly internal?: { readonly data: unknown };
  /**
   * Settings that the client declared for the extension. Not verified. `undefined` if the client did not declare the
   * extension, or if the protocol revision lacks the extension's methods. In that case, return the result of `next()`
   * unchanged.
   */
  readonly declared: Params | undefined;
  /**
   * URIs of the resources that the handler has read so far with `ctx.readResource`, if not every caller may read them.
   * A text if there are too many. If output guards check the handler's output, the list also has an entry for the
   * caller, because another caller might not get the same output. If the extension gives the handler's result or
   * questions to later requests, pass this value to {@linkcode ServerHandle.check}.
   */
  readonly reads: readonly string[] | string;
  /** Resolves when the handler starts, after the input was validated. Never resolves if the call fails before. */
  untilRun(): Promise<void>;
  /**
   * Whether the call runs to its end within another call: a handler makes it, or a call within a layer of the same
   * extension passes it on for the client. Only in the first case, `ctx.outer` is set.
   */
  readonly isInner: boolean;
  /** Whether the client has a session. In revisions with sessions, {@linkcode WrappedCall.result} throws. */
  readonly hasSession: boolean;
  /**
   * Whether the caller has no principal, but all scopes, because the caller started the server or runs in the same
   * process. Pass the value to {@linkcode ServerHandle.call} to run the handler again for this caller.
   */
  readonly hasAllScopes: boolean;
  /**
   * Identifies a caller without a principal in the limits per client, by its address. All callers without an address
   * count as one client. Pass the value to {@linkcode ServerHandle.call} to run the handler again for this caller.
   * `undefined` if the caller has a principal.
   */
  readonly account?: string;
  /**
   * Seals the private values that other parts of the server have attached to the caller's principal, so that
   * {@linkcode ServerHandle.call} can run the handler again with these values. Resolves to `undefined` if there are none.
   */
  sealAttached(): Promise<string | undefined>;
  /**
   * Whether the handler is asking the client a question. In that case, return the result of `next` unchanged, so that
   * the client receives the question.
   */
  readonly isAsking: boolean;
  /**
   * Lets the handler continue after the response. The handler then has its own timeout and signal, and its memory is
   * charged separately. Only `cancel`, the timeout and server shutdown abort this signal. The handler's messages are
   * dropped unless `next` redirects them. `next` still settles with the outcome.
   *
   * A detached handler counts towards `limits.calls.detached` instead of `limits.calls.running`, so the client can
   * still send the requests that answer the handler's questions or cancel the handler.
   *
   * @throws {TypeError} if `isAsking` is `true`.
   * @throws {McpError} with code -31503 if the limit is reached, or if the server is closing.
   */
  detach(options?: DetachOptions): void;
  /**
   * The reason why the handler was cancelled. `undefined` if the handler was not cancelled. After a timeout or a
   * cancellation, `next` rejects with `ctx.signal.reason`, whose `why` is the same reason.
   */
  readonly why: CancelReason | undefined;
  /** Cancels the handler: aborts `ctx.signal` with this message. `next` rejects immediately with the reason. */
  cancel(message?: string): void;
  /**
   * Counts bytes that the extension stores for the client against the client's limits, until `end()` is called on the
   * returned object or the bytes expire. Returns `undefined` if there is no room. All extensions together can store at
   * most 128 MiB for all clients, and 32 MiB for one client.
   */
  keep(bytes: number): KeptBytes | undefined;
  /**
   * Creates a result with a `resultType` that the extension defines. The server removes such a `resultType` from a
   * result that this method did not create.
   *
   * @throws {TypeError} if the client did not declare the extension, or has a session.
   */
  result(resultType: string, fields: Params): Result;
}

/**
 * Called when a topic gets its first subscriber on this instance. May return a function that is called when the last
 * subscription has ended. `ctx` is the context of the first subscriber's request. `server` is the object that was passed
 * to `start`.
 */
export type WatchTopic = (
  topic: string,
  ctx: Context,
  server: ServerHandle | undefined,
) => Awaitable<(() => unknown) | void>;

/**
 * The functions with which an extension serves the topics of a key in `subscriptions/listen`.
 *
 * @internal
 */
export interface TopicParts {
  readonly watch?: WatchTopic;
  /** Returns the current notification of a topic, or `undefined` if there is none. */
  readonly load?: (topic: string, ctx: Context, server: ServerHandle | undefined) => Promise<Published | undefined>;
}

/**
 * The stores to which a notification was written, each with the realms of the servers. Servers with the same store and
 * the same realm are instances of one server, so only the first of these servers writes the notification.
 *
 * @internal
 */
export type WrittenStores = Map<StoreInternals | undefined, Set<string>>;

/**
 * An extension that starts and stops with the server, or that publishes notifications.
 *
 * @internal
 */
export interface Life {
  /** Identifier of the extension, such as `com.example/audit`. */
  readonly id: string;
  /** Name of the part in messages and observer events. Defaults to the name of the extension. */
  readonly name?: string;
  /** See {@linkcode HandleOptions.id}. Defaults to the identifier of the extension. */
  readonly part?: string;
  readonly start?: StartPart;
  /** See {@linkcode HandleOptions.owner}. */
  readonly owner?: string;
  /** The extension's keys in `subscriptions/listen`. */
  readonly keys: ReadonlyMap<string, TopicParts>;
  /** A random id of this object. Another process has another object for the same extension. */
  readonly origin: string;
  /** Functions that `publish` calls, one per server that may have subscribers. */
  readonly servers: Set<(key: string, published: Published, written: WrittenStores) => void>;
  create(engine: Engine): LivesSet;
}

/**
 * The {@linkcode Lives} of a server whose extensions can change.
 *
 * @internal
 */
export interface LivesSet extends Lives {
  /** Stops extensions that are no longer in the set. */
  set(lives: readonly Life[]): void;
}

export function updateLives(engine: Engine): void {
  const { host, registry } = engine;
  const all = registry.handlers.flatMap(withAlso);
  // The cast is safe, because `extension()` created each of these objects.
  const found = withoutSpares(all, all).flatMap(({ [INTERNALS]: { life } }) => life ? [life as Life] : []);
  if (!found.length && !host.lives) return;
  // The cast is safe, because only this function sets `lives`.
  const lives = (host.lives ??= found[0].create(engine)) as LivesSet;
  lives.set(found);
}

/** Options of {@linkcode WrappedCall.detach}. */
export interface DetachOptions {
  /**
   * Milliseconds after which the handler is cancelled, including the time in which the handler waits for answers.
   * Defaults to the handler's `quota({ timeoutMs })`, or otherwise to `limits.calls.timeoutMs`, which do not include
   * this time.
   */
  readonly timeoutMs?: number;
}

/**
 * Functions that receive a handler's messages instead of the client. The last parameter of each function performs the
 * default behavior: it sends the message, asks the client, or stores the value. If a function is omitted, the server
 * performs the default behavior. After the response, the default behavior drops messages and rejects questions.
 *
 * Errors thrown by `progress` and `log` are reported to the observer, and do not reach the handler.
 */
export interface Redirect {
  /** Receives progress, even if the client did not request it. Not called for a value that does not increase. */
  readonly progress?: (progress: number, options: ProgressOptions, direct: () => Promise<void>) => void;
  /** Receives log messages at or above the client's log level. */
  readonly log?: (level: LogLevel, data: unknown, logger: string | undefined, direct: () => Promise<void>) => void;
  /**
   * Asks the client a question, and returns the client's unchanged answer. The server then validates the answer. Called
   * only if the client has the required capabilities. If the handler repeats a question with the same key, the handler
   * gets the same answer, and this function is not called again.
   */
  readonly ask?: (question: RedirectedQuestion, direct: () => Promise<unknown>) => Promise<unknown>;
  /**
   * Computes a JSON value once per key, for `ctx.once`. By default, in memory until the handler ends. `options` are those
   * of `ctx.once`.
   */
  readonly once?: (
    key: string,
    make: () => unknown,
    direct: () => Promise<unknown>,
    options?: OnceOptions,
  ) => Promise<unknown>;
}

/** An elicitation, sampling or roots request to the client. */
export interface RedirectedQuestion {
  /** Key of the question within the call. */
  readonly key: string;
  /** Method of the request, such as `elicitation/create`. */
  readonly method: string;
  /** Parameters of the request. */
  readonly params: Params;
  /**
   * Validates an answer. Resolves to `undefined` if the answer is valid, and otherwise to a description of the problem.
   */
  check(answer: unknown): Promise<string | undefined>;
}
