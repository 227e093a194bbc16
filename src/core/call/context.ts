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
 * The authenticated caller, as established by the server's `auth` or by code in front of the server. Handlers get a
 * deeply frozen copy.
 */
export interface Principal {
  /** Stable, unique id of the caller. Sessions and the state of elicitations are bound to it. */
  readonly id: string;
  /** Permissions of the caller. Without a list, the caller has none. `allScopes` of `@x/mcp/auth` stands for all. */
  readonly scopes?: readonly string[];
  /**
   * Time at which the credentials expire, in milliseconds since 1970. Subscriptions, streams that wait for
   * notifications, and sockets end then.
   */
  readonly expiresAt?: number;
  /** Any other facts for handlers. */
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
  /** Least severe log level that the client wants. If not set, it gets no log messages. */
  readonly logLevel?: LogLevel;
}

/** A form for an elicitation. */
export interface ElicitOptions<S extends Schema = Schema> {
  /** Text above the form. */
  readonly message: string;
  /** Schema of the form: a flat object of strings, numbers, booleans and choices. */
  readonly schema: S;
  /**
   * Whether an answer counts once, for a consent that must not run the handler to its end again, such as to a payment.
   * From this question on, the server refuses an answer of the call that it has accepted before, with code -32602.
   * Defaults to `false`.
   */
  readonly singleUse?: boolean;
}

/**
 * A web page for an elicitation. Use it for data that must not pass through the client, such as passwords and payments.
 */
export interface ElicitUrlOptions {
  /** Reason why the user should open the page. */
  readonly message: string;
  /** URL of the page. */
  readonly url: string;
  /** Whether an answer counts once, as in {@linkcode ElicitOptions.singleUse}. */
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
   * Selects the callers to notify, such as `(ctx) => ctx.principal?.id === "ada"`. The context is that of the caller's
   * subscription. Defaults to all callers.
   */
  readonly to?: (ctx: Context) => boolean | Promise<boolean>;
}

/** Notifies clients of changes. Changes within 10 milliseconds are announced once. */
export interface ChangeNotifier {
  /** Notifies subscribers of a resource that it has changed. Callers that may not see the resource are not notified. */
  resourceUpdated(uri: string): void;
  /**
   * Notifies clients that a list has changed, for example because `allow` now decides differently. Adding and removing
   * handlers notifies them automatically. Does nothing if the server has never had handlers of this kind, unless
   * `capabilities` declares the list.
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

/** Returns what the server's `session` returned, with the type of that function. */
export interface ReadSession {
  <T>(session: (ctx: Context) => T): T;
  (): unknown;
}

/** Options of a log message. */
export interface LogOptions {
  /** Name of the logger, such as `db`. */
  readonly logger?: string;
}

/** Sends a log message with any JSON value. Returns a promise that settles when the client has room for more. */
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

/** A handler, as other handlers see it. */
export interface AnyHandler {
  /** Name of the handler. */
  readonly name: string;
  /** Its labels. */
  readonly tags?: readonly string[];
  /**
   * Marks objects that a factory such as `tool()` made.
   *
   * @ignore
   */
  readonly [INTERNALS]: object;
}

/** Decides whether a caller may see and use a handler. `S` has the services of the handler. */
export type Allow<S = NoServices> = (call: Context<S>) => boolean | Promise<boolean>;

/** Selects handlers: one by its kind and its name, or the URI of a resource, or all with a tag. */
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
  /** Removes handlers, and notifies clients of the changed lists. Unknown ones and `undefined` are ignored. */
  remove(...handlers: readonly (H | undefined)[]): void;
  /** Returns the handlers in the order in which they were added. */
  list(): readonly H[];
  /** Finds a handler, also in a group. Returns `undefined` if there is none. The name of a resource is its URI. */
  get(kind: "tool" | "resource" | "prompt" | "group", name: string): H | undefined;
  /**
   * Enables handlers that were disabled: for all callers, or for those for which `callers` returns `true`. Their `allow`
   * still decides too. For each handler and caller, the last call of `enable` or `disable` that applies counts, also for
   * handlers that are added later. The clients of which a list has changed are notified.
   *
   * Pass the same function for the same callers: a call replaces an earlier one with the same selection and function.
   *
   * @throws {TypeError} if the selection is wrong, such as the URI of a single resource of a template.
   */
  enable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
  /**
   * Disables handlers: for all callers, or for those for which `callers` returns `true`. For these callers they no longer
   * exist, as if `allow` refused them. Calls that run already go on, and those that wait in a queue are refused. See
   * {@linkcode HandlerSet.enable}.
   *
   * @throws {TypeError} if the selection is wrong, such as the URI of a single resource of a template.
   */
  disable(handlers: H | HandlerSelector, callers?: (ctx: Context) => boolean | Promise<boolean>): void;
}

/** The server, as its handlers see it. */
export interface RunningServer extends ChangeNotifier {
  /** The handlers, which can change while the server runs. */
  readonly handlers: HandlerSet;
}

