/**
 * Handlers, and the features that serve them.
 *
 * @module
 */
import type { Notification, Request, Result } from "../../protocol/jsonrpc.ts";
import type { HeaderParam } from "../../schema/header_params.ts";
import type { Call } from "../call/call.ts";
import type { Binding } from "../call/container.ts";
import type { Allow, ClientFacts, Context } from "../call/context.ts";
import type { FeatureParts } from "./feature_parts.ts";
import type { McpError } from "../../protocol/errors.ts";
import type { Meta } from "../../protocol/types.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Reply } from "../call/link.ts";
import { INTERNALS } from "../call/internals.ts";
import type { Middleware } from "../call/middleware.ts";
import type { SubscriptionHooks } from "./subscribers.ts";
import { readVerdict } from "../call/verdict.ts";

/** A tool, a resource or a prompt, created by its factory. */
export interface Handler {
  /** Name of the handler. */
  readonly name: string;
  /** Decides whether a caller may see and use the handler. Defaults to all callers. */
  readonly allow?: Allow;
  /** Tags that select handlers, for example for `server.handlers.disable`. */
  readonly tags?: readonly string[];
  /**
   * Internal state for the registry.
   *
   * @ignore
   */
  readonly [INTERNALS]: HandlerInternals;
}

/** Tests for a handler, created by any copy of this library. A server is not a handler. */
export function isHandler(value: unknown): value is Handler {
  return typeof value === "object" && value !== null && INTERNALS in value && "name" in value && !("fetch" in value);
}

/**
 * Internal state of a handler for the registry.
 *
 * @internal
 */
export interface HandlerInternals<Definition = unknown> {
  /** The feature that serves the handler. */
  readonly feature: Feature;
  /** Key of the handler, unique within its feature. */
  readonly key: string;
  /** Handlers of other features that are added and removed with this handler. */
  readonly also?: readonly Handler[];
  /** Tests whether the handler, a resource template or a provider, serves a URI. */
  readonly serves?: (uri: string) => boolean;
  /** Definition of the handler, as its feature needs it. */
  readonly definition: Definition;
  /** Services of the handler. */
  readonly services?: Binding;
  /** Scopes that every caller of the handler needs. */
  readonly scopes?: readonly string[];
  /** Additions of extensions to the handler. */
  readonly extensions?: HandlerExtensions;
  /** An extension that lives as long as its server. */
  readonly life?: object;
  /** Creates the handler again with changed options. Used by groups. */
  readonly remake?: Remake;
}

/** Creates a handler again with changed options. */
export type Remake = (change: <O extends GroupedOptions>(options: O) => O) => Handler;

/** An `allow` of any kind of handler. */
export type GroupedAllow = (ctx: Context<never>, subject?: never) => boolean | Promise<boolean>;

/** Options of a handler that a group changes. */
export interface GroupedOptions {
  readonly name: string;
  /** URI that identifies a resource. The resource's `name` is only for people. */
  readonly uri?: string;
  /** URI scheme of a provider. */
  readonly scheme?: string;
  readonly use?: readonly Middleware[];
  readonly tags?: readonly string[];
  /** For resources, `allow` also decides about a single resource, passed as `subject`. */
  readonly allow?: GroupedAllow;
}

/**
 * An `allow` that may also decide about a single subject. Without `subject`, it decides about the handler as a whole.
 */
export type BoundAllow = (call: Context, subject?: unknown) => boolean | Promise<boolean>;

/** Binds services to `allow`, which may only use services that live longer than one call. */
export function bindAllow(
  allow: ((ctx: Context<never>, subject?: never) => boolean | Promise<boolean>) | undefined,
  services: Binding | undefined,
): BoundAllow | undefined {
  const shared = allow && services?.share((_call: Call, ctx: Context<never> | undefined, subject: unknown) =>
    // The cast is safe, because the context has the services of the handler, and the subject has the type that `allow`
    // expects.
    allow(ctx as never, subject as never)
  );
  // The cast is safe, because the registry passes calls, and a call is a complete context for an `allow` without
  // services.
  const bound: unknown = shared ? (call: Call, subject?: unknown) => shared(call, undefined, subject) : allow;
  return bound as BoundAllow | undefined; // See above.
}

/** Additions of extensions to one handler, combined from its attributes. */
export interface HandlerExtensions {
  /** Dotted names of capabilities that clients must have declared, including the requirements of the handler itself. */
  readonly requires: readonly string[];
  /** Metadata for the handler's entry in its list, including the metadata of the handler itself. */
  readonly _meta?: Meta;
  /** Extensions that the handler registers. */
  readonly also?: readonly Handler[];
  /** Returns the texts of warnings for the author. */
  warnings(): readonly string[];
  /** Checks the attributes against all handlers of the server. Throws a `TypeError` with the name of the handler. */
  verify(handlers: readonly Handler[], name: string): void;
  /** Runs a call within the attributes. Set only if an attribute wraps calls. */
  readonly run?: RunWithin;
}

/** Runs a call within the attributes or the quota of its handler. */
export type RunWithin = (call: Call, runner: Runner, executor: Executor) => Result | Promise<Result>;

/** Runs calls for extensions. The scheduler implements it. */
export interface Executor {
  /** Whether new calls are accepted. */
  readonly isOpen: boolean;
  readonly limits: Bounds["calls"];
  /** Runs a call through the middleware, if there is any. */
  readonly invoke?: (call: Call, runner: Runner) => Result | Promise<Result>;
  /** Runs a call within the attributes of its handler and the middleware. */
  runWithin(call: Call, runner: Runner): Result | Promise<Result>;
  /** Runs a call to its outcome, within all limits. */
  run(call: Call, runner: Runner): Outcome | Promise<Outcome>;
  /**
   * Waits for the result of a call that continues after its response. The call has its own place, charge and timeout.
   * Throws if there is no free place.
   */
  detach(call: Call, result: Promise<Result>, timeoutMs?: number): Promise<Outcome>;
  /** Converts any error to an error for the client. Reports the error if it is unexpected. */
  toError(error: unknown, call: Call): McpError;
}

