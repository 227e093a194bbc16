/**
 * The context of a call. Handlers receive the context in addition to their input.
 */
import type {
  ClientCapabilities,
  Implementation,
  LogLevel,
  Meta,
  PromptMessage,
  ResourceContents,
  Root,
  ToolResult,
} from "../../core/protocol/types.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../../core/protocol/listed.ts";
import type { Typed } from "../../core/typed.ts";
import type { SamplingRequest, SamplingResult } from "../../core/protocol/types.ts";
import type { Infer, Schema } from "../../core/schema/schema.ts";
import type { INTERNALS } from "../../core/internals.ts";
import type { HandlerCall } from "./handler_call.ts";
import type { NoServices, Service, ServiceEnd } from "./service.ts";

/**
 * The authenticated caller, as returned by the server's `auth`, or as passed to `fetch`. Handlers get a deeply frozen
 * copy.
 */
export interface Principal {
  /** Stable, unique id of the caller. Sessions and the state of elicitations are bound to this id. */
  readonly id: string;
  /**
   * Permissions of the caller. Defaults to no permissions. Use `allScopes` from `@x/mcp/auth` to grant all permissions.
   */
  readonly scopes?: readonly string[];
  /**
   * Time at which the credentials expire, in milliseconds since 1970. Subscriptions, notification streams and WebSocket
   * connections end when the credentials expire.
   */
  readonly expiresAt?: number;
  /** Further facts about the caller, for use in handlers. */
  readonly [key: string]: unknown;
}

/** Unverified facts that the client declares about itself. Never use these facts to authorize a caller. */
export interface ClientInfo {
  /** Protocol revision of this call. */
  readonly version: string;
  /**
   * Name and version of the client, and what else the client says about itself, such as its title. A session leaves out
   * the longest of these facts if they have more than 1 KiB of JSON. `undefined` if the client sent no name.
   */
  readonly info?: Implementation;
  /** Capabilities of the client. */
  readonly capabilities: ClientCapabilities;
  /** Least severe log level that the client requests. `undefined` if the client requests no log messages. */
  readonly logLevel?: LogLevel;
}

/** A form for an elicitation. */
export interface ElicitOptions<S extends Schema = Schema> {
  /** Text above the form. */
  readonly message: string;
  /** Schema of the form: a flat object of strings, numbers, booleans and choices. */
  readonly schema: S;
  /**
   * Whether the server accepts an answer only once. Use this option if an action must not be repeated with the same
   * consent, such as a payment. If the client sends an accepted answer again, the server rejects the request with code
   * -32602. Defaults to `false`.
   */
  readonly singleUse?: boolean;
}

/**
 * A web page for an elicitation. Use a page for data that must not pass through the client, such as passwords or
 * payment details.
 */
export interface ElicitUrlOptions {
  /** Text that explains why the user should open the page. */
  readonly message: string;
  /** URL of the page. */
  readonly url: string;
  /** Whether the server accepts an answer only once. Defaults to `false`. */
  readonly singleUse?: boolean;
}

/** Options of `ctx.once`. */
export interface OnceOptions {
  /**
   * Maximum size of the value's JSON in UTF-8, in bytes. The server reserves this room before `make` runs. By default,
   * all values of a call together can have 32,768 bytes.
   *
   * A client without a session receives up to 32,768 bytes in its `requestState`. A larger value is in the server's store
   * until the call ends, so `ctx.once` rejects if the server has no store. In a session, the value is in memory.
   */
  readonly maxBytes?: number;
}

/** The user's answer to an elicitation with a form. */
export type Elicited<T> =
  | { readonly action: "accept"; readonly content: T }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** The name of a list that clients can request, such as `tools`. */
export type ListName = "tools" | "resources" | "prompts";

/** Options of `listChanged` and `resourceUpdated`. */
export interface ListChangedOptions {
  /**
   * Selects the callers to notify, such as `(ctx) => ctx.principal?.id === "ada"`. `ctx` is the context in which the
   * caller subscribed. Defaults to all callers.
   */
  readonly to?: (ctx: Context) => boolean | Promise<boolean>;
}

