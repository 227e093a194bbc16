/**
 * The interface of handlers, and of the features that serve handlers.
 */
import type { Notification, Params, Request, Result } from "../../core/protocol/jsonrpc.ts";
import type { HeaderParam } from "../../core/schema/header_params.ts";
import type { JsonSchema, Schema } from "../../core/schema/schema.ts";
import type { Call } from "../call/call.ts";
import type { Binding } from "../call/container.ts";
import type { Allow, ClientInfo, Context } from "../call/context.ts";
import type { FeatureParts } from "./feature_parts.ts";
import type { McpError } from "../../core/protocol/errors.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Reply } from "../call/link.ts";
import { type ABOUT, type ADDED, INTERNALS, type LISTED } from "../../core/internals.ts";
import type { Filter, HandlerGuards } from "./guards.ts";
import type { Serving } from "./subscribers.ts";
import { readVerdict } from "../call/verdict.ts";

/** A tool, a resource or a prompt, created by a factory such as `tool()`. */
export interface Handler {
  /** Name of the handler. */
  readonly name: string;
  /** Returns whether a caller may see and use the handler. By default, every caller may see and use the handler. */
  readonly allow?: Allow;
  /** Tags, by which `server.handlers.disable` and similar methods select handlers. */
  readonly tags?: readonly string[];
  /**
   * Internal state that the registry uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: HandlerInternals;
}

/** Another copy of this library may have created the handler. A server is not a handler. */
export function isHandler(value: unknown): value is Handler {
  return typeof value === "object" && value !== null && INTERNALS in value && "name" in value && !("fetch" in value);
}

/**
 * Internal state of a handler that the registry uses.
 *
 * @internal
 */
export interface HandlerInternals<Definition = unknown> {
  readonly feature: Feature;
  /** Unique within the feature. */
  readonly key: string;
  /** Text that no other handler of the server may have. Defaults to the kind and the key, such as `tool "add"`. */
  readonly id?: string;
  /** Handlers of other features that are added and removed together with this handler. */
  readonly also?: readonly Handler[];
  /**
   * Set if several handlers can bring handlers of this kind and key, of which the server serves one: the handler with the
   * lowest rank, and of these rather the handler that the author has added.
   */
  readonly rank?: 0 | 1;
  /** Tests whether the handler serves a URI. Set for resource templates and providers. */
  readonly serves?: (uri: string) => boolean;
  /** The handler's definition, in the form that the feature uses. */
  readonly definition: Definition;
  readonly services?: Binding;
  /** Scopes that every caller must have to use the handler. */
  readonly scopes?: readonly string[];
  readonly layers?: HandlerLayers;
  /** The `Life` of the handler. Set if the handler is an extension or a provider that starts and stops with the server. */
  readonly life?: object;
  /** Creates the handler again with changed options. Groups use this function. */
  readonly remake?: Remake;
  /** The words of the handler's group and of the handler, by which a search finds it. Clients do not see them. */
  readonly about?: readonly (readonly string[] | undefined)[];
  /**
   * Whether another server or a provider describes the handler, so that its hints are claims which nobody has checked.
   * `undefined` for a handler of the author, and `false` for a handler of another server that the author trusts.
   */
  readonly foreign?: boolean;
  /** Returns the schema of the results of a tool as an API documents them, which nobody checks. */
  readonly documented?: () => JsonSchema | undefined;
  /** Replaces the methods of the handler's feature, such as its list. Called after the feature was compiled. */
  readonly narrow?: Narrow;
  /** Names of tools that a search keeps in the list. */
  readonly always?: readonly string[];
  /** Set for a provider. Compiles the handlers of its feature with the handlers that providers find. */
  readonly provide?: Provide;
}

/** Compiles the handlers of a feature, of which at least one is a provider. `rule` applies rules to found handlers. */
export type Provide = (
  handlers: readonly Handler[],
  core: FeatureParts,
  all: readonly Handler[],
  rule?: (handlers: readonly Handler[]) => ReadonlyMap<Handler, Handler> | undefined,
) => Compiled;

/** Where a handler comes from, and how lists show it. */
export interface ListedParts {
  readonly foreign?: boolean;
  readonly documented?: HandlerInternals["documented"];
  /** Members of the entry that the library does not know. */
  readonly members?: Params;
  /** The arguments of a prompt, as lists show them. */
  readonly inputs?: readonly Argument[];
}

export interface Argument {
  readonly name: string;
  readonly title?: unknown;
  readonly description?: unknown;
  readonly required?: boolean;
}

/** Returns the methods of a feature that clients use instead. `handlers` are all handlers of the feature. */
export type Narrow = (compiled: Compiled, handlers: readonly Handler[], core: FeatureParts) => Compiled;

export type Remake = (change: <O extends GroupedOptions>(options: O) => O) => Handler;

/** The `allow` option of any kind of handler. */
export type GroupedAllow = (ctx: Context<never>, subject?: never) => boolean | Promise<boolean>;

export interface GroupedOptions {
  /** Changes a handler that a layer adds together with the handler. */
  readonly [ADDED]?: (added: Handler) => Handler;
  /** Words by which a search finds a tool of the group. */
  readonly [ABOUT]?: readonly string[];
  readonly [LISTED]?: ListedParts;
  readonly name: string;
  /** URI of a resource. A resource is identified by `uri`, and its `name` is only displayed. */
  readonly uri?: string;
  /** URI scheme of a provider. */
  readonly scheme?: string;
  readonly use?: readonly ((...given: never[]) => unknown)[];
  readonly tags?: readonly string[];
  /** For a resource template or provider, `subject` is the single resource that `allow` decides about. */
  readonly allow?: GroupedAllow;
}

/** Without `subject`, decides about the handler as a whole, otherwise about the single resource `subject`. */
export type BoundAllow = (call: Context, subject?: unknown) => boolean | Promise<boolean>;

/** Binds services to `allow`, which can use only services that live longer than one call. */
export function bindAllow(
  allow: ((ctx: Context<never>, subject?: never) => boolean | Promise<boolean>) | undefined,
  services: Binding | undefined,
): BoundAllow | undefined {
  const shared = allow && services?.share((_call: Call, ctx: Context<never> | undefined, subject: unknown) =>
    // The casts are safe, because the context contains the handler's services, and the subject has the type that
    // `allow` expects.
    allow(ctx as never, subject as never)
  );
  // The cast is safe, because the registry passes calls, and a call is a complete context for an `allow` without
  // services.
  const bound: unknown = shared ? (call: Call, subject?: unknown) => shared(call, undefined, subject) : allow;
  return bound as BoundAllow | undefined; // See above.
}

export interface HandlerLayers {
  /** The steps, in the order in which they run. */
  readonly steps: readonly LayerStep[];
  /** Dotted names of capabilities that the client must have declared, including the handler's own `requires`. */
  readonly requires: readonly string[];
  readonly also: readonly Handler[];
  /** The entry of the handler in lists, for the steps. Set when the handler has been defined. */
  readonly shown?: ShownEntry;
  /** Set if a layer has the step `onInput` or `onOutput`. */
  readonly guards?: HandlerGuards;
  /** Whether a layer wants to see the final result of each call. */
  readonly seesResults?: boolean;
  /** Returns warnings for `mcp check`. */
  warnings(): readonly string[];
  /** Reports arguments and members that layers could not add, once for each server. Set if there are any. */
  readonly report?: (core: FeatureParts) => void;
  /**
   * Checks the layers against all handlers of the server. Throws a `TypeError` with the handler's name if a check fails.
   */
  verify(handlers: readonly Handler[], name: string): void;
  /** Returns a function that runs a tool at most once per key. Set if a layer has the step `key`. */
  readonly keyed?: (invoke: Invoke, services: Binding | undefined) => Invoke;
  /** Adds the arguments of the layers to another input schema of the tool. Set if there are any. */
  readonly addArguments?: (input: Schema) => Schema;
  /** Puts the steps around the whole call around a runner: `limit`, `enter`, `around` and `result`. */
  readonly apply: Apply;
  /** Puts the steps around the runner of the completion of a prompt or template. */
  readonly completion?: Apply;
}

export interface ShownEntry {
  wire?: Wire;
  /** The arguments and members that layers add, and whether the schemas contain them. */
  added?: ReadonlyMap<object, boolean>;
}

/** Makes the entry of a handler known to its layers. */
export function showToLayers(layers: HandlerLayers | undefined, wire: Wire): Wire {
  if (layers?.shown) layers.shown.wire = wire;
  return wire;
}

/** Returns the entry of a handler in the form that clients receive. */
export type Wire = (core: Pick<FeatureParts, "publishSchema">) => object;

export type Apply = <R extends Runner>(runner: R) => R;

/** One step of a layer, or a middleware function. */
export interface LayerStep {
  readonly step: string;
  /** Name of the layer or of the middleware function. */
  readonly layer: string;
  /** Whether the step runs outside of the server's middleware. */
  readonly isOutermost?: boolean;
}

export type Invoke = (
  call: Call,
  ctx: undefined,
  input: unknown,
  core: FeatureParts,
  filter: Filter | undefined,
) => Result | Promise<Result>;

export type RunWithin = (call: Call, runner: Runner, executor: Executor) => Result | Promise<Result>;

/** The functions of the scheduler with which extensions run calls. */
export interface Executor {
  /** Whether the server accepts new calls. */
  readonly isOpen: boolean;
  readonly limits: Bounds["calls"];
  /** Runs a call through the middleware. `undefined` if there is no middleware. */
  readonly invoke?: (call: Call, runner: Runner) => Result | Promise<Result>;
  /** Runs a call within all limits, and returns the outcome. */
  run(call: Call, runner: Runner): Outcome | Promise<Outcome>;
  /** Runs a function while the call holds a slot. If no slot is free, rejects without calling the function. */
  prepareWith<T>(call: Call, run: () => Promise<T>): Promise<T>;
  /** Waits for a call that continues after its response, and counts towards `calls.detached`. Throws at the limit. */
  detach(call: Call, result: Promise<Result>, timeoutMs?: number): Promise<Outcome>;
  /** Reports the questions of a call that its handler has not awaited. */
  checkQuestions(call: Call, result: Result): void;
  /** Converts any error to the error that the client receives. Reports an unexpected error to the observer. */
  toError(error: unknown, call: Call): McpError;
}

/** The outcome of a call. `undefined` if the call was cancelled and has no response. */
export type Outcome =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: McpError; readonly result?: undefined }
  | undefined;