/** The outcome of a call. `undefined` if the call was cancelled without a response. */
export type Outcome =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: McpError; readonly result?: undefined }
  | undefined;

/**
 * Returns the definitions of a feature's handlers. The type is known, because the same feature's factory created the
 * handlers.
 */
export function toDefinitions<Definition>(handlers: readonly Handler[]): readonly Definition[] {
  // The cast is safe, because the registry passes each feature only its own handlers.
  return handlers.map((handler) => handler[INTERNALS].definition as Definition);
}

/** A capability of a server, and the code that serves its methods. */
export interface Feature {
  /** Name of the capability in the protocol, such as `tools`. */
  readonly name: string;
  /** Compiles all handlers of this feature to methods. Throws if handlers conflict. */
  compile(handlers: readonly Handler[], core: FeatureParts): Compiled;
}

/** A compiled feature, ready to serve. */
export interface Compiled {
  /** Capabilities that the server declares. */
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** Handles a notification of a client. Returns `undefined` if the feature does not handle it. */
  notify?(message: Notification, source: NotificationSource): Promise<Reply> | undefined;
  /** Keys of subscriptions that the feature serves. */
  readonly listen?: ReadonlyMap<string, ListenKey>;
  /** Whether a caller may be notified of changes of a resource. Every caller may be notified of an unknown resource. */
  isVisible?(uri: string, call: Call): boolean | Promise<boolean>;
  /** Returns the subscription functions of the provider that serves a URI. */
  hooksOf?(uri: string): SubscriptionHooks | undefined;
}

/** The source of a notification from a client. */
export interface NotificationSource {
  /** Whether the client has a session. */
  readonly hasSession?: boolean;
  /** Creates the call in which the notification is handled. */
  open(message: Request, client: ClientFacts): Call;
  /** The facts about the client that the notification contains. */
  readonly client: { readonly version: string; readonly capabilities: unknown };
  readonly executor: Executor;
}

/** A key in the filter of a subscription that an extension serves. */
export interface ListenKey {
  /** Id of the extension. */
  readonly extension: string;
  /** Name of the key. */
  readonly key: string;
  /**
   * Decides about the value in the filter. Returns `undefined` if nothing is granted. Throws the error for the client.
   */
  grant(value: unknown, call: Call): Promise<Granted | undefined>;
}

/** The granted part of a filter. */
export interface Granted {
  /** The value that is sent to the client as granted. */
  readonly value: unknown;
  /** The topics to which the value refers. */
  readonly topics: readonly string[];
}

/** Runs a call. It belongs to a method, or to the handler that the call names. */
export interface Runner {
  run(call: Call): Result | Promise<Result>;
  /** Parameters that clients repeat in HTTP headers. */
  readonly headers?: readonly HeaderParam[];
  /** Scopes that the caller must have. Checked before anything is sent. */
  readonly scopes?: readonly string[];
  /** Dotted names of capabilities that the client must have declared. Checked before anything is sent. */
  readonly requires?: readonly string[];
  /** How long clients may cache the result, and for which callers. */
  readonly cache?: Cache;
  /** Wraps calls of the handler, on behalf of its extensions. */
  readonly extensions?: { readonly run?: RunWithin };
  /** Checks the limits of the handler before anything is sent. Throws the error for the client. */
  check?(call: Call): void;
}

/** Scope of a cached result: shared by all callers, bound to one caller, or shared only by anonymous callers. */
export type CacheScope = "public" | "private" | "anonymous";

/** Scope and lifetime of a cached result, in milliseconds. */
export interface Cache {
  readonly ttlMs: number;
  readonly scope: CacheScope;
}

/** Serves one method. */
export interface Method {
  /**
   * Finds the runner of a call. Throws the same error for an unknown name and for a handler that the caller may not
   * see. Runs before all other checks, so that a caller cannot distinguish a hidden handler from an unknown one.
   */
  find(call: Call): Runner | Promise<Runner>;
  /** The parameter that identifies the subject of the call. Clients repeat it in an HTTP header. */
  readonly subject?: string;
  /** Id of the extension that the method belongs to. */
  readonly extension?: string;
  /** Whether a method of an extension also exists for clients with sessions. */
  readonly inSessions?: boolean;
  /** Whether a handler may send requests to the client. */
  readonly asks?: boolean;
  /** Whether the result stays the same object until handlers change, so that its JSON text can be cached. */
  readonly stable?: boolean;
}

/** Creates a method with a single runner. */
export function toMethod(runner: Runner, options: Omit<Method, "find"> = {}): Method {
  return { ...options, find: () => runner };
}

/**
 * Tests whether a caller may see a handler. If `allow` throws, or does not return a boolean, reports the problem and
 * returns `false`.
 */
export function isAllowed(allow: Allow | undefined, call: Call, core: FeatureParts): boolean | Promise<boolean> {
  if (!allow) return true;
  const fail = (error: unknown) => {
    core.report(error, call);
    return false;
  };
  try {
    const allowed = readVerdict(allow(call), "allow");
    return typeof allowed === "boolean" ? allowed : allowed.catch(fail);
  } catch (error) {
    return fail(error);
  }
}

/** Returns `found` if the caller may see it. Otherwise throws the same error as for an unknown name. */
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
