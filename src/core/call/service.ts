/**
 * Services: values that handlers share, or that live for one call, such as a database and a transaction.
 *
 * @module
 */
import type { INTERNALS } from "./internals.ts";

/** The lifetime of a service's value: as long as the server, as long as its key is used, or for one call. */
export type Lifetime = "server" | "key" | "call";

/**
 * How the use of a service ended. `error` includes a tool result with `isError: true`. After `input_required`, the
 * handler runs again when the client has answered. For a service that outlives calls, the end is always `result`.
 */
export type ServiceEnd = "result" | "error" | "cancelled" | "input_required";

/** A service, created by `service()`. It is a plain object; creating it has no side effects. */
export interface Service<T = unknown, L extends Lifetime = Lifetime> {
  /** Name of the service, for error messages and observers. */
  readonly name: string;
  /**
   * Internal state for the container.
   *
   * @ignore
   */
  readonly [INTERNALS]: ServiceTypes<T, L>;
}

/**
 * Types of a service, for inference only.
 *
 * @internal
 */
export interface ServiceTypes<T, L> {
  /** Type of the value. Never set. */
  readonly value?: T;
  readonly lifetime: L;
}

/** Services, by the name under which a handler uses them. */
export type Services = { readonly [name: string]: Service };

/** The services of a handler that declares no services. */
// deno-lint-ignore ban-types -- an empty object type, so that no name exists on it
export type NoServices = {};

/** Values of services by name, as in `ctx.services`. */
export type ServiceValues<S> = { readonly [K in keyof S]: S[K] extends Service<infer T> ? T : never } & NoServices;

/** Values of services by name, as `allow` and `list` receive them: without services that live for one call. */
export type SharedServiceValues<S> =
  & {
    readonly [K in keyof S as S[K] extends Service<unknown, "call"> ? never : K]: S[K] extends Service<infer T> ? T
      : never;
  }
  & NoServices;