/**
 * Notifies clients of changes. If a change is announced several times within 10 milliseconds, each client gets one
 * notification.
 */
export interface ChangeNotifier {
  /**
   * Notifies a resource's subscribers that the resource has changed. Subscribers that are no longer allowed to see the
   * resource are not notified. With `to`, notifies only subscribers of this instance.
   */
  resourceUpdated(uri: string, options?: ListChangedOptions): void;
  /**
   * Notifies clients that a list has changed, for example because `allow` now returns a different result. The server
   * notifies clients automatically when handlers are added or removed. Does nothing if the server has never had
   * handlers in this list and `capabilities` does not declare the list.
   *
   * @throws {TypeError} if no list has this name.
   */
  listChanged(list: ListName, options?: ListChangedOptions): void;
}

/** Returns the path parameters. With a schema, the parameters have the schema's type. */
export interface ReadPathParams {
  <P extends Schema>(params: P): Infer<P>;
  (): Readonly<Record<string, unknown>>;
}

/**
 * Returns the value from the server's `sessionData` function. To get a value with the function's return type, pass the
 * function.
 */
export interface ReadSession {
  <T>(session: (ctx: Context) => T): T;
  (): unknown;
}

/** Options of a log message. */
export interface LogOptions {
  /** Name of the logger, such as `db`. */
  readonly logger?: string;
}

/**
 * Sends a log message with any JSON value. Returns a promise that settles when the client is ready to receive further
 * messages.
 */
export type LogMethod = (data: unknown, options?: LogOptions) => Promise<void>;

/** Sends log messages. There is one method per level. The methods can be destructured. */
export interface Log {
  /** Logs details for debugging. */
  readonly debug: LogMethod;
  /** Logs a normal event. */
  readonly info: LogMethod;
  /** Logs a normal but significant event. */
  readonly notice: LogMethod;
  /** Logs a possible problem. */
  readonly warning: LogMethod;
  /** Logs that an operation failed. */
  readonly error: LogMethod;
  /** Logs that a component failed. */
  readonly critical: LogMethod;
  /** Logs a condition that needs immediate action. */
  readonly alert: LogMethod;
  /** Logs that the system is unusable. */
  readonly emergency: LogMethod;
}

/** The properties of a handler that other handlers can read, such as in `ctx.server.handlers`. */
export interface AnyHandler {
  /** Name of the tool, prompt, resource or group. */
  readonly name: string;
  /** Tags, which {@linkcode HandlerSelector} can select. */
  readonly tags?: readonly string[];
  /**
   * Marks objects that were created by a factory such as `tool()`.
   *
   * @ignore
   */
  readonly [INTERNALS]: object;
}

/** Decides whether a caller may see and use a handler. `S` is the type of the handler's services. */
export type Allow<S = NoServices> = (call: Context<S>) => boolean | Promise<boolean>;

/** Selects one tool or prompt by its name, one resource by its URI, or all handlers with a tag. */
export type HandlerSelector =
  | { readonly tool: string }
  | { readonly resource: string }
  | { readonly prompt: string }
  | { readonly group: string }
  | { readonly tag: string };

/** The server's handlers, which can change while the server runs. `H` is the type of a handler. */
export interface HandlerSet<H extends AnyHandler = AnyHandler> {
  /** Adds handlers, and notifies clients whose lists have changed. */
  add(...handlers: readonly H[]): void;
  /** Removes handlers, and notifies clients whose lists have changed. Ignores unknown handlers and `undefined`. */
  remove(...handlers: readonly (H | undefined)[]): void;
  /** Returns the handlers in the order in which they were added. */
  list(): readonly H[];
  /**
   * Returns a handler, which may be inside a group. Returns `undefined` if no handler has this kind and name. For a
   * resource, `name` is the URI.
   */
  get(kind: "tool" | "resource" | "prompt" | "group", name: string): H | undefined;
  /**
   * Enables disabled handlers for all callers, or only for callers for which `callers` returns `true`. The handlers'
   * own `allow` still applies. For each handler and caller, the last matching `enable` or `disable` call decides, even
   * if the handler is added after the call. Clients whose lists have changed are notified.
   *
   * Pass the same function object for the same callers: a call replaces the earlier call that had the same selection
   * and function.
   *
   * @throws {TypeError} if the selection is invalid, for example if it is the URI of one resource that a template
   * provides.
   */
  enable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
  /**
   * Disables handlers for all callers, or only for callers for which `callers` returns `true`. For these callers the
   * handlers do not exist, as if `allow` returned `false`. Running calls continue. Queued calls are refused. {@linkcode
   * HandlerSet.enable} describes how several uses of `enable` and `disable` combine.
   *
   * @throws {TypeError} if the selection is invalid, for example if it is the URI of one resource that a template
   * provides.
   */
  disable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
}

