/**
 * The interface of observers. An observer is an object with a method for each event that it handles.
 */
import type { Limited, McpError } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Implementation } from "../../core/protocol/types.ts";
import type { ClientInfo, Principal } from "./context.ts";

/**
 * The transport of a message. `memory` stands for a client in the same process, such as in a test. `internal` stands
 * for a call by an extension of the server.
 */
export type TransportName = "http" | "stdio" | "websocket" | "http-sse" | "memory" | "internal";

/** The transport and the caller of the request that caused an event. */
export interface EventSource {
  /** The transport. */
  readonly transport: TransportName;
  /** Id of the authenticated caller, if any. */
  readonly principal?: string;
}

/** A message that was received or sent. The message may contain personal data, and secrets in arguments or results. */
export interface MessageEvent extends EventSource {
  /** Whether the server received or sent the message. */
  readonly direction: "in" | "out";
  /** The message as JSON text. A received text may be invalid JSON. */
  readonly text: string;
}

/** The start of a call. Each `start` event is followed by exactly one `call` event. */
export interface StartEvent extends EventSource {
  /** Number of the call, unique within this server. The `call` event has the same number. */
  readonly id: number;
  /**
   * The `id` of the outer call. Set if a handler made this call to read a resource, or if this call continues a handler
   * after its response.
   */
  readonly parent?: number;
  /** Id of the JSON-RPC request. Clients can choose any id. `undefined` for a call without a request. */
  readonly request?: string | number;
  /** Id of the session. Equals the `id` of its {@linkcode SessionEvent}. */
  readonly session?: string;
  /** Address of the client, if known. An IPv6 address is shortened to its /64 network. */
  readonly peer?: string;
  /** Method of the request, such as `tools/call`. */
  readonly method: string;
  /** Name of the tool or prompt, or URI of the resource. Clients can send any text of any length. */
  readonly subject?: string;
  /** Protocol revision of the call. */
  readonly revision: string;
  /** Name and version that the client sent, if any. Not verified. */
  readonly client?: Implementation;
  /** W3C trace context from the request's `_meta`. Not verified. */
  readonly traceparent?: string;
  /** W3C trace state from the request's `_meta`. Not verified. */
  readonly tracestate?: string;
  /** W3C baggage from the request's `_meta`. Not verified. */
  readonly baggage?: string;
  /**
   * W3C trace context from the HTTP request's `traceparent` header. Set only in the event that `start` and `around`
   * receive, and only if an observer has `around`. Not verified.
   */
  readonly httpTraceparent?: string;
  /**
   * The texts that layers have noted about the call, by name, such as `task_at_hand` of the layer `intent`. Layers note
   * most of them before the call starts. Not verified.
   */
  readonly notes?: Readonly<Record<string, string>>;
  /**
   * Milliseconds from the receipt of the request to the start of the call, if the call waited in the server's queue,
   * and 0 otherwise. In the `call` event, this value includes the time in the handler's queue.
   */
  readonly waitedMs: number;
}

/** The end of a call. */
export interface CallEvent extends StartEvent {
  /**
   * The outcome of the call. `tool_error` is a result with `isError: true`. `input_required` is a result that asks the
   * client questions.
   */
  readonly outcome: "result" | "tool_error" | "input_required" | "error" | "cancelled";
  /**
   * The result's type, if an extension defines the type, such as `task`. In that case, the handler continues after this
   * event.
   */
  readonly resultType?: string;
  /** Code of the JSON-RPC error, if the client received an error. */
  readonly code?: number;
  /** Message of the JSON-RPC error, if the client received an error. */
  readonly message?: string;
  /** The reason why the call was cancelled. Set if `outcome` is `cancelled`. */
  readonly why?: CancelReason;
  /** Milliseconds from the receipt of the request to the end. */
  readonly durationMs: number;
  /** Whether the handler is deprecated, with `transform`. `undefined` if it is not. */
  readonly deprecated?: boolean;
}

