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
  /** Decides whether a caller may see and use the handler. Defaults to every caller. */
  readonly allow?: Allow;
  /** Labels that select handlers, such as for `server.handlers.disable`. */
  readonly tags?: readonly string[];
  /**
   * Internal state for the registry.
   *
   * @ignore
   */
  readonly [INTERNALS]: HandlerInternals;
}

/** Tests for a handler, of any copy of this library. A server is none. */
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
  /** Handlers of other features that are added and removed with this one. */
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
  /** Makes the handler again with changed options. Groups need it. */
  readonly remake?: Remake;
}

/** Makes a handler again with changed options. */
export type Remake = (change: <O extends GroupedOptions>(options: O) => O) => Handler;

/** Any `allow`. */
export type GroupedAllow = (ctx: Context<never>, subject?: never) => boolean | Promise<boolean>;

/** Options of a handler that a group changes. */
export interface GroupedOptions {
  readonly name: string;
  /** URI of a resource, whose name is for people. */
  readonly uri?: string;
  /** URI scheme of a provider. */
  readonly scheme?: string;
  readonly use?: readonly Middleware[];
  readonly tags?: readonly string[];
  /** A resource also asks it about a single one, its subject. */
  readonly allow?: GroupedAllow;
}

/** An `allow` that also decides on single things. Without `subject`, it decides on the handler as a whole. */
export type BoundAllow = (call: Context, subject?: unknown) => boolean | Promise<boolean>;

/** Binds services to `allow`, which uses those that do not live for one call. */
export function bindAllow(
  allow: ((ctx: Context<never>, subject?: never) => boolean | Promise<boolean>) | undefined,
  services: Binding | undefined,
): BoundAllow | undefined {
  const shared = allow && services?.share((_call: Call, ctx: Context<never> | undefined, subject: unknown) =>
    // The context has the services of the handler, and a subject the type that it expects.
    allow(ctx as never, subject as never)
  );
  // The registry passes calls. Without services, `allow` needs none.
  const bound: unknown = shared ? (call: Call, subject?: unknown) => shared(call, undefined, subject) : allow;
  return bound as BoundAllow | undefined; // As above.
}

/** Additions of extensions to one handler, combined from its attributes. */
export interface HandlerExtensions {
  /** Dotted names of capabilities that clients must have declared, with those of the handler itself. */
  readonly requires: readonly string[];
  /** Metadata for the entry of the handler in its list, with that of the handler itself. */
  readonly _meta?: Meta;
  /** Extensions that the handler registers. */
  readonly also?: readonly Handler[];
  /** Returns what its author should be warned of. */
  warnings(): readonly string[];
  /** Checks the attributes against all handlers of the server. Throws a `TypeError` with the name of the handler. */
  verify(handlers: readonly Handler[], name: string): void;
  /** Runs a call within the attributes. Set only if an attribute wraps calls. */
  readonly run?: RunWithin;
}

/** Runs a call within something that belongs to its handler. */
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
   * Gives a call that goes on after its response a place, a charge and a timeout of its own, and waits for its result.
   * Throws if there is no place.
   */
  detach(call: Call, result: Promise<Result>, timeoutMs?: number): Promise<Outcome>;
  /** Converts any error to one for the client, and reports it if it is unexpected. */
  toError(error: unknown, call: Call): McpError;
}

/** The end of a call. `undefined` if it was cancelled without a response. */
export type Outcome =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: McpError; readonly result?: undefined }
  | undefined;

/** Returns the definitions of a feature's handlers. The feature's own factory created them, so it knows their type. */
export function toDefinitions<Definition>(handlers: readonly Handler[]): readonly Definition[] {
  // The registry passes each feature only its own handlers.
  return handlers.map((handler) => handler[INTERNALS].definition as Definition);
}

/** A capability of a server with its methods. */
export interface Feature {
  /** Name of the capability in the protocol, such as `tools`. */
  readonly name: string;
  /** Compiles all handlers of this feature to methods. Throws if the handlers are in conflict. */
  compile(handlers: readonly Handler[], core: FeatureParts): Compiled;
}

/** A compiled feature, ready to serve. */
export interface Compiled {
  /** Capabilities that the server declares. */
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** Handles a notification of a client. Returns `undefined` if the feature does not know it. */
  notify?(message: Notification, source: NotificationSource): Promise<Reply> | undefined;
  /** Keys of subscriptions that the feature serves. */
  readonly listen?: ReadonlyMap<string, ListenKey>;
  /** Whether a caller may learn of changes of a resource. Every caller may learn of an unknown one. */
  isVisible?(uri: string, call: Call): boolean | Promise<boolean>;
  /** Returns the functions that the provider of a URI has for subscriptions. */
  hooksOf?(uri: string): SubscriptionHooks | undefined;
}

/** Where a notification of a client comes from, and what runs its handler. */
export interface NotificationSource {
  /** Whether the client has a session. */
  readonly hasSession?: boolean;
  /** Creates the call that handles the notification. */
  open(message: Request, client: ClientFacts): Call;
  /** The client, as far as the notification describes it. */
  readonly client: { readonly version: string; readonly capabilities: unknown };
  readonly executor: Executor;
}

/** A key in the filter of a subscription that an extension serves. */
export interface ListenKey {
  /** Id of the extension. */
  readonly extension: string;
  /** Name of the key. */
  readonly key: string;
  /** Decides on the value of the filter. Returns `undefined` if nothing is granted. Throws the error for the client. */
  grant(value: unknown, call: Call): Promise<Granted | undefined>;
}

/** The granted part of a filter. */
export interface Granted {
  /** The value that the client is told. */
  readonly value: unknown;
  /** The topics that it stands for. */
  readonly topics: readonly string[];
}

/** Runs a call. It belongs to a method, or to the handler that the call names. */
export interface Runner {
  run(call: Call): Result | Promise<Result>;
  /** Parameters that clients repeat in HTTP headers. */
  readonly headers?: readonly HeaderParam[];
  /** Scopes that the caller must have. They are checked before anything is sent. */
  readonly scopes?: readonly string[];
  /** Dotted names of capabilities that the client must have declared. They are checked before anything is sent. */
  readonly requires?: readonly string[];
  /** How long clients may cache the result, and for which callers. */
  readonly cache?: Cache;
  /** Wraps calls of the handler, as its extensions do. */
  readonly extensions?: { readonly run?: RunWithin };
  /** Checks the limits of the handler before anything is sent. Throws the error for the client. */
  check?(call: Call): void;
}

/** Scope of a cached result: shared by all callers, bound to one caller, or shared only if the caller is anonymous. */
export type CacheScope = "public" | "private" | "anonymous";

/** Scope and lifetime of a cached result, in milliseconds. */
export interface Cache {
  readonly ttlMs: number;
  readonly scope: CacheScope;
}

/** Serves one method. */
export interface Method {
  /**
   * Finds the runner of a call. Throws the error for an unknown name, also if the caller may not see the handler.
   * It runs before all other checks, so that a caller cannot distinguish a hidden handler from an unknown one.
   */
  find(call: Call): Runner | Promise<Runner>;
  /** The parameter that identifies what the call is about, and that clients repeat in an HTTP header. */
  readonly subject?: string;
  /** Id of the extension that the method belongs to. */
  readonly extension?: string;
  /** Whether clients with sessions have this method of an extension too. */
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

/** Tests whether a caller may see something. If `allow` fails or returns no boolean, reports it and returns `false`. */
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

/** Returns `found` if the caller may see it. Otherwise throws the same refusal as for an unknown name. */
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
