/**
 * Handlers, and the features that serve them.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { HeaderParam } from "../schema/header_params.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { INTERNALS } from "./internals.ts";
import type { SubscriptionHooks } from "./subscribers.ts";

/** Decides whether a caller may see and use a handler. */
export type Allow = (call: Context) => boolean | Promise<boolean>;

/** A tool, a resource or a prompt, created by its factory. */
export interface Handler {
  /** Name of the handler. */
  readonly name: string;
  /** Decides whether a caller may see and use the handler. Defaults to every caller. */
  readonly allow?: Allow;
  /**
   * Internal state for the registry.
   *
   * @ignore
   */
  readonly [INTERNALS]: HandlerInternals;
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
  /** Definition of the handler, as its feature needs it. */
  readonly definition: Definition;
}

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
  compile(handlers: readonly Handler[], core: Core): Compiled;
}

/** A compiled feature, ready to serve. */
export interface Compiled {
  /** Capabilities that the server declares. */
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** Whether a caller may learn of changes of a resource. Every caller may learn of an unknown one. */
  isVisible?(uri: string, call: Call): boolean | Promise<boolean>;
  /** Returns the functions that the provider of a URI has for subscriptions. */
  hooksOf?(uri: string): SubscriptionHooks | undefined;
}

/** Runs a call. It belongs to a method, or to the handler that the call names. */
export interface Runner {
  run(call: Call): Result | Promise<Result>;
  /** Parameters that clients repeat in HTTP headers. */
  readonly headers?: readonly HeaderParam[];
  /** Dotted names of capabilities that the client must have declared. They are checked before anything is sent. */
  readonly needs?: readonly string[];
  /** How long clients may cache the result, and for which callers. */
  readonly cache?: Cache;
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
  /** The parameter that identifies the handler, and that clients repeat in an HTTP header. */
  readonly subject?: "name" | "uri";
  /** Whether a handler may send requests to the client. */
  readonly asks?: boolean;
  /** Whether the result stays the same object until handlers change, so that its JSON text can be cached. */
  readonly stable?: boolean;
}

/** Creates a method with a single runner. */
export function toMethod(runner: Runner, options: Omit<Method, "find"> = {}): Method {
  return { ...options, find: () => runner };
}

/** Tests whether a caller may see something. If `allow` fails, reports the error and returns `false`. */
export function isAllowed(allow: Allow | undefined, call: Call, core: Core): boolean | Promise<boolean> {
  if (!allow) return true;
  const fail = (error: unknown) => {
    core.report(error, call);
    return false;
  };
  try {
    const allowed: unknown = allow(call);
    // Query builders are thenables but not promises.
    return typeof Object(allowed).then === "function" ? Promise.resolve(allowed).then(Boolean, fail) : Boolean(allowed);
  } catch (error) {
    return fail(error);
  }
}

/** Returns `found` if the caller may see it. Otherwise throws the same refusal as for an unknown name. */
export function revealTo<T extends { readonly allow?: Allow }>(
  call: Call,
  found: T | undefined,
  { core, refusal }: { readonly core: Core; readonly refusal: () => Error },
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
