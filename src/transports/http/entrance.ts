/**
 * The contract between the HTTP endpoint and the gate, which authenticates callers and loads on demand.
 *
 * @module
 */
import type { Principal } from "../../core/context.ts";
import type { SeenRequest } from "../../core/link.ts";
import type { TransportName } from "../../core/observer.ts";
import type { ConnectionInfo } from "./access.ts";

/** Authenticates callers, and hides their credentials from everything behind. */
export interface Gate {
  /** Returns the response of a route, if the request is for one. The host of its URL has not been checked. */
  respond(request: Request): Promise<Response> | undefined;
  /** Authenticates the caller of a request. Returns the response if it is refused. */
  enter(
    request: Request,
    info: ConnectionInfo | undefined,
    transport: TransportName,
  ): Admitted | Response | Promise<Admitted | Response>;
  /** Authenticates the caller of a request, and passes the request on to `fetch` with its principal. */
  admit(
    request: Request,
    info: ConnectionInfo | undefined,
    fetch: (request: Request, admitted: Admitted) => Promise<Response>,
  ): Promise<Response>;
  /** Returns what was found about the caller of an admitted request. */
  findAdmitted(info: ConnectionInfo | undefined): Admitted | undefined;
}

/** Loads the gate of a server. Each call returns the same one. */
export type LoadGate = () => Promise<Gate>;

/** Facts about an admitted request, to be passed to `fetch`. */
export interface Admitted extends ConnectionInfo {
  readonly principal: Principal;
  /** The request as handlers see it. */
  readonly seen: SeenRequest;
}