export function toDefinitions<Definition>(handlers: readonly Handler[]): readonly Definition[] {
  // The cast is safe, because the registry passes each feature only its own handlers.
  return handlers.map((handler) => handler[INTERNALS].definition as Definition);
}

/** The code that serves the methods of one server capability. */
export interface Feature {
  /** Name of the capability in the protocol, such as `tools`. */
  readonly name: string;
  /** `all` contains the handlers of all features. Throws if two handlers conflict. */
  compile(handlers: readonly Handler[], core: FeatureParts, all: readonly Handler[]): Compiled;
}

export interface Compiled {
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** Handles a client's notification. Returns `undefined` if the feature does not handle the notification. */
  notify?(message: Notification, source: NotificationSource): Promise<Reply> | undefined;
  /** The keys in `subscriptions/listen` that the feature serves. */
  readonly listen?: ReadonlyMap<string, ListenKey>;
  /**
   * Returns the handlers that serve a URI for a caller. The caller may be notified of changes if there is a handler. An
   * unknown resource has one, without hooks. Rejects if the list of a provider fails, after reporting its first failure.
   */
  servedTo?(uri: string, call: Call): readonly Serving[] | Promise<readonly Serving[]>;
  /** Whether a handler has hooks. */
  readonly hasHooks?: boolean;
  /** Whether providers find handlers that are not registered. */
  readonly hasProviders?: boolean;
}

