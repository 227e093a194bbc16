/**
 * The interface between the HTTP endpoint and the authenticator. The code of the authenticator loads only for servers
 * with `auth`.
 */
import type { ReadPathParams } from "../../call/context.ts";
import type { Engine } from "../../engine/era.ts";
import type { TransportName } from "../../call/observer.ts";
import type { ConnectionInfo } from "./access.ts";
import type { Caller, Place } from "./caller.ts";
import type { PathValues } from "./path_template.ts";

export interface Authenticator {
  /**
   * Returns the response of an authentication route without path parameters. Returns `undefined` if the request is not
   * for such a route. The host in the request's URL is not checked before this call.
   */
  respond(request: Request): Promise<Response> | undefined;
  /** Like `respond`, but also for routes with path parameters, which `open` reads. */
  respondAt(request: Request, open: OpenPathParams): Promise<Response | undefined>;
  /** Returns a response if the request is rejected. */
  authenticate<P extends Place>(
    request: Request,
    info: ConnectionInfo | undefined,
    options: EnterOptions<P>,
  ): Caller<P> | Response | Promise<Caller<P> | Response>;
  /** Returns whether a request has credentials in a header, cookie or query parameter that the authentication reads. */
  hasCredentials(request: Request): boolean;
  /** Rejects if it cannot be started. */
  ready(): Promise<void> | undefined;
  /** Rejects all requests that are being authenticated, because the server is closing. */
  close(): void;
  /** Waits a limited time. */
  stop(): Promise<void>;
}

/** Validates and converts path parameters. Resolves to `undefined` if the parameters are invalid. */
export type OpenPathParams = (values: PathValues) => Promise<ReadPathParams | undefined>;

/** The endpoint through which a request reached the authenticator. */
export interface EnterOptions<P extends Place = Place> {
  readonly transport: TransportName;
  /** The concrete path, if the server's path has parameters. */
  readonly place?: P;
}

export interface AuthenticatorParts {
  readonly engine: Engine;
  readonly path: string;
  readonly proxies: readonly string[];
}
