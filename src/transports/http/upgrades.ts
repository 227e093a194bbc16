/**
 * What other transports over HTTP share with the endpoint: those that open a WebSocket or a stream beside it.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import type { CallerOptions, ConnectionInfo } from "./access.ts";
import type { EventStreams } from "./event_stream.ts";
import type { RequestBodies } from "./request_body.ts";

/** What other transports over HTTP share with the endpoint. */
export interface HttpParts {
  /** The path of the endpoint. */
  readonly path: string;
  /** Refuses a caller that may not talk to this server, and everybody when it is closing. */
  check(request: Request, info?: ConnectionInfo, options?: CallerOptions): Promise<Response> | undefined;
  /** The account of a request's client. */
  account(request: Request, info: unknown, principal: Principal | undefined): Account;
  /** Reads bodies within the server's limits. */
  readonly bodies: RequestBodies;
  readonly streams: EventStreams;
  /** Settles when the server has ended. */
  readonly ended: Promise<void>;
}