/**
 * The reason why a call or a subscription ended before its result.
 *
 * - `client`: the client cancelled the call.
 * - `timeout`: the call exceeded its timeout.
 * - `disconnected`: the client disconnected.
 * - `session`: the session ended.
 * - `expired`: the caller's credentials expired or were revoked.
 * - `extension`: an extension cancelled the call.
 * - `closing`: the server is closing.
 * - `ended`: the call that has made an inner call has its response, and its handler did not wait for the inner call.
 */
export type CancelReason =
  | "client"
  | "timeout"
  | "disconnected"
  | "session"
  | "expired"
  | "extension"
  | "closing"
  | "ended";

/**
 * A question that a handler asked the client. Reported when the client has answered, when the question has failed, or
 * when the response asks the client to send the answer in a new request.
 */
export interface AskedEvent extends EventSource {
  /** The `id` of the call whose handler asked the question. */
  readonly parent: number;
  /** Method of the question, such as `elicitation/create`. */
  readonly method: string;
  /**
   * The outcome of the question. `open` means that the response contains the question, and the client sends the request
   * again with the answer. The answered question is then reported in another event.
   */
  readonly outcome: "answered" | "open" | "failed";
  /** Milliseconds from the question to its outcome. */
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
  /** The limit that was reached, such as `calls.waiting`. Set only if `reason` is `limit`. */
  readonly limit?: string;
  /** The request's method, if it could be read. Clients can send any text, which is cut to 200 characters. */
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
   * Path of the limit in `limits`, such as `calls.running`, or name of a limit that no option changes, such as
   * `request.depth`. Limits of single handlers begin with `handler.`.
   */
  readonly limit: string;
  /** The handler, such as `tool "search"`. Set only for limits of single handlers. */
  readonly handler?: string;
  /**
   * The client, as `principal` followed by the principal's id, or `peer` followed by the client's address. `undefined`
   * if the client is unknown, or if all clients share the limit.
   */
  readonly client?: string;
}

/** An unexpected error. */
export interface FaultEvent {
  /** Id of the error. The error message for the client contains the same id. */
  readonly id: string;
  /** The error as it was thrown. */
  readonly error: unknown;
  /** Name of the server. */
  readonly server: string;
  /** Method of the request that failed, if any. */
  readonly method?: string;
  /** The failed tool's or prompt's name, the resource's URI, or the service, such as `service "db"`. */
  readonly subject?: string;
  /**
   * `true` if the error is the rejection of a promise that no code awaits. No client received an error. `method` and
   * `subject` name the call that has created the promise, if known.
   */
  readonly isUnawaited?: boolean;
}

/** Where an unexpected error occurred. */
export type FaultPlace = Pick<FaultEvent, "method" | "subject" | "isUnawaited">;

/** A session that was created, resumed or ended. */
export interface SessionEvent extends EventSource {
  /**
   * The change. Over HTTP, `created` is reported with the first request after `initialize`. `resumed` means that this
   * process had no state of the session, for example after a restart.
   */
  readonly state: "created" | "resumed" | "ended";
  /**
   * The part of the session id that identifies the session. The part alone does not give access to the session. Set
   * only over HTTP.
   */
  readonly id?: string;
  /** Protocol revision of the session. */
  readonly revision: string;
  /** Name and version that the client sent, if any. Not verified. */
  readonly client?: Implementation;
  /** The reason why the session ended. A client can resume an `evicted` session. */
  readonly why?: "client" | "idle" | "expired" | "evicted" | "disconnected" | "closing";
}

/** A notification from a client. */
export interface NotificationEvent extends EventSource {
  /**
   * The notification's method, such as `notifications/initialized`. Clients can send any text, which is cut to 200
   * characters.
   */
  readonly method: string;
  /** Protocol revision, if known. */
  readonly revision?: string;
  /** Name and version that the client sent, if any. Not verified. */
  readonly client?: Implementation;
  /** Id of the session. Equals the `id` of its {@linkcode SessionEvent}. */
  readonly session?: string;
}

/** The start or the end of a subscription. */
export interface SubscriptionEvent extends EventSource {
  /** What happened. */
  readonly state: "opened" | "ended";
  /** Protocol revision of the subscription. */
  readonly revision: string;
  /** The lists for which the client receives change notifications. */
  readonly lists: readonly string[];
  /** The URIs of the resources for which the client receives change notifications. */
  readonly uris: readonly string[];
  /** The reason why the subscription ended. */
  readonly why?: CancelReason;
}

