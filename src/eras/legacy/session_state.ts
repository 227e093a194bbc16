/**
 * The state of one session, on every transport.
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

/** Facts that client and server negotiated, with the current log level. */
export interface SessionFacts extends ClientFacts {
  readonly version: Version;
  logLevel?: LogLevel;
}

/** One session as this process knows it. */
export interface Session {
  /** Session id. `undefined` for a session that ends with its connection or its only request. */
  readonly id?: string;
  readonly client: SessionFacts;
  /** Id of the principal that owns the session. */
  readonly principal?: string;
  /** The principal of the latest request. Its permissions can change during the session. */
  caller?: Principal;
  /** Represents the client between its requests, so that `allow` can decide on notifications. */
  sessionCall?: Call;
  /** The calls of the session, where its request ids are unique. */
  readonly inFlight: InFlight;
  readonly requests: ServerRequests;
  /** Resumable streams. `undefined` without an id. */
  readonly streams?: Streams;
  /** Resources the client watches: the functions that end their subscriptions, by URI. */
  readonly watched: Map<string, () => void>;
  /** Sends the client a notification that belongs to no request. */
  notify(text: string): void;
  /** Account of the client. */
  readonly account: Account;
  /** Bytes charged for the session. */
  held: number;
  /** Time of the client's latest message, in milliseconds of the monotonic clock. */
  seen: number;
  /** Time at which the session ends in any case, in milliseconds of the monotonic clock. */
  readonly ends: number;
}

/** Creates a session without an id, which ends with its connection or its request. */
export function createSession(
  core: Core,
  client: SessionFacts,
  known: Pick<Session, "account" | "notify"> & Partial<Pick<Session, "caller" | "inFlight">>,
): Session {
  const { account, notify, caller, inFlight = new InFlight() } = known;
  return {
    // The level applies until the client sets one.
    client: { logLevel: "info", ...client },
    principal: caller?.id,
    caller,
    inFlight,
    requests: new ServerRequests(core),
    watched: new Map(),
    notify,
    account,
    held: 0,
    seen: core.ticker.clock.now(),
    ends: Infinity,
  };
}

/** Ends the subscriptions of a session. */
export function endSubscriptions({ watched }: Session): void {
  for (const end of watched.values()) end();
  watched.clear();
}
