/**
 * The interface between the HTTP endpoint and the authenticator, which authenticates callers and loads on demand.
 *
 * @module
 */
import type { ReadRoute } from "../../core/call/context.ts";
import type { Accounts } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { TransportName } from "../../core/call/observer.ts";
import type { ConnectionInfo } from "./access.ts";
import type { Caller, Place } from "./caller.ts";
import type { PathValues } from "./path_template.ts";

/** Authenticates callers, and hides their credentials from handlers, middleware and observers. */
export interface Authenticator {
  /**
   * Returns the response of a route without parameters, if the request is for such a route. The host in the request's
   * URL has not been checked at this point.
   */
  respond(request: Request): Promise<Response> | undefined;
  /** Returns the response of any route, like `respond`. `open` reads the parameters of the route's path. */
  respondAt(request: Request, open: OpenRoute): Promise<Response | undefined>;
  /** Authenticates the caller of a request. Returns the response if the request is refused. */
  authenticate<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    options: EnterOptions<P>,
  ): Caller<P> | Response | Promise<Caller<P> | Response>;
  /** Returns whether a request has credentials in a place that the authentication reads. */
  hasCredentials(request: Request): boolean;
  /** Refuses all requests that wait for their authentication, because the server is closing. */
  close(): void;
}

/** Converts and checks the parameters of a path. Returns `undefined` if they are not valid. */
export type OpenRoute = (values: PathValues) => Promise<ReadRoute | undefined>;

/** How a request reached the authenticator. */
export interface EnterOptions<P extends Place = Place> {
  readonly transport: TransportName;
  /** The concrete path, if the path of the server has parameters. */
  readonly place?: P;
}

/** The parts of a server that the authenticator needs. */
export interface AuthenticatorParts {
  readonly core: Core;
  readonly accounts: Accounts;
  /** Path of the server. */
  readonly path: string;
  /** Addresses of trusted proxies. */
  readonly proxies: readonly string[];
}
