/**
 * What other HTTP transports, such as WebSocket, use of the HTTP endpoint.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Core } from "../../core/core.ts";
import type { Principal } from "../../core/context.ts";
import type { CallerOptions, ConnectionInfo } from "./access.ts";
import type { EventStreams } from "./event_stream.ts";
import type { LazyEndpoint } from "./lazy_endpoint.ts";
import type { RequestBodies } from "./request_body.ts";

/** The HTTP endpoint of a server. */
export interface HttpEntry {
  readonly core: Core;
  /** Path of the endpoint, which may have parameters. */
  readonly path: string;
  /** The endpoint, which is loaded on demand. */
  readonly endpoint: LazyEndpoint;
  /** Settles when the server has closed. */
  readonly ended: Promise<void>;
}

/** The parts of the HTTP endpoint that other HTTP transports share. */
export interface HttpParts {
  /**
   * Returns the rejection of a request from a forbidden host or origin, or of any request while the server is closing.
   */
  check(request: Request, info?: ConnectionInfo, options?: CallerOptions): Promise<Response> | undefined;
  /** Returns the account of the client. */
  account(request: Request, info: unknown, principal: Principal | undefined): Account;
  /** Reads bodies within the server's limits. */
  readonly bodies: RequestBodies;
  readonly streams: EventStreams;
}
