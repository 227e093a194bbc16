/**
 * The handle of a server, which the server gives to its parts when they start.
 */
import type { INTERNALS } from "../../core/internals.ts";
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { ChangeNotifier, ClientInfo, Context, Principal } from "../call/context.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import type { Clock } from "../../core/timers.ts";
import type { Awaitable, StoreView } from "./store.ts";

/** Bytes that are counted against a client's limits. */
export interface KeptBytes {
  /** Adds to the bytes. Returns `false` without a change if there is no room. */
  grow(bytes: number): boolean;
  /** Changes the number of bytes. Returns `false` without a change if there is no room. */
  resize(bytes: number): boolean;
  /** Releases the bytes after `ttlMs` milliseconds, rounded up to a whole minute at most. Replaces an earlier expiry. */
  expireIn(ttlMs: number): void;
  /** Releases the bytes. Does nothing if they have already been released. */
  end(): void;
}

/**
 * Starts a part of a server, such as an extension or an authentication. Called on the first request, or by
 * `server.ready()`. May return a function that stops the part. Requests that need the part wait until it has started.
 */
export type StartPart = (server: ServerHandle) => Awaitable<(() => unknown) | void>;

/**
 * The server, as one of its parts sees it, such as an extension or an authentication. The methods can be destructured.
 */
export interface ServerHandle extends ChangeNotifier {
  /**
   * The server's store. Each part has separate keys, logs and topics. Layers with the same name are one part. `undefined`
   * if the server has no store. In that case, use `memoryStore()` from `@x/mcp/stores`, or throw from `start`.
   */
  readonly store?: ServerStores;
  /**
   * Seals a JSON value into opaque text. Only the same part of the same server can open the text, on any instance.
   */
  readonly seal: (value: unknown) => Promise<string>;
  /** Opens text from `seal`, or resolves to `undefined` if the text was changed or sealed by another part or server. */
  readonly open: (text: string) => Promise<unknown>;
  /**
   * Checks whether the caller of a request could call a handler now, and read the resources in `reads`. `allow`,
   * disabled handlers and scopes apply as for a call, but the handler does not run, and the client's capabilities do not
   * matter. Use this function when a client refers to the work of an earlier call, such as the result of a task, because
   * the caller may have lost the right to call the handler since.
   *
   * @throws {McpError} the error that a client would receive: code -31403 if the caller lacks a scope, and otherwise
   * the error for an unknown handler.
   * @throws {TypeError} if the context does not belong to a call, such as a copy of a context.
   */
  readonly check: (ctx: Context<unknown>, call: HandlerCall) => Promise<void>;
  /**
   * Counts bytes that the part stores for the request to which a context belongs. Works like
   * {@linkcode WrappedCall.keep}, and has the same limits. Use it for the values that `store.by(ctx)` writes.
   *
   * @throws {TypeError} if the context does not belong to a call, such as a copy of a context.
   */
  readonly keep: (ctx: Context<unknown>, bytes: number) => KeptBytes | undefined;
  /**
   * Attaches a private value to a principal, such as the access token of the caller. Returns a frozen copy of the
   * principal, which `authenticate` must return. Only parts with this name can read the value, with `attached`: it is not
   * in `ctx.principal`, logs and observer events. Servers of one process that pass a principal on share its values. A
   * task that another process resumes has the value too. The value must be JSON.
   *
   * @throws {TypeError} if the principal is invalid, or the value is not JSON.
   */
  readonly attach: <P extends Principal>(principal: P, value: unknown) => P;
  /**
   * Returns the value that this part has attached to the caller's principal, or `undefined` if there is none. Values of
   * other parts, such as the value of an authentication for a layer, are `undefined` too.
   */
  readonly attached: (ctx: Pick<Context<unknown>, "principal">) => unknown;
  /**
   * Marks an id as used, so that a caller can use it only once, on all instances with the same store. Resolves to
   * `"new"` for the first use, and to `"used"` for each further use. Resolves to `"too-old"` if the id was created before
   * the newest id that the server has forgotten for this key, because it remembers a limited number of ids, or before the
   * store lost its data, or if the principal's other keys have used up the number. Resolves to `"unknown"` if the store
   * does not respond, or the principal has used up its share of the store. Accept only `"new"`.
   *
   * Rejects with a `TypeError` if a member of the argument is missing or invalid.
   */
  readonly markUsed: (use: {
    /** The id, such as the `jti` of a proof. Distinguishes all ids that the part marks for the principal. */
    readonly id: string;
    /** Id of the principal that uses the id. Its ids count towards its share of the store. */
    readonly principal: string;
    /**
     * The device, the app or the cryptographic key with which the principal has created the id. A key that uses too many
     * ids, or whose clock is wrong, affects no other key of the principal. By default, all ids share one key.
     */
    readonly key?: string;
    /** Time at which the id was created, in milliseconds since 1970. Its clock may be at most 5 seconds behind. */
    readonly at: number;
    /** Milliseconds from `at` after which you do not accept the id, even if unused. At most 86,400,000, one day. */
    readonly ttlMs: number;
  }) => Promise<"new" | "used" | "too-old" | "unknown">;
  /**
   * Returns the server's value for `key`. Calls `make` to create the value if the server has none. All parts of the
   * server share the values, and the value exists as long as the server and the key.
   */
  readonly slot: <T extends object>(key: object, make: () => T) => T;
  /** The server's handlers. The methods can be destructured. */
  readonly handlers: {
    /**
     * Tests whether a handler is registered, also if it is disabled. `key` is the name of a tool or prompt, or the URI
     * of a resource. Returns `true` for each tool or prompt if the server has a provider of tools or prompts, because a
     * provider finds handlers only for a caller.
     */
    readonly has: (kind: "tool" | "resource" | "prompt", key: string) => boolean;
    /**
     * Calls `onChange` after handlers were added or removed. Handlers that are replaced are removed and added in one
     * change. Returns a function that stops these calls.
     */
    readonly watch: (onChange: () => void) => () => void;
  };
  /** Reports a problem to the server's author: passes the error to `observer.fault`. */
  readonly report: (error: unknown) => void;
  /** Aborts when the server begins to close, or when the part is removed. */
  readonly signal: AbortSignal;
  /** The server's clock, which tests can control. */
  readonly clock: Clock;
  /**
   * Runs one of the server's handlers for a caller, without a client's request. `allow`, scopes, capabilities,
   * middleware and layers apply as for a client's request. `admit`, rate limits and the queue do not apply. The
   * call counts towards `limits.calls.detached`. In observer events, the transport is `internal`.
   *
   * @throws {McpError} the error that a client would receive.
   */
  readonly call: (request: InternalRequest) => Promise<Result>;
  /**
   * Identifies the server, or the concrete path of the server. All parts share it, and the host of each call has it.
   *
   * @ignore
   */
  readonly [INTERNALS]: object;
}

