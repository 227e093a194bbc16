/**
 * The interface of observers: objects with a method for each event that they handle.
 *
 * @module
 */
import type { McpError } from "../../protocol/errors.ts";
import type { Request as Message, Result } from "../../protocol/jsonrpc.ts";
import type { Implementation } from "../../protocol/types.ts";
import type { ClientFacts, Principal } from "./context.ts";

/**
 * The transport of a message. `memory` stands for a client in the same process, such as in a test. `internal` stands
 * for a call by an extension of the server.
 */
export type TransportName = "http" | "stdio" | "websocket" | "http-sse" | "memory" | "internal";

/** The source of an event. */
export interface EventSource {
  /** The transport. */
  readonly transport: TransportName;
  /** Id of the authenticated caller, if any. */
  readonly principal?: string;
}

/** A message that was received or sent. It may contain personal data and secrets of tools. */
export interface MessageEvent extends EventSource {
  /** Whether the server received or sent the message. */
  readonly direction: "in" | "out";
  /** The message as JSON. A received text may be invalid. */
  readonly text: string;
}

/** The start of a call. Each started call ends with exactly one `call` event. */
export interface StartEvent extends EventSource {
  /** Number of the call, unique within this server. The `call` event has the same number. */
  readonly id: number;
  /**
   * The `id` of the call that this call is a part of. Set for a handler that continues after its response, and for a
   * resource that a handler reads.
   */
  readonly parent?: number;
  /** Id of the JSON-RPC request. `undefined` for a call that does not belong to a request. Clients choose it freely. */
  readonly request?: string | number;
  /** Id of the session, as in its {@linkcode SessionEvent}. */
  readonly session?: string;
  /** Address of the client, if known. An IPv6 address is cut to its /64 network. */
  readonly peer?: string;
  /** Method of the request, such as `tools/call`. */
  readonly method: string;
  /** Name of the tool or prompt, or URI of the resource. Clients choose it freely, and it may be long. */
  readonly subject?: string;
  /** Protocol revision of the call. */
  readonly revision: string;
  /** Name and version of the client, if it sent them. They are not verified. */
  readonly client?: Implementation;
  /** W3C trace context from the request's `_meta`. It is not verified. */
  readonly traceparent?: string;
  /** W3C trace state from the request's `_meta`. It is not verified. */
  readonly tracestate?: string;
  /** W3C baggage from the request's `_meta`. It is not verified. */
  readonly baggage?: string;
  /**
   * W3C trace context from the header `traceparent` of the HTTP request. Set only at the start of a call, and if an
   * observer has `around`. It is not verified.
   */
  readonly httpTraceparent?: string;
  /**
   * Milliseconds from the receipt of the request to the start, if the call waited in the queue of the server. Otherwise
   * 0. The `call` event adds the time in the queue of the handler.
   */
  readonly waitedMs: number;
}

/** The end of a call. */
export interface CallEvent extends StartEvent {
  /**
   * How the call ended: with a result, with a result whose `isError` is `true`, with questions for the client, with an
   * error, or by cancellation.
   */
  readonly outcome: "result" | "tool_error" | "input_required" | "error" | "cancelled";
  /** Type of the result, if an extension defines the type, such as `task`. The work then continues after this event. */
  readonly resultType?: string;
  /** Code of the JSON-RPC error, if the client received an error. */
  readonly code?: number;
  /** Message of the JSON-RPC error, if the client received an error. */
  readonly message?: string;
  /** The reason why the call was cancelled. Set if `outcome` is `cancelled`. */
  readonly why?: CancelReason;
  /** Milliseconds from the receipt of the request to the end. */
  readonly durationMs: number;
}

/**
 * The reason why a call or a subscription ended before its result.
 *
 * - `client`: the client cancelled it.
 * - `timeout`: it exceeded its timeout.
 * - `disconnected`: the client disconnected.
 * - `session`: the session ended.
 * - `expired`: the caller's credentials expired or were revoked.
 * - `extension`: an extension cancelled it.
 * - `closing`: the server is closing.
 */
export type CancelReason = "client" | "timeout" | "disconnected" | "session" | "expired" | "extension" | "closing";

/**
 * A question of a handler to its client. Reported when the question is answered, fails, or is left open for the
 * client's next request.
 */
