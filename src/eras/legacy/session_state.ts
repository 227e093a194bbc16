/**
 * What is kept of one session, on every transport.
 *
 * @module
 */
import type { LogLevel } from "../../protocol/types.ts";
import type { Account } from "../../core/account.ts";
import type { Call } from "../../core/call.ts";
import type { ClientFacts, Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import { InFlight } from "../../core/in_flight.ts";
import type { Streams } from "./replay.ts";
import { ServerRequests } from "./server_requests.ts";
import type { Version } from "./versions.ts";

/** What client and server agreed on, with the log level that may change. */
export interface SessionFacts extends ClientFacts {
  readonly version: Version;
  logLevel?: LogLevel;
}

/** One session as this process knows it. */
export interface Session {
  /** Its id; none if it lives as long as its connection, or as its one request. */
  readonly id?: string;
  readonly client: SessionFacts;
  /** Id of the principal that it belongs to. */
  readonly principal?: string;
  /** Who it belongs to, as last seen: what a principal may do can change while a session lives. */
  caller?: Principal;
  /** Stands for the client where no request of it runs. */
  sessionCall?: Call;
  /** The calls of the session, where its request ids are unique. */
  readonly inFlight: InFlight;
  readonly requests: ServerRequests;
  /** Streams that can be read again; none without an id. */
  readonly streams?: Streams;
  /** Resources the client watches. */
  readonly watched: Set<string>;
  /** Sends the client a notification that belongs to no request. */
  notify(text: string): void;
  /** What its client is charged with. */
  readonly account: Account;
  /** Bytes that are charged. */
  held: number;
  /** When the client last sent something. */
  seen: number;
  /** When it ends, however busy it is. */
  readonly ends: number;
}

/** A session that has just been agreed on. Without an id it lives as long as its connection or its request. */
export function createSession(
  core: Core,
  client: SessionFacts,
  known: Pick<Session, "account" | "notify"> & Partial<Pick<Session, "caller" | "inFlight">>,
): Session {
  const { account, notify, caller, inFlight = new InFlight() } = known;
  return {
    // Until a client sets a level.
    client: { logLevel: "info", ...client },
    principal: caller?.id,
    caller,
    inFlight,
    requests: new ServerRequests(core),
    watched: new Set(),
    notify,
    account,
    held: 0,
    seen: core.ticker.clock.now(),
    ends: Infinity,
  };
}
