/**
 * The parts of the HTTP endpoint that other HTTP transports share, such as WebSocket.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Core } from "../../core/core.ts";
import type { Principal } from "../../core/context.ts";
import type { CallerOptions, ConnectionInfo } from "./access.ts";
import type { LoadGate } from "./entrance.ts";
import type { EventStreams } from "./event_stream.ts";
import type { RequestBodies } from "./request_body.ts";

/** The parts of the HTTP endpoint that other HTTP transports share. */
export interface HttpParts {
  readonly core: Core;
  /** Path of the endpoint. */
  readonly path: string;
  /**
   * Returns the rejection of a request from a forbidden host or origin, or of any request while the server is closing.
   */
  check(request: Request, info?: ConnectionInfo, options?: CallerOptions): Promise<Response> | undefined;
  /** Loads the gate, which authenticates callers. `undefined` if the server has no `auth`. */
  readonly loadGate?: LoadGate;
  /** Returns the account of the client. */
  account(request: Request, info: unknown, principal: Principal | undefined): Account;
  /** Reads bodies within the server's limits. */
  readonly bodies: RequestBodies;
  readonly streams: EventStreams;
  /** Settles when the server has closed. */
  readonly ended: Promise<void>;
}