/**
 * What a server's store keeps for one part of the server. `own` and `by` contain the same keys, logs and topics. The
 * server closes the store.
 *
 * If other processes can use the store, values and entries are sealed for the server, the part, and the key or log.
 * A value that cannot be opened is missing: it was changed, moved, or written with another secret. A `set` with the version
 * `null` replaces such a value. Keys and names can be any text. Keys of values are readable in the store; all other
 * names are hashes.
 */
export interface ServerStores {
  /**
   * The operations that the part makes for itself, such as from timers that `start` has started, or in `authenticate`.
   * They never wait for clients, so their number must not grow with the number of requests without a limit.
   */
  readonly own: StoreView;
  /**
   * Returns the operations for the request to which a context belongs, and for work that continues the request, such as
   * a task. The operations count towards the client's share of the store: a client that sends too many requests delays
   * and refuses only itself. The first operation rejects with code -31503 if the client has used up its share. Later
   * operations wait.
   *
   * @throws {TypeError} if the context does not belong to a call, such as a copy of a context.
   */
  by(ctx: Context<unknown>): StoreView;
}

/** An id that a caller may use only once. */
export type OneTimeId = Parameters<ServerHandle["markUsed"]>[0];

/** Options of {@linkcode ServerHandle.call}. */
export interface InternalRequest {
  /** Method, such as `tools/call`. */
  readonly method: string;
  /** Parameters, as JSON. Defaults to `{}`. */
  readonly params?: Params;
  /** The caller. Defaults to an anonymous caller. */
  readonly principal?: Principal;
  /**
   * Whether a caller without a principal has all scopes, such as {@linkcode WrappedCall.hasAllScopes} of an earlier call.
   * Ignored if `principal` is set. Defaults to `false`.
   */
  readonly hasAllScopes?: boolean;
  /**
   * The {@linkcode WrappedCall.account} of an earlier call, so that the call counts towards the limits of the same
   * client. Ignored if `principal` is set. By default, a call without a principal belongs to a client of its own.
   */
  readonly account?: string;
  /** The client, such as the `ctx.client` of an earlier call. Defaults to a client without capabilities. */
  readonly client?: ClientInfo;
  /**
   * The value of `ctx.session()` in an earlier call, in a list that is empty if the value was `undefined`. By default,
   * the server's `sessionData` function computes the value, but without an HTTP request.
   */
  readonly session?: readonly [unknown?];
  /**
   * The result of {@linkcode WrappedCall.sealAttached} of an earlier call with the same principal. Without it, the
   * principal has the attached values of the `ctx.principal` that was passed, if any.
   */
  readonly attached?: string;
  /**
   * The {@linkcode WrappedCall.reads} of an earlier call, if the handler gets values of this call, such as the values of
   * `ctx.once`. What the handler returns is then not kept for callers without the rights to these resources. Defaults to
   * no resources.
   */
  readonly reads?: readonly string[] | string;
  /** Any value. The layers of extensions can read the value as `call.internal.data`. Clients cannot set this value. */
  readonly data?: unknown;
  /**
   * Milliseconds after which the call is cancelled, including the time in which the handler waits for answers. Defaults
   * to the handler's timeout, which does not include this time.
   */
  readonly timeoutMs?: number;
  /** Cancels the call when the signal aborts. */
  readonly signal?: AbortSignal;
}
