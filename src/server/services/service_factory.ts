/**
 * Implements `service()`, which creates services.
 */
import { quote } from "../../core/protocol/errors.ts";
import { type Definition, findInternals } from "../call/container.ts";
import type { Context } from "../call/context.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import type { Lifetime, Service, ServiceEnd } from "../call/service.ts";
import type { ServerHandle } from "../engine/server_handle.ts";
import { bind, getService } from "./service_binding.ts";

/** The argument of `make`. The members can be destructured. */
export interface ServiceScope {
  /** Resolves to the value of another service that lives at least as long, and is disposed after this value. */
  readonly get: <T>(service: Service<T>) => Promise<T>;
  /**
   * Resolves to the handle of the server, with its store, sealed values, clock and notifications. All values of the
   * service share one handle, whose `signal` aborts when the server begins to close. A value can use the handle until it
   * is disposed. If the server's path has parameters, the service gets the handle of the server itself, and not of a
   * concrete path. If several servers are mounted, the service gets the handle of the first server, because the servers
   * share the service.
   *
   * Rejects if another service of the server has the same name and a handle, or if the lifetime of the value has ended.
   */
  readonly getServer: () => Promise<ServerHandle>;
  /** Aborts when the lifetime of this value ends, even if `make` has not returned yet. */
  readonly signal: AbortSignal;
}

/** Options of a service that lives as long as the server. */
export interface ServiceOptions<T> {
  /** Lifetime of a value. Defaults to `"server"`. */
  readonly per?: "server";
  /** Disposes a value. `end` is the outcome of its call. Defaults to its `Symbol.asyncDispose` or `Symbol.dispose`. */
  readonly dispose?: (value: T, end: ServiceEnd) => unknown;
  /**
   * The services that `make` gets. When the server starts, it creates the services in this list that live as long as
   * the server, like the services of handlers. A service that is not in the list is created on first use. Defaults to
   * an empty list.
   */
  readonly uses?: readonly Service[];
}

/** Options of a service that lives for one call. */
export interface CallServiceOptions<T> extends Omit<ServiceOptions<T>, "per"> {
  /** Creates one value for each call that uses the service. */
  readonly per: "call";
}

/** Options of a service with one value per key. */
export interface KeyedServiceOptions<T> extends Omit<ServiceOptions<T>, "per"> {
  /** Returns the key for a call, such as the caller's id, or `undefined` for a value that lives for one call. */
  readonly per: (ctx: Context) => string | undefined;
  /** Milliseconds after which an unused value is disposed. Defaults to 600,000. */
  readonly idleMs?: number;
  /**
   * Maximum number of values. If the maximum is reached, the longest idle value of the client with the most values is
   * disposed. If all values are in use, a call that needs another value fails. A quarter of the values is reserved for
   * clients that use only one value. Defaults to 1000.
   */
  readonly max?: number;
}

const HINTS = {
  scope: "per",
  lifetime: "per",
  close: "dispose",
  destroy: "dispose",
  needs: "uses",
  services: "uses",
} as const;

const USES = {
  findProblem: (value: unknown): string | undefined =>
    Array.isArray(value) && value.every(findInternals) ? undefined : "must be a list of services",
};

const PER_CALL = 'write per: "call" instead';

const PER_KEY = "set per to a function that returns a key";

const KEYED: KnownOptions<keyof KeyedServiceOptions<unknown>> = {
  names: { per: true, dispose: "function", uses: USES, idleMs: true, max: true },
  hints: HINTS,
  elsewhere: { perCall: PER_CALL },
};

const UNKEYED: KnownOptions<keyof ServiceOptions<unknown>> = {
  names: { per: true, dispose: "function", uses: USES },
  hints: HINTS,
  elsewhere: { perCall: PER_CALL, key: PER_KEY, idleMs: PER_KEY, max: PER_KEY },
};

/**
 * Creates a service: a value that is created on first use, shared by handlers, and disposed at the end of its lifetime.
 *
 * ```ts
 * import { createServer, service, tool } from "@x/mcp";
 *
 * const visits = service("visits", () => new Map<string, number>());
 *
 * const visit = tool({
 *   name: "visit",
 *   services: { visits },
 *   run: (_, { services: { visits } }) => {
 *     visits.set("total", (visits.get("total") ?? 0) + 1);
 *     return visits.get("total");
 *   },
 * });
 *
 * export default createServer({ name: "counter", version: "1.0.0", handlers: [visit] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function service<T>(
  name: string,
  make: (
    scope: ServiceScope & {
      /** The context of the call that uses the value. */
      readonly ctx: Context;
    },
  ) => T | Promise<T>,
  options: CallServiceOptions<T>,
): Service<T, "call">;
/**
 * Creates a service with one value per key, such as per caller or per tenant. `make` gets the key, which is `undefined`
 * for a value that lives for one call.
 */
export function service<T>(
  name: string,
  make: (
    scope: ServiceScope & {
      /** The key for which the value is created. `undefined` for a value that lives for one call. */
      readonly key: string | undefined;
    },
  ) => T | Promise<T>,
  options: KeyedServiceOptions<T>,
): Service<T, "key">;
/** Creates a service with one value for the server. */
export function service<T>(
  name: string,
  make: (scope: ServiceScope) => T | Promise<T>,
  options?: ServiceOptions<T>,
): Service<T, "server">;
export function service<T>(
  name: string,
  make: (scope: never) => T | Promise<T>,
  options: Partial<Omit<KeyedServiceOptions<T>, "per">> & { readonly per?: Lifetime | KeyedServiceOptions<T>["per"] } =
    {},
): Service<T, never> {
  checkOptions(`make service ${quote(name)}`, options, typeof Object(options).per === "function" ? KEYED : UNKEYED);
  const { per = "server", dispose, uses = [], idleMs = 600_000, max = 1000 } = options;
  const refuse = (state: string) => new TypeError(`Cannot make service ${quote(name)}: ${state}`);
  if (typeof name !== "string" || !name) throw refuse("the name is not a non-empty string");
  if (typeof make !== "function") throw refuse("make is not a function");
  if (per !== "server" && per !== "call" && typeof per !== "function") {
    throw refuse(`per is ${show(per)}; it must be "server", "call" or a function that returns a key`);
  }
  // Check the type, because the sum of a time and a string is a string, and the value would never be disposed.
  if (!(typeof idleMs === "number" && idleMs >= 0)) {
    throw refuse(`idleMs is ${show(idleMs)}; it must be a number of at least 0`);
  }
  if (!(typeof max === "number" && max >= 1)) throw refuse(`max is ${show(max)}; it must be a number of at least 1`);
  const definition: Definition = {
    lifetime: typeof per === "function" ? "key" : per,
    key: typeof per === "function" ? per : undefined,
    make,
    // The cast is safe, because `make` created the value.
    dispose: dispose && ((value, end) => dispose(value as T, end)),
    uses,
    idleMs,
    max,
    bind,
    get: getService,
  };
  return { name, [INTERNALS]: definition as Definition & { readonly lifetime: never } }; // The cast is safe, because the overloads declare the lifetime.
}
