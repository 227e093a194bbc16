/**
 * Services: values that handlers share, or that live for one call, such as a database and a transaction.
 */
import type { INTERNALS } from "../../core/internals.ts";

/**
 * The lifetime of a service's value. The value lives as long as the server, as long as the value's key is in use, or
 * for one call.
 */
export type Lifetime = "server" | "key" | "call";

/**
 * The outcome of a call that used a service. `error` includes a tool result with `isError: true`. After
 * `input_required`, the handler runs again when the client has answered. For a service that lives longer than a call,
 * the outcome is always `result`.
 */
export type ServiceEnd = "result" | "error" | "cancelled" | "input_required";

/** A service, created by `service()`. A service is a plain object. Creating a service has no side effects. */
export interface Service<T = unknown, L extends Lifetime = Lifetime> {
  /** Name that error messages and observer events contain. */
  readonly name: string;
  /**
   * Internal state that the container uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: ServiceTypes<T, L>;
}

/**
 * Fields from which TypeScript infers a service's value type and lifetime.
 *
 * @internal
 */
export interface ServiceTypes<T, L> {
  /** Type of the value. Never set. */
  readonly value?: T;
  readonly lifetime: L;
}

/** The services that a handler declares, by name. */
export type Services = { readonly [name: string]: Service };

/** The services of a handler that declares no services. */
// deno-lint-ignore ban-types -- an empty object type, so that no name exists on it
export type NoServices = {};

/** The type of `ctx.services`: the service values by name. */
export type ServiceValues<S> = { readonly [K in keyof S]: S[K] extends Service<infer T> ? T : never } & NoServices;

/**
 * The type of `ctx.services` in `allow` and `list`: the service values by name, without services that live for one
 * call.
 */
export type SharedServiceValues<S> =
  & {
    readonly [K in keyof S as S[K] extends Service<unknown, "call"> ? never : K]: S[K] extends Service<infer T> ? T
      : never;
  }
  & NoServices;
