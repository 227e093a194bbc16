/**
 * The context of a call, which handlers receive with their input.
 *
 * @module
 */
import type {
  ClientCapabilities,
  Implementation,
  LogLevel,
  Meta,
  ResourceContents,
  Root,
} from "../../protocol/types.ts";
import type { SamplingRequest, SamplingResult } from "../../protocol/types.ts";
import type { Infer, Schema } from "../../schema/schema.ts";
import type { INTERNALS } from "./internals.ts";
import type { NoServices, Service, ServiceEnd } from "./service.ts";

/**
 * The authenticated caller, as returned by the server's `auth`, or as passed to `fetch`. Handlers get a deeply frozen
 * copy.
 */
export interface Principal {
  /** Stable, unique id of the caller. Sessions and the state of elicitations are bound to it. */
  readonly id: string;
  /** Permissions of the caller. Defaults to no permissions. `allScopes` of `@x/mcp/auth` stands for all permissions. */
  readonly scopes?: readonly string[];
  /**
   * Time at which the credentials expire, in milliseconds since 1970. Subscriptions, streams that wait for
   * notifications, and sockets end at that time.
   */
  readonly expiresAt?: number;
  /** Any other facts about the caller, for use in handlers. */
  readonly [key: string]: unknown;
}

/** Facts that the client declares about itself. They are not verified: never use them to authorize. */
export interface ClientFacts {
  /** Protocol revision of this call. */
  readonly version: string;
  /** Name and version of the client, if it sent them. */
  readonly info?: Implementation;
  /** Capabilities of the client. */
  readonly capabilities: ClientCapabilities;
  /** Least severe log level that the client wants. `undefined` if it wants no log messages. */
  readonly logLevel?: LogLevel;
}

/** A form for an elicitation. */
export interface ElicitOptions<S extends Schema = Schema> {
  /** Text above the form. */
  readonly message: string;
  /** Schema of the form: a flat object of strings, numbers, booleans and choices. */
  readonly schema: S;
  /**
   * Whether the server accepts an answer only once. Use this option if the effect of a consent must not be repeated, as
   * with a payment. After this question, the server rejects every answer that it has already accepted in this call,
   * with code -32602. Defaults to `false`.
   */
  readonly singleUse?: boolean;
}

/**
 * A web page for an elicitation. Use a page for data that must not pass through the client, such as passwords and
 * payments.
 */
export interface ElicitUrlOptions {
  /** Reason why the user should open the page. */
  readonly message: string;
  /** URL of the page. */
  readonly url: string;
  /**
   * Whether the server accepts an answer only once, as with {@linkcode ElicitOptions.singleUse}. Defaults to `false`.
   */
  readonly singleUse?: boolean;
}

/** The user's answer to a form. */
export type Elicited<T> =
  | { readonly action: "accept"; readonly content: T }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** A list of the server, named after its kind of handlers. */
export type ListName = "tools" | "resources" | "prompts";

/** Options of `listChanged`. */
export interface ListChangedOptions {
  /**
   * Selects the callers to notify, such as `(ctx) => ctx.principal?.id === "ada"`. `ctx` is the context of the caller's
   * subscription. Defaults to all callers.
   */
  readonly to?: (ctx: Context) => boolean | Promise<boolean>;
}

/** Notifies clients of changes. Equal changes within 10 milliseconds are sent once. */
export interface ChangeNotifier {
  /**
   * Notifies the subscribers of a resource that it has changed. Callers that may not see the resource are not notified.
   */
  resourceUpdated(uri: string): void;
  /**
   * Notifies clients that a list has changed, for example because `allow` now decides differently. Adding and removing
   * handlers notifies them automatically. Does nothing if the server has never had handlers of this kind and
   * `capabilities` does not declare the list.
   *
   * @throws {TypeError} if no list has this name.
   */
  listChanged(list: ListName, options?: ListChangedOptions): void;
}

/** Returns the parameters of a path, with the types of their schema. */
export interface ReadRoute {
  <P extends Schema>(params: P): Infer<P>;
  (): Readonly<Record<string, unknown>>;
}

/** Returns the value that the server's `session` returned, with the type of that function. */
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
 * Sends a log message with any JSON value. Returns a promise that settles when the client has read enough for more
 * messages.
 */
export type LogMethod = (data: unknown, options?: LogOptions) => Promise<void>;

/** Sends log messages, with one method for each level. The methods work when destructured. */
export interface Log {
  /** Logs details for debugging. */
  readonly debug: LogMethod;
  /** Logs a normal event. */
  readonly info: LogMethod;
  /** Logs a normal but significant event. */
  readonly notice: LogMethod;
  /** Logs a possible problem. */
  readonly warning: LogMethod;
  /** Logs a failed operation. */
  readonly error: LogMethod;
  /** Logs a failed component. */
  readonly critical: LogMethod;
  /** Logs a condition that needs immediate action. */
  readonly alert: LogMethod;
  /** Logs that the system is unusable. */
  readonly emergency: LogMethod;
}