export interface AskedEvent extends EventSource {
  /** The `id` of the call whose handler asked. */
  readonly parent: number;
  /** Method of the question, such as `elicitation/create`. */
  readonly method: string;
  /**
   * How the question ended. `open` means that the client gets the question with the response, and sends the request
   * again with the answer. The question is then reported a second time.
   */
  readonly outcome: "answered" | "open" | "failed";
  /** Milliseconds from the question to its end. */
  readonly durationMs: number;
}

/** A request that was rejected before it became a call. */
export interface RefusedEvent extends EventSource {
  /** HTTP status. `undefined` on other transports. */
  readonly status?: number;
  /** The reason why the request was rejected. */
  readonly reason: RefusalReason;
  /** The error message that the client received. */
  readonly message: string;
  /** Code of the JSON-RPC error, if the client received an error. */
  readonly code?: number;
  /** The limit that was reached, such as `calls.waiting`. Set if `reason` is `limit`. */
  readonly limit?: string;
  /** Method of the request if it could be read, in at most 200 characters. Clients choose it freely. */
  readonly method?: string;
}

/**
 * The reason why a request was rejected before it became a call.
 *
 * - Over HTTP: `host`, `origin`, `path`, `verb` (the HTTP method), `accept`, `content_type`, `content_encoding`, `body`
 *   (incomplete or unreadable), `upgrade` and `authentication`.
 * - On every transport: `message` (not a valid message), `batch`, `revision`, `session` (unknown, ended or missing),
 *   `header` (does not match the body), `method`, `params` (invalid, or an unknown name), `capability`, `scope`,
 *   `limit`, `admission`, `closing` and `fault` (an unexpected error).
 */
export type RefusalReason =
  | "host"
  | "origin"
  | "path"
  | "verb"
  | "accept"
  | "content_type"
  | "content_encoding"
  | "body"
  | "upgrade"
  | "authentication"
  | "message"
  | "batch"
  | "revision"
  | "session"
  | "header"
  | "method"
  | "params"
  | "capability"
  | "scope"
  | "limit"
  | "admission"
  | "closing"
  | "fault";

/** A limit that was reached. */
export interface LimitEvent {
  /**
   * Path of a limit in `limits`, such as `calls.running`, or of a bound that no option changes, such as
   * `request.depth`. Limits of handlers begin with `handler.`.
   */
  readonly limit: string;
  /** The handler, such as `tool "search"`. Set for limits of handlers. */
  readonly handler?: string;
  /**
   * The client: `principal` and its id, or `peer` and its address. `undefined` if the client is unknown, or if all
   * clients share the limit.
   */
  readonly client?: string;
}

/** An unexpected error. */
export interface FaultEvent {
  /** Id of the error. The client receives the same id. */
  readonly id: string;
  /** The error as it was thrown. */
  readonly error: unknown;
  /** Name of the server. */
  readonly server: string;
  /** Method of the request, if the error belongs to a request. */
  readonly method?: string;
  /**
   * Name of the tool or prompt, or URI of the resource, if the error belongs to a handler. For a service, its name,
   * such as `service "db"`.
   */
  readonly subject?: string;
}

/** A session that was created, resumed or ended. */
export interface SessionEvent extends EventSource {
  /**
   * What happened. Over HTTP, `created` is reported with the first request after `initialize`. `resumed` means that
   * this process had no state of the session, for example after a restart.
   */
  readonly state: "created" | "resumed" | "ended";
  /** Part of the session id that identifies the session, but cannot be used as its id. Set only over HTTP. */
  readonly id?: string;
  /** Protocol revision of the session. */
  readonly revision: string;
  /** Name and version of the client, if it sent them. They are not verified. */
  readonly client?: Implementation;
  /** The reason why the session ended. An `evicted` session can be resumed. */
  readonly why?: "client" | "idle" | "expired" | "evicted" | "disconnected" | "closing";
}

/** A notification of a client. */
export interface NotificationEvent extends EventSource {
  /** Method, such as `notifications/initialized`, in at most 200 characters. Clients choose it freely. */
  readonly method: string;
  /** Protocol revision, if known. */
  readonly revision?: string;
  /** Name and version of the client, if it sent them. They are not verified. */
  readonly client?: Implementation;
  /** Id of the session, as in its {@linkcode SessionEvent}. */
  readonly session?: string;
}