/** The part of the server's API that handlers can use. */
export interface RunningServer extends ChangeNotifier {
  /** The handlers, which can change while the server runs. */
  readonly handlers: HandlerSet;
}

/**
 * Parameters that continue a forwarded request after the other server has asked questions. Empty in the first request.
 */
export interface ForwardRetry {
  /** The client's answers, by the keys of the other server's questions. */
  readonly inputResponses?: Meta;
  /** The `requestState` from the other server. */
  readonly requestState?: unknown;
  /** Allows TypeScript to spread the parameters into an object with further parameters. */
  readonly [name: string]: unknown;
}

/**
 * Options of a request that a client from `@x/mcp/client` forwards. Pass them as the request's options.
 */
export interface ForwardedRequest {
  /** The client must not answer the questions itself. */
  readonly rounds: false;
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /**
   * The elicitation, sampling and roots capabilities of this call's client, as metadata of a request without a session.
   * Capabilities of extensions are not included, because only the client of this call could finish their results. Also
   * contains the log level that the client requests.
   */
  readonly meta: Meta;
  /** Adds the progress of the request to that of this call. Set only if the client requested progress. */
  readonly onProgress?: (progress: {
    readonly progress: number;
    readonly total?: number;
    readonly message?: string;
  }) => void;
  /** Sends the other server's log messages to the client, at the level that the client requests. */
  readonly onNotification: (notification: { readonly method: string; readonly params: Meta }) => void;
  /**
   * Passes a form elicitation of a server with sessions on to the client. If `signal` of the context aborts, because the
   * other server no longer waits for the answer, the question to the client ends too, here and in the members below.
   */
  readonly onElicit: (request: Meta, context?: Partial<Pick<ForwardedRequest, "signal">>) => Promise<Elicited<Meta>>;
  /** Passes a URL elicitation of a server with sessions on to the client. */
  readonly onElicitUrl: (request: Meta, context?: Partial<Pick<ForwardedRequest, "signal">>) => Promise<Elicited<Meta>>;
  /** Passes a sampling request of a server with sessions on to the client. */
  readonly onSample: (
    request: SamplingRequest,
    context?: Partial<Pick<ForwardedRequest, "signal">>,
  ) => Promise<SamplingResult>;
  /** Requests the client's roots for a server with sessions. */
  readonly roots: (context?: Partial<Pick<ForwardedRequest, "signal">>) => Promise<readonly Root[]>;
}

/** Options of `ctx.forward`. */
export interface ForwardOptions {
  /**
   * Name of the other server and the request, such as `airline seats`: the same in each run, and different for every
   * other request of the call, also of its middleware and layers. The other server's state and the answers are kept
   * under this key, so that they reach the server that has asked, even if the next run of the handler sends the requests
   * in another order, or asks another server.
   */
  readonly key: string;
}

/** Details of a progress notification. */
export interface ProgressOptions {
  /**
   * The value of `progress` at which the work is complete. By default, the total is unknown, and the client cannot show
   * how much work is left.
   */
  readonly total?: number;
  /** A short human-readable message. */
  readonly message?: string;
}

/**
 * The context of a call: facts about the caller, and methods that send messages to the client before the result. The
 * methods that send notifications never throw, and do nothing if the call has ended or the client has disconnected. `S`
 * is the type of the services that the handler declares.
 */