/** The properties of a handler that other handlers can read. */
export interface AnyHandler {
  /** Name of the handler. */
  readonly name: string;
  /** Tags of the handler. */
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

/**
 * Selects handlers: a single handler by its kind and its name (or the URI of a resource), or all handlers with a tag.
 */
export type HandlerSelector =
  | { readonly tool: string }
  | { readonly resource: string }
  | { readonly prompt: string }
  | { readonly group: string }
  | { readonly tag: string };

/** The handlers of a server, which can change while it runs. `H` is the type of a handler. */
export interface HandlerSet<H extends AnyHandler = AnyHandler> {
  /** Adds handlers, and notifies clients of the changed lists. */
  add(...handlers: readonly H[]): void;
  /** Removes handlers, and notifies clients of the changed lists. Ignores unknown handlers and `undefined`. */
  remove(...handlers: readonly (H | undefined)[]): void;
  /** Returns the handlers in the order in which they were added. */
  list(): readonly H[];
  /**
   * Finds a handler, including handlers of groups. Returns `undefined` if there is no such handler. The name of a
   * resource is its URI.
   */
  get(kind: "tool" | "resource" | "prompt" | "group", name: string): H | undefined;
  /**
   * Enables handlers that were disabled: for all callers, or for callers for which `callers` returns `true`. The
   * handlers' own `allow` still applies. For each handler and caller, the last matching call of `enable` or `disable`
   * decides, also for handlers that are added later. Clients whose lists have changed are notified.
   *
   * Pass the same function for the same callers: a call replaces an earlier call with the same selection and function.
   *
   * @throws {TypeError} if the selection is invalid, such as the URI of a single resource of a template.
   */
  enable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
  /**
   * Disables handlers: for all callers, or for callers for which `callers` returns `true`. For these callers the
   * handlers no longer exist, as if `allow` returned `false`. Running calls go on, and calls that wait in a queue are
   * refused. See {@linkcode HandlerSet.enable}.
   *
   * @throws {TypeError} if the selection is invalid, such as the URI of a single resource of a template.
   */
  disable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
}

/** The parts of the server that its handlers can use. */
export interface RunningServer extends ChangeNotifier {
  /** The handlers, which can change while the server runs. */
  readonly handlers: HandlerSet;
}

/** Parameters that continue a request to another server. Empty for the first request. */
export interface ForwardRetry {
  /** The answers of the client, by the keys of the other server's questions. */
  readonly inputResponses?: Meta;
  /** The `requestState` of the other server. */
  readonly requestState?: unknown;
  /** Index signature, so that the parameters can be spread into an object with further parameters. */
  readonly [name: string]: unknown;
}

/** Details of a progress notification. */
export interface ProgressOptions {
  /** The value of `progress` at which the work is done. Without it, the client cannot show how much is left. */
  readonly total?: number;
  /** A short human-readable message. */
  readonly message?: string;
}

/**
 * The context of a call: who the caller is, and methods to reach the client before the result.
 *
 * When the call has ended or the client has disconnected, the methods that send notifications do nothing. They never
 * throw. `S` is the type of the services that the handler declares.
 */
export interface Context<S = NoServices> {
  /** Values of the services that the handler declares, by name. Empty in middleware. */
  readonly services: S;
  /** Facts that the client declares about itself. */
  readonly client: ClientFacts;
  /** The authenticated caller, if the server has `auth`, or if a principal was passed to `fetch`. */
  readonly principal?: Principal;
  /**
   * Returns the value that the server's `session` returned. Pass that function to get the value with its type. For
   * clients with a session, the value is computed once, when the session begins. For other clients, it is computed for
   * each request in which it is read. `undefined` if the server has no `session` option.
   *
   * @throws {TypeError} if the given function is not the server's `session`, or if its return value cannot be kept.
   */
  readonly session: ReadSession;
  /**
   * Returns the parameters of the server's path, such as `{ tenant: "acme" }` for `/tenants/:tenant/mcp`. Pass the
   * schema of the server's option `params` to get typed values.
   *
   * @throws {TypeError} if the path has no parameters, or `params` is not the schema of the server.
   */
  readonly route: ReadRoute;
  /**
   * Changes handlers, and notifies clients of changes. Its members work like the server's members with the same names.
   */
  readonly server: RunningServer;
  /** Method of the request, such as `tools/call`. */
  readonly method: string;
  /** Parameters of the request, as the client sent them. */
  readonly params: Meta;
  /** The request's `_meta`. */
  readonly meta: Meta;
  /**
   * The HTTP request that carried the call, if any. Its body has already been read. If the server has `auth`, the
   * credentials are removed.
   */
  readonly http?: Request;
  /**
   * Text that is the same for each run of the tool with the same idempotency key and the same caller, on any instance.
   * It is a valid `token` for `set` and `append` of a store. `undefined` for a call without a key.
   */
  readonly idempotencyToken?: string;
  /**
   * Aborts when the call is cancelled or times out, or when its client disconnects and cannot resume.
   * `signal.reason.why` states the reason, such as `"timeout"`.
   */
  readonly signal: AbortSignal;
  /**
   * Sends a progress notification, if the client asked for progress. Returns a promise that settles when the client has
   * read enough for more messages.
   *
   * A value that is not greater than the previous one is dropped. If the client reads too slowly, only the newest value
   * is sent.
   *
   * @see specification/2026-07-28/basic/patterns/progress
   */
  progress(progress: number, options?: ProgressOptions): Promise<void>;
  /**
   * Sends log messages: `ctx.log.info(data, { logger: "db" })`. Messages below the client's log level are dropped.
   *
   * Each method returns a promise that settles when the client has read enough for more messages. Await it if you log a
   * lot: otherwise messages are dropped if the client reads too slowly.
   *
   * @see specification/2026-07-28/server/utilities/logging
   */
  readonly log: Log;
  /**
   * Asks the user to fill in a form. `key` identifies the question within this call. If the handler asks the same
   * question under the same key again, it gets the same answer.
   *
   * When the answer arrives, the handler may run again from the top. Do irreversible work after the last question.
   *
   * @throws {McpError} with code -32021 if the client does not support forms.
   * @throws {TypeError} if another question of this run has the same key.
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
   */
  sample(key: string, request: SamplingRequest): Promise<SamplingResult>;
  /**
   * Requests the client's roots: the directories and files that it offers.
   *
   * @throws {McpError} with code -32021 if the client does not support roots.
   */
  roots(): Promise<readonly Root[]>;
  /**
   * Sends a request to another server, and passes the questions in its result on to the client of this call. `send` is
   * called again with the answers, to be sent as parameters of the same request, until a result has no question. The
   * state of the other server is sealed into the state of this server. Errors of the other server are passed on with
   * their code, message and data.
   *
   * ```ts
   * import { tool } from "@x/mcp";
   * import type { Client } from "@x/mcp/client";
   *
   * export const forwarded = (upstream: Client, name: string) =>
   *   tool({
   *     name,
   *     run: (input, ctx) =>
   *       ctx.forward((retry) =>
   *         upstream.request("tools/call", { name, arguments: input, ...retry }, { rounds: false, signal: ctx.signal })
   *       ),
   *   });
   * ```
   *
   * @throws {McpError} with code -32021 if the client lacks the capability for a question.
   */
  forward<R extends object>(send: (retry: ForwardRetry) => R | Promise<R>): Promise<R>;
  /**
   * Computes a JSON value once per call, even if the handler runs again after a question. `make` runs at least once,
   * not exactly once. The client carries the sealed value between the runs.
   *
   * All values of one call together may have at most 32,768 bytes as JSON.
   *
   * @throws {RangeError} if the values of the call are larger, in every revision.
   */
  once<T>(key: string, make: () => T | Promise<T>): Promise<T>;
  /**
   * Returns the value of a service that the handler does not declare, for handlers that choose services while they run.
   *
   * Rejects for a service that lives for one call, unless the handler declares services.
   */
  get<T>(service: Service<T>): Promise<T>;
  /**
   * Reads a resource of this server on behalf of the same caller. The resource's `allow`, scopes, limits, guards and
   * the middleware apply. Questions of its handler are sent to the client. Resources may read each other up to 8 levels
   * deep.
   *
   * @throws {McpError} if the resource does not exist or is hidden from the caller, or the caller lacks its scopes.
   */
  readResource(uri: string): Promise<readonly ResourceContents[]>;
  /**
   * Runs a function after the call, when the response has been sent. The function receives the outcome of the call. Its
   * errors are reported like errors of handlers. Closing the server waits for the function as for a call. While it
   * runs, it counts as a running call of the client, without a timeout.
   *
   * If the handler runs again after a question, it must register the function again.
   */
  defer(run: (end: ServiceEnd) => unknown): void;
  /**
   * Closes the response stream, while the call continues. The client can reconnect after `retryMs` milliseconds to
   * receive the remaining messages. Does nothing if the stream cannot be resumed.
   */
  closeStream(retryMs?: number): void;
}