/** Parameters that continue a request to another server. Empty the first time. */
export interface ForwardRetry {
  /** The answers of the client, by the keys of the other server. */
  readonly inputResponses?: Meta;
  /** The state of the other server. */
  readonly requestState?: unknown;
  /** Further parameters, so that they can be spread into others. */
  readonly [name: string]: unknown;
}

/** Details of a progress notification. */
export interface ProgressOptions {
  /** The value at which the work is done. Without it, the client shows no end. */
  readonly total?: number;
  /** A short message for people. */
  readonly message?: string;
}

/**
 * The context of a call: who the caller is, and methods to reach the client before the result.
 *
 * Once the call has ended or the client is gone, the methods that send notifications do nothing. They never throw.
 * `S` has the services that the handler declares.
 */
export interface Context<S = NoServices> {
  /** Values of the services that the handler declares, by name. Middleware sees none. */
  readonly services: S;
  /** Facts that the client declares about itself. */
  readonly client: ClientFacts;
  /** The authenticated caller, if the server has `auth` or one was passed to `fetch`. */
  readonly principal?: Principal;
  /**
   * Returns the value that the server's `session` returned. Pass that function to get the value with its type. Where
   * clients have a session, it is computed once, when the session begins. Otherwise it is computed for each request, when
   * it is first read. `undefined` if the server has no `session`.
   *
   * @throws {TypeError} if the given function is not that of the server, or what it returned cannot be kept.
   */
  readonly session: ReadSession;
  /**
   * Returns the parameters of the server's path, such as `{ tenant: "acme" }` for `/tenants/:tenant/mcp`. Pass the schema
   * that the server has as `params` to get them with their types.
   *
   * @throws {TypeError} if the path has no parameters, or `params` is not the schema of the server.
   */
  readonly route: ReadRoute;
  /** Changes handlers, and notifies clients of changes, like the members of the same names on the server. */
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
   * A text that is the same for each run of the tool with the same idempotency key of the same caller, on any instance. It
   * is a valid `token` for `set` and `append` of a store. `undefined` for a call without a key.
   */
  readonly idempotencyToken?: string;
  /**
   * Aborts when the call is cancelled or times out, or when its client disconnects and cannot resume. `signal.reason.why`
   * says why, such as `"timeout"`.
   */
  readonly signal: AbortSignal;
  /**
   * Sends a progress notification, if the client asked for progress. Returns a promise that settles when the client has
   * room for more.
   *
   * A value that does not grow is dropped. If the client reads too slowly, only the newest value is sent.
   *
   * @see specification/2026-07-28/basic/patterns/progress
   */
  progress(progress: number, options?: ProgressOptions): Promise<void>;
  /**
   * Sends log messages: `ctx.log.info(data, { logger: "db" })`. Messages below the client's log level are dropped.
   *
   * Each method returns a promise that settles when the client has room for more. Await it if you log a lot: otherwise
   * messages are dropped when the client reads too slowly.
   *
   * @see specification/2026-07-28/server/utilities/logging
   */
  readonly log: Log;
  /**
   * Asks the user to fill in a form. `key` identifies the question within this call. The same question under the same
   * key has the same answer.
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
   * Sends a request to another server, and passes the questions of its result on to the client of this call. `send` is
   * called again with the answers, to be sent as parameters of the same request, until a result asks nothing. The state
   * of the other server travels sealed in that of this one. Its errors are passed on with their code, message and data.
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
   * Computes a JSON value once per call, even if the handler runs again after a question. It runs at least once, not
   * exactly once. The sealed value travels through the client.
   *
   * All values of one call may have 32,768 bytes as JSON.
   *
   * @throws {RangeError} if the values of the call are larger, in every revision.
   */
  once<T>(key: string, make: () => T | Promise<T>): Promise<T>;
  /**
   * Returns the value of a service that the handler does not declare, for services that are chosen while it runs.
   *
   * Rejects for a service that lives for one call, unless the handler declares services.
   */
  get<T>(service: Service<T>): Promise<T>;
  /**
   * Reads a resource of this server as the same caller: with its `allow`, scopes, limits, guards and middleware. Questions
   * reach the client. Resources may read each other up to 8 levels deep.
   *
   * @throws {McpError} if the resource does not exist or is hidden from the caller, or the caller lacks its scopes.
   */
  readResource(uri: string): Promise<readonly ResourceContents[]>;
  /**
   * Runs a function after the call, when its response is on its way. It learns how the call ended. Its errors are
   * reported like those of handlers. Closing the server waits for it as for a call. Until it ends, it counts as a running
   * call of the client, without a timeout.
   *
   * If the handler runs again after a question, it registers the function again.
   */
  defer(run: (end: ServiceEnd) => unknown): void;
  /**
   * Closes the response stream but not the call. The client can reconnect for the rest after `retryMs` milliseconds.
   * Does nothing where streams cannot be resumed.
   */
  closeStream(retryMs?: number): void;
}
