/**
 * Authentication as the HTTP transports see it. Its implementation loads with the first request.
 *
 * @module
 */
import type { Authenticate, Authentication, AuthTransport } from "../../core/auth.ts";
import type { Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import type { SeenRequest } from "../../core/link.ts";
import type { ConnectionInfo } from "./access.ts";

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

/** Reads the option `auth` of a server. Throws if it cannot authenticate. */
export function readAuth(auth: Authentication | Authenticate | undefined): Authentication | undefined {
  if (auth === undefined) return;
  if (typeof auth === "function") return { authenticate: auth };
  if (typeof auth?.authenticate === "function") return auth;
  throw new TypeError("Cannot create a server: auth is not a function and has no authenticate(); use apiKey() or such");
}

/** Creates the function that authenticates callers. */
export function openEntrance(auth: Authentication, options: EntranceOptions): Enter {
  let enter: Enter | undefined;
  const load = async () => enter = (await import("./gate.ts")).createGate(auth, options);
  return (...request) => enter ? enter(...request) : load().then((enter) => enter(...request));
}

/** Whether a request has been admitted. */
export function isAdmitted(info: ConnectionInfo | undefined): info is Admitted {
  return info !== undefined && "seen" in info;
}
