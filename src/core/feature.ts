/**
 * What users register, and the features their handlers belong to.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { HeaderParam } from "../schema/header_params.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { INTERNALS } from "./internals.ts";

/** Whether a caller may see and use something. */
export type Allow = (call: Context) => boolean | Promise<boolean>;

/** A tool, a resource or a prompt: an object made by one of the factories. */
export interface Handler {
  /** Its name. */
  readonly name: string;
  /** Decides whether a caller may see and use it. Without it, everybody may. */
  readonly allow?: Allow;
  /**
   * What the registry needs.
   *
   * @ignore
   */
  readonly [INTERNALS]: HandlerInternals;
}

/**
 * What the registry needs of a handler.
 *
 * @internal
 */
export interface HandlerInternals<Definition = unknown> {
  /** What the handler is part of. */
  readonly feature: Feature;
  /** Unique within its feature. */
  readonly key: string;
  /** Handlers of other features that come and go with this one. */
  readonly also?: readonly Handler[];
  /** What the feature needs to serve it. */
  readonly definition: Definition;
}

/** What the handlers of one feature are made of. Their types are what that feature's factory has put in. */
export function toDefinitions<Definition>(handlers: readonly Handler[]): readonly Definition[] {
  // The registry hands every feature its own handlers back.
  return handlers.map((handler) => handler[INTERNALS].definition as Definition);
}

/** A capability of a server and the methods that come with it. */
export interface Feature {
  /** The capability's name on the wire, such as `tools`. */
  readonly name: string;
  /** Makes the methods out of all handlers of this feature; throws if they cannot stand together. */
  compile(handlers: readonly Handler[], core: Core): Compiled;
}

/** A feature that is ready to serve. */
export interface Compiled {
  /** What the server declares, by capability. */
  readonly capabilities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly methods: Readonly<Record<string, Method>>;
  /** Whether a caller may hear of changes of a resource. One that is not there yet, or no longer, is hidden from nobody. */
  sees?(uri: string, call: Call): boolean | Promise<boolean>;
}

/** What runs a call: a method that is about nothing in particular, or the handler that a call names. */
export interface Runner {
  run(call: Call): Result | Promise<Result>;
  /** Parameters that intermediaries see in headers. */
  readonly headers?: readonly HeaderParam[];
  /** Whether the result may be kept, and by whom. */
  readonly cache?: Cache;
}

/**
 * Who may keep a result: everybody, only the caller, or everybody if nothing is known of the caller.
 */
export type CacheScope = "public" | "private" | "anonymous";

/** Who may keep a result, and for how many milliseconds. */
export interface Cache {
  readonly ttlMs: number;
  readonly scope: CacheScope;
}

/** What answers one method. */
export interface Method {
  /**
   * Finds what runs a call. Throws what the caller learns if there is no such thing; what it may not see is no such
   * thing. Nothing else is checked or compared before this, so that nothing tells the two apart.
   */
  find(call: Call): Runner | Promise<Runner>;
  /** The parameter that names what the call is about, and that intermediaries see in a header. */
  readonly subject?: "name" | "uri";
  /** Whether a handler may ask the client something. */
  readonly asks?: boolean;
  /** Whether a result is the same object as long as nothing changes, so that its text can be kept. */
  readonly stable?: boolean;
}

/** A method that is about nothing in particular. */
export function toMethod(runner: Runner, options: Omit<Method, "find"> = {}): Method {
  return { ...options, find: () => runner };
}

/** Whether a caller may see something; `false` if that fails for a reason the author is told. */
export function isAllowed(allow: Allow | undefined, call: Call, core: Core): boolean | Promise<boolean> {
  if (!allow) return true;
  const fail = (error: unknown) => {
    core.report(error, call);
    return false;
  };
  try {
    const allowed: unknown = allow(call);
    // Query builders and the like can be awaited, and are no promises.
    return typeof Object(allowed).then === "function" ? Promise.resolve(allowed).then(Boolean, fail) : Boolean(allowed);
  } catch (error) {
    return fail(error);
  }
}

/** What was found, if the caller may see it; else throws the refusal of what does not exist. */
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
