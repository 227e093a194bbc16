/**
 * The parts of the HTTP endpoint that other HTTP transports use, such as WebSocket.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Principal, ReadRoute } from "../../core/context.ts";
import type { CallerOptions, ConnectionInfo } from "./access.ts";
import type { EventStreams } from "./event_stream.ts";
import type { PathValues } from "./path_template.ts";
import type { RequestBodies } from "./request_body.ts";
import type { PipeServer } from "../channel.ts";

/** The parts of the HTTP endpoint that other HTTP transports share. */
export interface HttpParts {
  /**
   * Returns the rejection of a request from a forbidden host or origin, or of any request while the server is closing.
   */
  check(request: Request, info?: ConnectionInfo, options?: CallerOptions): Response | undefined;
  /** Returns the account of the client. */
  account(request: Request, info: unknown, principal: Principal | undefined): Account;
  /** Reads bodies within the server's limits. */
  readonly bodies: RequestBodies;
  readonly streams: EventStreams;
}

/** A request for a concrete path that is spelled by another template, such as that of sockets. */
export interface Wanted {
  readonly template: string;
  readonly request: Request;
  readonly info?: ConnectionInfo;
}

/** A concrete path of a server whose path has parameters. It takes no room yet. */
export interface Spot {
  /** The concrete path of the endpoint, in its one spelling. */
  readonly path: string;
  /** The parameters as texts. */
  readonly values: PathValues;
  /** Returns the converted parameters. */
  readonly route: ReadRoute;
  /** Returns the server of the path, or `undefined` if there is none. Throws an `McpError` if too many are in use. */
  open(): Promise<PipeServer | undefined>;
}

/** Finds the concrete path of a request. Throws an `McpError` if too many requests are being checked. */
export type FindSpot = (wanted: Wanted) => Promise<Spot | undefined>;
