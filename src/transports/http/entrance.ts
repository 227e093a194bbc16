/**
 * Authentication as the HTTP transports see it. Its implementation loads with the first request.
 *
 * @module
 */
import type { Authenticate, Authentication, AuthRoute, AuthTransport } from "../../core/auth.ts";
import type { Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import type { SeenRequest } from "../../core/link.ts";
import type { ConnectionInfo } from "./access.ts";
import type { Gate } from "./gate.ts";

/** Facts about an admitted request, to be passed to `fetch`. */
export interface Admitted extends ConnectionInfo {
  readonly principal: Principal;
  /** The request as handlers see it. */
  readonly seen: SeenRequest;
}

/** Authenticates the caller of a request. Returns the response if it is refused. */
export type Enter = (
  request: Request,
  info: ConnectionInfo | undefined,
  transport: AuthTransport,
) => Admitted | Response | Promise<Admitted | Response>;

/** The parts of a server that authentication uses. */
export interface EntranceOptions {
  readonly core: Core;
  /** Addresses of trusted proxies. */
  readonly proxies: readonly string[];
}

/** Authenticates the callers of a server, and serves the routes of its authentication. */
export class Entrance {
  readonly #routes: ReadonlyMap<string, AuthRoute>;
  readonly #load: () => Promise<Gate>;
  #gate?: Gate;

  /** Creates the entrance of a server. */
  constructor(auth: Authentication, options: EntranceOptions) {
    this.#routes = new Map(auth.routes?.map((route) => [route.path, route]));
    this.#load = async () => this.#gate ??= new (await import("./gate.ts")).Gate(auth, options);
  }

  /** Authenticates the caller of a request. Returns the response if it is refused. */
  readonly enter: Enter = (...given) =>
    this.#gate ? this.#gate.enter(...given) : this.#load().then((gate) => gate.enter(...given));

  /** Returns the response of a route, if the request is for one. The host of its URL has not been checked. */
  respond(request: Request): Promise<Response> | undefined {
    const route = this.#routes.get(request.url.replace(/^[^/]*\/\/[^/]*|[?#].*/gs, ""));
    return route && this.#load().then((gate) => gate.respond(route, request));
  }
}

/** Reads the option `auth` of a server. Throws if it cannot authenticate. */
export function readAuth(auth: Authentication | Authenticate | undefined): Authentication | undefined {
  const read = typeof auth === "function" ? { authenticate: auth } : auth;
  if (read === undefined || typeof Object(read).authenticate === "function") return read;
  throw new TypeError("Cannot create a server: auth is not a function and has no authenticate(); use apiKey() or such");
}

/** Whether a request has been admitted. */
export function isAdmitted(info: ConnectionInfo | undefined): info is Admitted {
  return info !== undefined && "seen" in info;
}