/** A subscription that was opened or has ended. */
export interface SubscriptionEvent extends EventSource {
  /** What happened. */
  readonly state: "opened" | "ended";
  /** Protocol revision of the subscription. */
  readonly revision: string;
  /** The lists whose changes the subscription includes. */
  readonly lists: readonly string[];
  /** The resources whose changes the subscription includes. */
  readonly uris: readonly string[];
  /** The reason why the subscription ended. */
  readonly why?: CancelReason;
}

/** An event stream over HTTP or a connection that was opened or has ended. */
export interface StreamEvent {
  /** What happened. */
  readonly state: "opened" | "ended";
  /** The transport. */
  readonly transport: TransportName;
  /** The reason why the stream or connection ended. `done` means that the server had nothing more to send. */
  readonly why?: "done" | "disconnected" | "stalled" | "memory" | "closing";
  /** Milliseconds for which the stream or connection was open. */
  readonly durationMs?: number;
}

/** A service that was created or disposed, or that failed. */
export interface ServiceEvent {
  /** Name of the service. */
  readonly name: string;
  /**
   * The new state. `made` means that its value was created, and `failed` that creating or disposing it threw an error.
   */
  readonly state: "made" | "disposed" | "failed";
  /** The error, if the service failed. */
  readonly error?: unknown;
  /** Milliseconds that creating or disposing the service took. */
  readonly durationMs?: number;
}

/** A store that failed, recovered, or refused a value. */
export interface StoreEvent {
  /**
   * The new state. `refused` means that the store works, but cannot write a value, for example because it is too large.
   * This is reported once for each kind of operation.
   */
  readonly state: "degraded" | "recovered" | "refused";
  /** The operation that failed, such as `get`. */
  readonly operation?: string;
  /** The error that caused the failure. `undefined` if there was no error. */
  readonly error?: unknown;
}

/** A decision about the caller of a request. */
export interface AuthEvent extends EventSource {
  /** What happened. */
  readonly state: "accepted" | "refused";
  /** The reason why the caller was refused, such as `invalid_token`. Never contains a token. */
  readonly reason?: string;
  /** Further details, which the client does not receive, such as the claim of a token that does not match. */
  readonly detail?: string;
  /** HTTP status of the refusal, if the caller was refused with a status. */
  readonly status?: number;
}

/** Handlers that were added or removed after the start. */
export interface HandlersEvent {
  /** The added handlers, such as `tool "add"`. */
  readonly added: readonly string[];
  /** The removed handlers, such as `tool "add"`. */
  readonly removed: readonly string[];
}

/** The end of a server. */
export interface CloseEvent {
  /** Milliseconds that closing took. */
  readonly durationMs: number;
}

/**
 * Receives the events of a server. Each method is optional, and an event without a method costs nothing.
 *
 * An observer cannot break a server: calls do not wait for it, and errors that it throws are only printed. No event
 * contains credentials, and only `message` contains arguments and results.
 *
 * ```ts
 * import { createServer, type Observer } from "@x/mcp";
 *
 * const observer: Observer = {
 *   call: ({ method, subject, outcome, durationMs }) => console.error(method, subject, outcome, durationMs),
 * };
 * export default createServer({ name: "calc", version: "1.0.0", observer });
 * ```
 */
export interface Observer {
  /** Called for each message that is received or sent. */
  message?(event: MessageEvent): unknown;
  /** Called when a call starts. */
  start?(event: StartEvent): unknown;
  /** Called when a call has ended. */
  call?(event: CallEvent): unknown;
  /**
   * Runs a call: `run()` runs middleware and the handler, and `around` must return the value that `run()` returns. Use
   * it to set state for the duration of the call, such as the context of a trace. Called after `start`. If `around`
   * does not call `run`, or returns another value, the server reports the mistake, and the client still receives the
   * result of the call.
   */
  around?<T>(event: StartEvent, run: () => T): T;
  /** Called when a question of a handler is answered, fails, or is left open for the client's next request. */
  asked?(event: AskedEvent): unknown;
  /** Called for each request that was rejected before it became a call. */
  refused?(event: RefusedEvent): unknown;
  /** Called when a limit is reached. */
  limit?(event: LimitEvent): unknown;
  /** Called for each unexpected error. If no observer has this method, {@linkcode consoleObserver} prints errors. */
  fault?(event: FaultEvent): unknown;
  /** Called when a session is created, resumed or has ended. */
  session?(event: SessionEvent): unknown;
  /** Called for each notification of a client, such as `notifications/roots/list_changed`. */
  notification?(event: NotificationEvent): unknown;
  /** Called when a subscription is opened or has ended. */
  subscription?(event: SubscriptionEvent): unknown;
  /** Called when an event stream or a connection is opened or has ended. */
  stream?(event: StreamEvent): unknown;
  /** Called when a service is created or disposed, or fails. */
  service?(event: ServiceEvent): unknown;
  /**
   * Called when a store fails, recovers, or refuses a value. If no observer has this method, {@linkcode
   * consoleObserver} prints these events.
   */
  store?(event: StoreEvent): unknown;
  /** Called when a caller is accepted or refused. */
  auth?(event: AuthEvent): unknown;
  /** Called when handlers are added or removed after the start. */
  handlers?(event: HandlersEvent): unknown;
  /** Called when the server has closed. */
  close?(event: CloseEvent): unknown;
}

