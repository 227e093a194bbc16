/**
 * The interface of the HTTP endpoint for other HTTP transports, such as WebSocket.
 */
import type { Account } from "../../capacity/account.ts";
import type { ConnectionInfo } from "./access.ts";
import type { Caller, Place } from "./caller.ts";
import type { Callers } from "./callers.ts";
import type { EventStreams } from "./event_stream.ts";
import type { RequestBodies } from "./request_body.ts";
import type { Served } from "../channel.ts";

export interface HttpParts {
  readonly callers: Callers;
  account(caller: Caller): Account;
  peer(caller: Caller): string | undefined;
  readonly bodies: RequestBodies;
  readonly streams: EventStreams;
}

/** A request whose path has a different template from the server's path, such as a WebSocket request. */
export interface Wanted {
  readonly template: string;
  readonly request: Request;
  readonly info?: ConnectionInfo;
}

/** A concrete path, whose server may not exist yet. */
export interface Spot extends Place {
  /** Returns `undefined` if the path does not exist. Throws an `McpError` if too many paths are in use. */
  open(caller: Caller): Promise<Served | undefined>;
}

/** Throws an `McpError` if the parameters of too many requests are being checked. */
export type FindSpot = (wanted: Wanted) => Promise<Spot | undefined>;
