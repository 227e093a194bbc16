/**
 * The interface of a container, which creates, stores and disposes a server's services.
 */
import type { McpError } from "../../core/protocol/errors.ts";
import type { Context } from "./context.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { Lives } from "./lives.ts";
import type { FaultPlace, Observer } from "./observer.ts";
import type { Lifetime, Service, ServiceEnd, Services } from "./service.ts";
import type { Ticker } from "../../core/timers.ts";

export interface ContainerParts {
  readonly ticker: Ticker;
  readonly observer?: Observer;
  /** Returns the error that the client receives. */
  report(error: unknown, about?: FaultPlace): McpError;
}

/** State that all calls to one endpoint share, with a reference to the endpoint's container. */
export interface ContainerHost {
  /**
   * The container. Created when the first handler with services is added. Of a mounted server, the share of the server in
   * the container of the mount. The server closes it before its store.
   */
  container?: Container;
  /** The host whose container is used instead. Set if several endpoints share a container. */
  root?: ContainerHost;
  /** The `Engine` of the server whose handle services get: the server that has the container, or the first of a mount. */
  engine?: object;
  /** The extensions that start and stop with the server. `undefined` without such extensions. */
  lives?: Lives;
  /** Path of the endpoint. A service with a key has separate values for each endpoint. */
  readonly endpoint?: string;
  /** Parts for a new container. `undefined` if this host cannot create a container. */
  readonly parts?: ContainerParts;
}

export function findRoot(host: ContainerHost): ContainerHost {
  return host.root ? findRoot(host.root) : host;
}

export interface ServiceCall extends Context<never> {
  readonly host: ContainerHost;
  /** Whether the call has ended and can no longer send anything. */
  readonly ended: boolean;
  /** Whether a handler is running. `false` during lookup and in list requests. */
  readonly asks: boolean;
  readonly reason?: unknown;
  /** Whether the client has not answered a question yet, and the handler will run again with the answer. */
  readonly isAsking: boolean;
}

/**
 * A handler's function that needs services. `context` defaults to the call. `context` is the second argument, because
 * inserting the context at another position takes longer than the rest of the injection.
 */
export type Injectable<C, A extends readonly unknown[], R> = (
  call: C,
  ctx: Context<never> | undefined,
  ...rest: A
) => R;

/** An {@linkcode Injectable} function without the `context` parameter, which the container provides. */
export type Injected<C, A extends readonly unknown[], R> = (
  call: C,
  ctx?: undefined,
  ...rest: A
) => R | Promise<Awaited<R>>;

/** The services of one handler. */
export interface Binding {
  /**
   * Whether a service's `dispose` uses the outcome of the call, for example to undo the work of a cancelled handler.
   */
  readonly undoes: boolean;
  /** Adds the handler's services to the host's container. Creates the container if necessary. */
  open(host: ContainerHost): void;
  /** Wraps a function that runs within a call. The function's context contains all services. */
  inject<C extends ServiceCall, A extends readonly unknown[], R>(run: Injectable<C, A, R>): Injected<C, A, R>;
  /** Wraps `allow` or `list`. The function's context contains only services that live longer than one call. */
  share<C extends ServiceCall, A extends readonly unknown[], R>(run: Injectable<C, A, R>): Injected<C, A, R>;
}

/** The services of one or more endpoints. */
export interface Container {
  /** Creates all services that live as long as the server. Rejects if a service cannot be created. */
  ready(): Promise<void>;
  /** Creates the services of `ready` on the first request. After this call, `disposeUnlessStarted` does nothing. */
  start(): void;
  /** Disposes all services, unless `start` was called. The next call creates the services again. */
  disposeUnlessStarted(): Promise<void>;
  /** Disposes all services permanently. Waits a limited time for each service. */
  close(): Promise<void>;
}

/** @internal */
export interface ServiceInternals {
  /** Only this function refers to the container's code, so that a server without services does not load it. */
  readonly bind: (services: Services, place: string) => Binding;
  /** Resolves to the service's value, for `ctx.get`. */
  readonly get: (call: ServiceCall, service: Service) => Promise<unknown>;
}

/** The internal state of a service that only the container uses. */
export interface Definition extends ServiceInternals {
  readonly lifetime: Lifetime;
  /** Returns the key to use in a call. Set for a service with one value per key. */
  readonly key?: (ctx: Context) => string | undefined;
  readonly make: (scope: never) => unknown;
  readonly dispose?: (value: unknown, end: ServiceEnd) => unknown;
  /** Services that `make` gets. A second copy of the library may have created the definition without this list. */
  readonly uses?: readonly Service[];
  readonly idleMs: number;
  readonly max: number;
}

export function toDefinition(service: Service): Definition {
  return service[INTERNALS] as unknown as Definition; // The cast is safe, because `service()` created the state.
}

/** Returns `undefined` if the value is not a service. */
export function findInternals(service: Service | undefined): ServiceInternals | undefined {
  // The cast is safe, because only a service has `bind`. Handlers and servers store other state under this key.
  const internals = service?.[INTERNALS] as ServiceInternals | undefined;
  return internals?.bind && internals;
}

/**
 * `place` names the handler in errors.
 *
 * @throws {TypeError} if a value is not a service, or if the handler's functions cannot use the service.
 */
export function bindServices(services: Services | undefined, place: string): Binding | undefined {
  if (services === undefined) return;
  let internals;
  for (const [name, service] of Object.entries(services)) {
    internals = findInternals(service);
    if (!internals) {
      throw new TypeError(`Cannot make ${place}: services.${name} is not a service; create the value with service()`);
    }
  }
  return internals?.bind(services, place);
}