/** The client and the connection from which a notification arrived. */
export interface NotificationSource {
  readonly hasSession?: boolean;
  /** Creates a call in whose context the notification is handled. */
  open(message: Request, client: ClientInfo): Call;
  /** The facts about the client that the notification contains. */
  readonly client: { readonly version: string; readonly capabilities: unknown };
  readonly executor: Executor;
}

export interface ListenKey {
  readonly extension: string;
  readonly key: string;
  /** Decides whether the extension exists for a caller. `undefined` if it exists for all callers. */
  readonly isShown?: IsShown;
  /**
   * Decides which part of the key's value in the filter is granted. Resolves to `undefined` if nothing is granted.
   * Rejects with the error that the client receives if the value is invalid.
   */
  grant(value: unknown, call: Call): Promise<Granted | undefined>;
}

export type IsShown = (call: Call) => boolean | Promise<boolean>;

export interface Granted {
  /** The granted value, which is sent to the client. */
  readonly value: unknown;
  readonly topics: readonly string[];
}

/** Runs a call. A method has one runner, or one runner per handler. */
export interface Runner {
  run(call: Call): Result | Promise<Result>;
  /** Parameters that the client must repeat in HTTP headers. */
  readonly headers?: readonly HeaderParam[];
  /** Scopes that the caller must have. Checked before the response starts. */
  readonly scopes?: readonly string[];
  /** Whether `allow` or a rule decides who may use the handler. Set only for resources. */
  readonly isRestricted?: boolean;
  /** Decides who may use the handler. Set only for tools and prompts. */
  readonly allow?: Allow;
  /** Returns the entry of the handler in lists. Set only for handlers that a provider has found. */
  readonly wire?: () => object;
  /** Dotted names of capabilities that the client must have declared. Checked before the response starts. */
  readonly requires?: readonly string[];
  /** The cache lifetime of the result, and the callers that may share the cached result. */
  readonly cache?: Cache;
  /** Runs the handler's calls through the steps `enter` of its layers, and through the layers of extensions. */
  readonly within?: RunWithin;
  /** Runs the steps `limit` before the response starts. Throws the client's error if a limit is reached. */
  check?(call: Call): Promise<void> | undefined;
}