/** Reports one request to the observer: either its refusal, or the start and the end of its call. */
export interface RequestReport {
  /** The reason why the call was cancelled. */
  why?: CancelReason;
  /** The reason why the request is refused, if the error does not imply the reason. */
  reason?: RefusalReason;
  /** Adds the facts that are known after the request was read. */
  identify(client: ClientFacts, subject?: unknown, session?: string): void;
  /** Creates the report of a call that is a part of this one. */
  part(method: string, subject: string | undefined): RequestReport;
  /** Runs the call within the observers that have `around`. */
  around<T>(run: () => T): T;
  /** Waits for the end of a question, and reports it. */
  ask<T>(method: string, answer: Promise<T>): Promise<T>;
  /** Reports that the call waits in a queue: first the queue of the server, then the queue of its handler. */
  wait(): void;
  /** Reports that the call starts, or continues after waiting. The start is reported only once. */
  start(): void;
  /** Reports the result of the call. */
  succeed(result: Result): void;
  /** Reports the error of the call. Reports a refusal if the call has not started. */
  fail(error: { readonly code: number; readonly message: string }, status?: number): void;
  /** Reports a call that was cancelled and gets no response. */
  cancel(): void;
}

/** The source of a message, such as its link. */
export interface Origin {
  readonly transport: TransportName;
  readonly principal?: Principal;
  /** The HTTP request that carried the message, if any. Only its presence matters. */
  readonly http?: unknown;
  /** Headers of the HTTP request. */
  readonly headers?: { get(name: string): string | null };
  /** Address of the client, if known. */
  readonly peer?: string;
}

/** Facts about the client that sent a notification. */
export interface KnownClient {
  readonly version?: string;
  readonly info?: Implementation;
  readonly session?: string;
}

/** The parts of a server that receive reports. */
export interface Reporter {
  /** Receives events. It has a method only for events that an observer handles, so write `observer.call?.({ … })`. */
  readonly observer: Observer;
  /** Builds events. `undefined` until the code is loaded, and for a server without an observer. */
  observing?: Observing;
  /** Passes an unexpected error to the observer, and returns the error for the client. */
  report(error: unknown, about?: { readonly method?: string; readonly subject?: string }): McpError;
}

/** The facts of a rejection, without the source of its request. */
export type Rejected = Omit<RefusedEvent, keyof EventSource | "limit">;

/** Builds the events of a server with an observer. */
export interface Observing {
  /**
   * Creates the report of a request that has just been received. Returns `undefined` if no observer handles the
   * report's events.
   */
  observe(message: Message, origin: Origin): RequestReport | undefined;
  /** Reports a message. */
  message(direction: "in" | "out", origin: Origin, text: string): void;
  /** Reports that a stream is open. Returns the function that reports its end. */
  openStream(transport: TransportName): (why: StreamEvent["why"]) => void;
  /** Reports a request or a message that was rejected before it became a call. */
  refuse(origin: Origin, rejected: Rejected): void;
  /** Reports a notification of a client. */
  notify(method: string, origin: Origin, known: KnownClient): void;
  /** Reports that a limit was reached. `client` is the key of the client that reached the limit. */
  reach(limit: string, client?: string, handler?: string): void;
  /**
   * Reports the limit that an error message names in parentheses, and returns its path. Reports nothing if the message
   * names several limits, because the limit was then reported when it was reached.
   */
  reachNamed(message: string): string | undefined;
  /** Reports the limit that the message of an unexpected error names. */
  reachError(error: unknown): void;
}