/** The start or the end of an HTTP event stream or of a connection. */
export interface StreamEvent {
  /** What happened. */
  readonly state: "opened" | "ended";
  /** The transport. */
  readonly transport: TransportName;
  /** The reason why the stream or connection ended. `done` means that the server had sent everything. */
  readonly why?: "done" | "disconnected" | "stalled" | "memory" | "closing";
  /** Milliseconds for which the stream or connection was open. Set when the stream or connection has ended. */
  readonly durationMs?: number;
}

/** A service that was created or disposed, or that failed. */
export interface ServiceEvent {
  /** Name of the service. */
  readonly name: string;
  /**
   * The new state. `made` means that the service's value was created. `failed` means that the service's `make` or
   * `dispose` function threw an error.
   */
  readonly state: "made" | "disposed" | "failed";
  /** The error, if the service failed. */
  readonly error?: unknown;
  /** Duration of the creation or the disposal, in milliseconds. */
  readonly durationMs?: number;
}

/** A store failed, recovered, or refused a value. */
export interface StoreEvent {
  /**
   * The new state. `refused` means that the store works, but cannot write a value, for example because the value is too
   * large. `refused` is reported only once per operation, such as `set`.
   */
  readonly state: "degraded" | "recovered" | "refused";
  /** The operation that failed, such as `get`. */
  readonly operation?: string;
  /** The error that caused the failure, if any. */
  readonly error?: unknown;
}

/** The server accepted or refused the caller of a request. */
export interface AuthEvent extends EventSource {
  /** What happened. */
  readonly state: "accepted" | "refused";
  /** The reason why the caller was refused, such as `invalid_token`. Never contains a token. */
  readonly reason?: string;
  /** Details that the client does not receive, such as the token claim that does not match. */
  readonly detail?: string;
  /** HTTP status of the refusal, if any. */
  readonly status?: number;
}

/** Handlers were added or removed after the server was created. */
export interface HandlersEvent {
  /** The added handlers, such as `tool "add"`. */
  readonly added: readonly string[];
  /** The removed handlers, such as `tool "add"`. */
  readonly removed: readonly string[];
}

/** The server has closed. */
export interface CloseEvent {
  /** Milliseconds from the call of `close` until the server had closed. */
  readonly durationMs: number;
}

/**
 * Receives the events of a server. Each method is optional, and the server does not create events that no method
 * handles.
 *
 * An observer cannot break a server: calls do not wait for observers, and errors that an observer throws are only
 * printed. No event contains credentials, and only `message` events contain arguments and results.
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
   * Runs a call. `run()` runs middleware and the handler, and `around` must return the value that `run()` returns. Use
   * `around` to set state for the duration of the call, such as the trace context. Called after `start`. If `around`
   * does not call `run`, or returns another value, the server reports the mistake, and the client still receives the
   * result of the call.
   */
  around?<T>(event: StartEvent, run: () => T): T;
  /**
   * Called when the client has answered a handler's question, when the question has failed, or when a response asks the
   * client to send the answer in its next request.
   */
  asked?(event: AskedEvent): unknown;
  /** Called for each request that the server rejected before the start of a call. */
  refused?(event: RefusedEvent): unknown;
  /** Called when a limit is reached. */
  limit?(event: LimitEvent): unknown;
  /** Called for each unexpected error. If no observer has this method, {@linkcode consoleObserver} prints errors. */
  fault?(event: FaultEvent): unknown;
  /** Called when a session was created, was resumed or has ended. */
  session?(event: SessionEvent): unknown;
  /** Called for each notification from a client, such as `notifications/roots/list_changed`. */
  notification?(event: NotificationEvent): unknown;
  /** Called when a subscription was opened or has ended. */
  subscription?(event: SubscriptionEvent): unknown;
  /** Called when an event stream or a connection was opened or has ended. */
  stream?(event: StreamEvent): unknown;
  /** Called when a service was created, was disposed, or has failed. */
  service?(event: ServiceEvent): unknown;
  /**
   * Called when a store fails, recovers, or refuses a value. If no observer has this method, {@linkcode
   * consoleObserver} prints these events.
   */
  store?(event: StoreEvent): unknown;
  /** Called when a caller is accepted or refused. */
  auth?(event: AuthEvent): unknown;
  /** Called when handlers are added or removed after the server was created. */
  handlers?(event: HandlersEvent): unknown;
  /** Called when the server has closed. */
  close?(event: CloseEvent): unknown;
}