/** Callers that may share a result: all (`public`), a single (`private`), or all anonymous callers (`anonymous`). */
export type CacheScope = "public" | "private" | "anonymous";

export interface Cache {
  readonly ttlMs: number;
  readonly scope: CacheScope;
}

export interface Method {
  /**
   * Finds the runner for a call. Throws the same error for an unknown name as for a handler that the caller may not
   * see. Called before all other checks, so that a caller cannot distinguish a hidden handler from an unknown handler.
   */
  find(call: Call): Runner | Promise<Runner>;
  /** The parameter that contains the handler's name or URI. Clients repeat this parameter in an HTTP header. */
  readonly subject?: string;
  /** Id of the extension that defines the method, if any. */
  readonly extension?: string;
  /** Whether other handlers bring the method's extension, so that rules for these handlers decide about the method. */
  readonly isBrought?: boolean;
  /** Whether a method of an extension also exists for clients with sessions. */
  readonly inSessions?: boolean;
  /** Whether the method's handlers may send requests to the client. */
  readonly asks?: boolean;
  /**
   * The member with the entries, if the result is a page of a list whose entries are the same objects until handlers
   * change, so that their JSON texts can be cached. If the page is frozen, it is the same object too.
   */
  readonly list?: string;
}

export function toMethod(runner: Runner, options: Omit<Method, "find"> = {}): Method {
  return { ...options, find: () => runner };
}

/** If `allow` throws, or does not return a boolean, reports the problem to the observer and returns `false`. */
export function isAllowed(allow: Allow | undefined, call: Call, core: FeatureParts): boolean | Promise<boolean> {
  if (!allow) return true;
  try {
    const allowed = readVerdict(allow(call), "allow");
    return typeof allowed === "boolean" ? allowed : allowed.catch((error) => hide(error, call, core));
  } catch (error) {
    return hide(error, call, core);
  }
}

function hide(error: unknown, call: Call, core: FeatureParts): false {
  core.report(error, call);
  return false;
}

/** Returns `found` if the caller may see the handler. Otherwise throws the same error as for an unknown name. */
export function revealTo<T extends { readonly allow?: Allow }>(
  call: Call,
  found: T | undefined,
  { core, refusal }: { readonly core: FeatureParts; readonly refusal: () => Error },
): T | Promise<T> {
  if (!found) throw refusal();
  if (!found.allow) return found;
  const allowed = isAllowed(found.allow, call, core);
  const decide = (allowed: boolean) => {
    if (allowed) return found;
    throw refusal();
  };
  return allowed instanceof Promise ? allowed.then(decide) : decide(allowed);
}