export interface Context<S = NoServices> {
  /** Values of the services that the handler declares, by name. Empty in middleware. */
  readonly services: S;
  /** Facts that the client declares about itself. */
  readonly client: ClientInfo;
  /** The authenticated caller, if the server has `auth`, or if a principal was passed to `fetch`. */
  readonly principal?: Principal;
  /**
   * Identifies the caller, as a key for values that belong to one caller: a text for a principal, which is the same on all
   * instances, and otherwise an object for the session, or for the connection over stdio or WebSocket, which is the same
   * for all calls on this instance. `undefined` if nothing identifies the caller, such as for a request over HTTP without a
   * session and without `auth`. An address or a header never identifies a caller.
   */
  readonly caller?: string | object;
  /**
   * Returns the value from the server's `sessionData` function. To get a typed value, pass this function. If the client
   * has a session, the function is called once, when the session begins. Otherwise the function is called in each
   * request in which a handler reads the value. Returns `undefined` if the server has no `sessionData` option.
   *
   * @throws {TypeError} if the passed function is not the server's `sessionData`, or if the value cannot be stored.
   */
  readonly session: ReadSession;
  /**
   * Returns the parameters of the server's path, such as `{ tenant: "acme" }` for `/tenants/:tenant/mcp`. To get typed
   * values, pass the schema from the server's `pathSchema` option.
   *
   * @throws {TypeError} if the path has no parameters, or the passed schema is not the schema from the server's
   * `pathSchema` option.
   */
  readonly pathParams: ReadPathParams;
  /** Changes handlers, and notifies clients of changes. */
  readonly server: RunningServer;
  /** Method of the request, such as `tools/call`. */
  readonly method: string;
  /** Parameters of the request, in the form that the client sent. */
  readonly params: Meta;
  /** The request's `_meta`. */
  readonly meta: Meta;
  /**
   * The HTTP request that contained the call, if any. The host of its URL is the host in the Host header, which the
   * server has checked. The body has already been read. If the server has `auth`, the credentials are removed.
   */
  readonly http?: Request;
  /**
   * Token that is the same in every run of the tool with the same idempotency key and caller, on all instances. Can be
   * used as the `token` of a store's `set` and `append`. `undefined` if the call has no idempotency key.
   */
  readonly idempotencyToken?: string;
  /**
   * Aborts when the call is cancelled or times out, or when the client disconnects and cannot resume the stream.
   * `signal.reason.why` states the cause, such as `"timeout"`.
   */
  readonly signal: AbortSignal;
  /**
   * Sends a progress notification if the client requested progress. Returns a promise that settles when the client is
   * ready to receive further messages.
   *
   * A value that is not greater than the previous value is dropped. If the client reads too slowly, only the newest
   * value is sent. Numbers that are not finite are dropped, and reported to `observer.fault` once per call.
   *
   * @see specification/2026-07-28/basic/patterns/progress
   */
  progress(progress: number, options?: ProgressOptions): Promise<void>;
  /**
   * Sends log messages: `ctx.log.info(data, { logger: "db" })`. Messages below the client's log level are dropped.
   *
   * Each method returns a promise that settles when the client is ready to receive further messages. Await the promise
   * if the handler sends many messages. Otherwise messages are dropped if the client reads too slowly.
   *
   * @deprecated by the protocol. Write to standard error, or use `@x/mcp/observe`, instead.
   * @see specification/2026-07-28/server/utilities/logging
   */
  readonly log: Log;
  /**
   * Asks the user to fill in a form. `key` identifies the question within this call. If the handler repeats the
   * question with the same key, the handler gets the same answer.
   *
   * When the answer arrives, the handler may run again from its beginning, so do irreversible work after the last
   * question. If the client accepts the form without content, the fields have their defaults.
   *
   * @throws {McpError} with code -32021 if the client does not support forms.
   * @throws {TypeError} if a different question in this run has the same key.
   * @see specification/2026-07-28/client/elicitation
   */
  elicit<S extends Schema>(key: string, options: ElicitOptions<S>): Promise<Elicited<Infer<S>>>;
  /**
   * Asks the user to open a web page.
   *
   * @throws {McpError} with code -32021 if the client cannot open pages.
   */
  elicitUrl(key: string, options: ElicitUrlOptions): Promise<{ readonly action: "accept" | "decline" | "cancel" }>;
  /**
   * Sends a sampling request to the client's model.
   *
   * @throws {McpError} with code -32021 if the client does not support sampling.
   * @deprecated by the protocol. Call the API of a model provider instead.
   * @see specification/2026-07-28/deprecated
   */
  sample(key: string, request: SamplingRequest): Promise<SamplingResult>;
  /**
   * Requests the client's roots: the directories and files that the client makes available.
   *
   * @throws {McpError} with code -32021 if the client does not support roots.
   * @deprecated by the protocol. Take paths as arguments, resource URIs or configuration instead.
   * @see specification/2026-07-28/deprecated
   */
  roots(): Promise<readonly Root[]>;
  /**
   * Sends a request to another server, and passes the other server's questions on to the client of this call. `send`
   * must send the request with the given parameters and options. `send` is called again with the client's answers until
   * a result contains no question. The other server's `requestState` is sealed into the state of this call. Errors from
   * the other server keep their code, message and data.
   *
   * If the handler runs again after the result has arrived, for example because it asks a further question, `send` is
   * called again too. To send the request once, call `ctx.forward` in `ctx.once`.
   *
   * ```ts
   * import { tool } from "@x/mcp";
   * import type { Client } from "@x/mcp/client";
   *
   * export const forwarded = (upstream: Client, name: string) =>
   *   tool({
   *     name,
   *     run: (input, ctx) =>
   *       ctx.forward(
   *         (retry, options) => upstream.request("tools/call", { name, arguments: input, ...retry }, options),
   *         { key: `upstream ${name}` },
   *       ),
   *   });
   * ```
   *
   * @throws {McpError} with code -32021 if the client lacks the capability for a question.
   * @throws {TypeError} if `key` is missing, or if a request with the same key was already forwarded in this run.
   */
  forward<R extends object>(
    send: (retry: ForwardRetry, request: ForwardedRequest) => R | Promise<R>,
    options: ForwardOptions,
  ): Promise<R>;
  /**
   * Computes a JSON value once per call, even if the handler runs again after a question. In rare cases, `make` runs
   * more than once. Between two runs of the handler, the client stores the sealed value.
   *
   * In every revision, all values in a call may together have at most 32,768 bytes of JSON. For a larger value, set
   * `maxBytes`. The server then reserves room before `make` runs.
   *
   * @throws {RangeError} if the values exceed this limit; with `maxBytes`, before `make` runs, if the value could not be
   * stored, or afterwards, if the value is larger.
   * @throws {McpError} with code -31503 before `make` runs, if the client uses too much memory or too much of the store.
   */
  once<T>(key: string, make: () => T | Promise<T>, options?: OnceOptions): Promise<T>;
  /**
   * Returns the value of a service that the handler does not declare. Use this method if the input determines which
   * service the handler needs. Rejects for a service with lifetime `call` if the handler declares no services.
   */
  get<T>(service: Service<T>): Promise<T>;
  /**
   * Calls a tool of this server for the same caller, as an inner call. The tool's `allow`, scopes, rates, schemas, guards,
   * layers and the middleware apply. The inner call runs in the place of this call, and within its timeout. Its progress,
   * log messages and questions are sent to the client.
   *
   * Returns the structured content of a tool with an output schema, and otherwise the content and the structured content,
   * as a client would receive them. In a group, a tool has another name; pass this name instead of the tool.
   *
   * The answers to questions and the values of `ctx.once` in the inner call are kept under a key: the name, a digest of
   * the input, and a number that distinguishes equal calls. `key` replaces this key, for example if the input contains
   * the time. It must be the same in each run of the handler, and different for each inner call.
   *
   * @throws {ToolError} with the content of the result, if the tool fails.
   * @throws {McpError} if the tool does not exist or is hidden from the caller, or the caller lacks a required scope.
   * @throws {Error} if inner calls are more than 8 levels deep, or one request makes more than `limits.calls.inner` of
   * them.
   */
  callTool<Sent, Output>(
    tool:
      & AnyHandler
      & Typed<{ readonly kind: "tool"; readonly name: string; readonly input: Sent; readonly output: Output }>,
    input: NoInfer<Sent>,
    options?: { readonly key?: string; readonly raw?: false },
  ): Promise<unknown extends Output ? Pick<ToolResult, "content" | "structuredContent"> : Output>;
  /** Calls a tool by its name, and returns its content and structured content. */
  callTool(
    name: string,
    input?: object,
    options?: { readonly key?: string; readonly raw?: false },
  ): Promise<Pick<ToolResult, "content" | "structuredContent">>;
  /** Calls a tool, and returns its whole result, also if the tool fails. */
  callTool(
    tool: AnyHandler | string,
    input: object | undefined,
    options: { readonly key?: string; readonly raw: boolean },
  ): Promise<ToolResult>;
  /**
   * Gets the messages of a prompt of this server for the same caller, as an inner call. {@linkcode Context.callTool}
   * describes what applies to inner calls, and `key`.
   *
   * @throws {McpError} if the prompt does not exist or is hidden from the caller, or the caller lacks a required scope.
   */
  getPrompt<Sent>(
    prompt:
      & AnyHandler
      & Typed<{ readonly kind: "prompt"; readonly name: string; readonly input: Sent; readonly output: unknown }>,
    args: { readonly [Name in keyof Sent]: string },
    options?: { readonly key?: string },
  ): Promise<{ readonly description?: string; readonly messages: readonly PromptMessage[] }>;
  /** Gets the messages of a prompt by its name. */
  getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: { readonly key?: string },
  ): Promise<{ readonly description?: string; readonly messages: readonly PromptMessage[] }>;
  /**
   * Reads a resource of this server for the same caller, as an inner call. {@linkcode Context.callTool} describes what
   * applies to inner calls, and `key`.
   *
   * @throws {McpError} if the resource does not exist or is hidden from the caller, or the caller lacks a required
   * scope.
   */
  readResource(uri: string, options?: { readonly key?: string }): Promise<readonly ResourceContents[]>;
  /**
   * Lists the tools that the caller can call, also if the server's list for clients is shorter. Reads all pages, each of
   * which is an inner call. Returns an empty list if the server has no tools.
   */
  list(kind: "tools"): Promise<readonly ListedTool[]>;
  /** Lists the prompts that the caller can get. */
  list(kind: "prompts"): Promise<readonly ListedPrompt[]>;
  /** Lists the resources that the caller can read. */
  list(kind: "resources"): Promise<readonly ListedResource[]>;
  /** Lists the resource templates that the caller can use. */
  list(kind: "resourceTemplates"): Promise<readonly ListedTemplate[]>;
  /**
   * Completes an argument of a prompt, or a variable of a resource template, for the same caller, as an inner call.
   * `arguments` are the values of the other arguments.
   *
   * @throws {McpError} if the prompt or template does not exist or is hidden from the caller.
   */
  complete(
    ref: { readonly type: "ref/prompt"; readonly name: string } | {
      readonly type: "ref/resource";
      readonly uri: string;
    },
    argument: { readonly name: string; readonly value: string },
    options?: { readonly arguments?: Readonly<Record<string, string>> },
  ): Promise<{ readonly values: readonly string[]; readonly total?: number; readonly hasMore?: boolean }>;
  /**
   * The method and the name of the handler that makes this inner call, such as `{ method: "tools/call", params: { name:
   * "plan" } }`. `undefined` for a call of the client, which cannot set this value, also if a tool such as `call_tool` only
   * passes the call on.
   */
  readonly outer?: HandlerCall;
  /**
   * Runs a function after the response has been sent. The function receives the outcome of the call. Errors that the
   * function throws are reported like a handler's errors. While the function runs, it counts as a running call of the
   * client, but has no timeout. When the server closes, it waits for the function as for a call. If the handler runs
   * again after a question, the handler must register the function again.
   */
  defer(run: (end: ServiceEnd) => unknown): void;
  /**
   * Closes the response stream without ending the call. The client can reconnect after `retryMs` milliseconds to
   * receive the remaining messages. Does nothing if the stream cannot be resumed: without HTTP, without a session, and in
   * revisions in which a stream does not begin with an event id.
   *
   * @see specification/2025-11-25/basic/transports (Sending Messages to the Server)
   */
  closeStream(retryMs?: number): void;
}
