/**
 * The interface of a container, which creates, keeps and disposes the services of a server.
 *
 * @module
 */
import type { McpError } from "../../protocol/errors.ts";
import type { Context } from "./context.ts";
import { INTERNALS } from "./internals.ts";
import type { Lives } from "./lives.ts";
import type { Observer } from "./observer.ts";
import type { Lifetime, Service, ServiceEnd, Services } from "./service.ts";
import type { Ticker } from "../capacity/timers.ts";

/** The parts of a server that a container uses. */
export interface ContainerParts {
  readonly ticker: Ticker;
  readonly observer?: Observer;
  /** Reports an unexpected error, and returns the error for the client. */
  report(error: unknown, about?: { readonly method?: string; readonly subject?: string }): McpError;
}

/** State that all calls of one server share, with the place of its container. */
export interface ContainerHost {
  /** The container. Created with the first handler that has services. */
  container?: Container;
  /** The host that has the container instead, if several endpoints share the container. */
  root?: ContainerHost;
  /** The extensions that start and stop with the server. `undefined` if there are none. */
  lives?: Lives;
  /** Path of the endpoint. Services by key have separate values for each endpoint. */
  readonly endpoint?: string;
  /** Set where containers can be created. */
  readonly parts?: ContainerParts;
}

/** Returns the host that has the container of an endpoint. */
export function findRoot(host: ContainerHost): ContainerHost {
  return host.root ? findRoot(host.root) : host;
}

/** A call, as a container sees it. */
export interface ServiceCall extends Context<never> {
  readonly host: ContainerHost;
  /** Whether the call has ended and can no longer send anything. */
  readonly ended: boolean;
  /** Whether a handler runs. `false` during lookup and for lists. */
  readonly asks: boolean;
  /** The reason why the call was cancelled. `undefined` if it was not cancelled. */
  readonly reason?: unknown;
  /** Whether a question is open, so that the handler runs again when the client has answered. */
  readonly isAsking: boolean;
}

/**
 * A function of a handler. Its context defaults to the call. The context is the second argument, because inserting an
 * argument anywhere else takes longer than the rest of the injection.
 */
export type Injectable<C, A extends readonly unknown[], R> = (
  call: C,
  ctx: Context<never> | undefined,
  ...rest: A
) => R;

/** The same function without the context, which the container provides. */
export type Injected<C, A extends readonly unknown[], R> = (
  call: C,
  ctx?: undefined,
  ...rest: A
) => R | Promise<Awaited<R>>;

/** The services of one handler. */
export interface Binding {
  /**
   * Whether the `dispose` of a service uses how the call has ended, for example to undo the work of a cancelled
   * handler.
   */
  readonly undoes: boolean;
  /** Creates the container of a server if necessary, and adds the services of this handler to it. */
  open(host: ContainerHost): void;
  /** Wraps a function that runs within a call. Its context has all services. */
  inject<C extends ServiceCall, A extends readonly unknown[], R>(run: Injectable<C, A, R>): Injected<C, A, R>;
  /** Wraps `allow` or `list`. Its context has only services that live longer than one call. */
  share<C extends ServiceCall, A extends readonly unknown[], R>(run: Injectable<C, A, R>): Injected<C, A, R>;
}

/** The services of one server. */
export interface Container {
  /** Creates all services that live as long as the server. Rejects if a service fails. */
  ready(): Promise<void>;
  /** Creates these services at the first request. From then on, `rest` does nothing. */
  start(): void;
  /** Disposes all services, unless a request has started the services. A later call creates the services again. */
  rest(): Promise<void>;
  /** Disposes all services permanently, within a limited time. */
  close(): Promise<void>;
}

/**
 * Internal state of a service.
 *
 * @internal
 */
export interface ServiceInternals {
  /** Binds services to a handler. This function refers to the container, which is loaded only when it is used. */
  readonly bind: (services: Services, place: string) => Binding;
  /** Returns the value of a service for `ctx.get`. */
  readonly get: (call: ServiceCall, service: Service) => Promise<unknown>;
}

/** A service as its container uses it. */
export interface Definition extends ServiceInternals {
  readonly lifetime: Lifetime;
  /** Returns the key of a call, for a service with one value per key. */
  readonly key?: (ctx: Context) => string | undefined;
  readonly make: (scope: never) => unknown;
  readonly dispose?: (value: unknown, end: ServiceEnd) => unknown;
  readonly idleMs: number;
  readonly max: number;
}

/** Returns the definition from which a service was created. */
export function toDefinition(service: Service): Definition {
  return service[INTERNALS] as unknown as Definition; // Created by `service()`.
}

/** Returns the internal state of a service, or `undefined` if the value is not a service. */
export function findInternals(service: Service | undefined): ServiceInternals | undefined {
  // Created by `service()`, perhaps in another copy of the library. Handlers and servers have no `bind`.
  const internals = service?.[INTERNALS] as ServiceInternals | undefined;
  return internals?.bind && internals;
}

/**
 * Binds the services of a handler.
 *
 * @throws {TypeError} if a value is not a service, or if a function of the handler cannot use it.
 */
export function bindServices(services: Services | undefined, place: string): Binding | undefined {
  if (services === undefined) return;
  let internals;
  for (const [name, service] of Object.entries(services)) {
    internals = findInternals(service);
    if (!internals) throw new TypeError(`Cannot make ${place}: services.${name} is not a service; use service()`);
  }
  return internals?.bind(services, place);
}