/** Reports one request to the observer: either a refusal, or the start and the end of a call. */
export interface RequestReport {
  /** The reason why the call was cancelled. */
  why?: CancelReason;
  /** The reason why the request is refused. Set only if the error code does not determine the reason. */
  reason?: RefusalReason;
  /** Whether the handler is deprecated. */
  deprecated?: boolean;
  /** The texts that layers have noted about the call. */
  notes?: Readonly<Record<string, string>>;
  /** Adds facts that the server knows only after it has read the request. */
  identify(client: ClientInfo, subject?: unknown, session?: string): void;
  /** Creates the report of a call that is a part of this call. */
  part(method: string, subject: string | undefined): RequestReport;
  /** Runs the call inside the `around` methods of the observers. */
  around<T>(run: () => T): T;
  /** Waits for the outcome of a question, and reports the question. */
  ask<T>(method: string, answer: Promise<T>): Promise<T>;
  /** Reports that the call waits in a queue, which is the server's queue or the handler's queue. */
  wait(): void;
  /**
   * Reports that the call starts, or that it continues after waiting in the handler's queue. The observer receives only
   * one `start` event.
   */
  start(): void;
  /** Reports the result of the call. */
  succeed(result: Result): void;
  /** Reports the error of the call, or a refusal if the call has not started. */
  fail(error: ReportedError, status?: number): void;
  /** Reports that the call was cancelled and has no response. */
  cancel(): void;
}

/** The properties of an error from which events are created. */
export interface ReportedError extends Limited {
  readonly code: number;
  readonly message: string;
}

/** The properties of a {@linkcode Link} from which events are created. */
export interface Origin {
  readonly transport: TransportName;
  readonly principal?: Principal;
  /** The HTTP request that contained the message, if any. Events report only whether the request exists. */
  readonly http?: unknown;
  /** Headers of the HTTP request, if any. */
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

/** The parts of the server that receive reports. */
export interface Reporter {
  /**
   * Receives events. The object has a method only for events that an observer handles, so call `observer.call?.({ …
   * })`.
   */
  readonly observer: Observer;
  /** Builds events. `undefined` if the server has no observer, or if the code is not loaded yet. */
  observing?: Observing;
  /** Passes an unexpected error to the observer. Returns the error that the client receives. */
  report(error: unknown, about?: FaultPlace): McpError;
}

/** A {@linkcode RefusedEvent} without the fields that the source of the request determines. */
export type Rejected = Omit<RefusedEvent, keyof EventSource | "limit"> & Limited;

/** Builds the events of a server with an observer. */
export interface Observing {
  /** Whether an observer handles the events of requests. */
  readonly handlesRequests: boolean;
  /** Returns the time in milliseconds, or 0 if no observer uses the duration of calls. */
  now(): number;
  /** Reports the JSON text of a message that was received or sent. */
  message(direction: "in" | "out", origin: Origin, text: string): void;
  /** Reports that a stream was opened. Returns a function that reports the end of the stream. */
  openStream(transport: TransportName): (why: StreamEvent["why"]) => void;
  /** Reports a request or a message that the server rejected before the start of a call. */
  refuse(origin: Origin, rejected: Rejected): void;
  /** Reports a notification from a client. */
  notify(method: string, origin: Origin, known: KnownClient): void;
  /** Reports that a limit was reached. `client` is the key of the client that reached the limit. */
  reach(limit: string, client?: string, handler?: string): void;
  /**
   * Reports the limit that caused an error, and returns the limit's path. Reports nothing if the error has the paths of
   * several limits, because the code that created the error has already reported the limit. `error` can be any value,
   * because a handler can throw any value.
   */
  reachBy(error: unknown): string | undefined;
}
