/**
 * The state of one session, on every transport.
 *
 * @module
 */
import type { LogLevel } from "../../protocol/types.ts";
import type { Account } from "../../core/capacity/account.ts";
import type { Call } from "../../core/call/call.ts";
import type { ClientFacts, Principal } from "../../core/call/context.ts";
import type { Core } from "../../core/core.ts";
import { InFlight } from "../../core/call/in_flight.ts";
import type { CancelReason, Observer, SessionEvent, TransportName } from "../../core/call/observer.ts";
import type { Dialect } from "../../core/pipeline.ts";
import type { SharedSession } from "../../core/store.ts";
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
  readonly transport: TransportName;
  /** Whether its end was reported. */
  hasEnded?: boolean;
  /** Id of the principal that owns the session. */
  readonly principal?: string;
  /** The principal of the latest request. Its permissions can change during the session. */
  caller?: Principal;
  /** Represents the client between its requests, so that `allow` can decide on notifications. */
  sessionCall?: Call;
  /** What the server's `session` returned, once it is known. */
  data?: readonly [unknown];
  /** What its calls have in common, from the first one on. */
  dialect?: Dialect;
  /** The calls of the session, where its request ids are unique. */
  readonly inFlight: InFlight;
  readonly requests: ServerRequests;
  /** Resumable streams. `undefined` without an id. */
  readonly streams?: Streams;
  /** The state that all instances share. `undefined` without a store or an id. */
  readonly shared?: SharedSession;
  /** Resources the client watches: the functions that end their subscriptions, by URI. */
  readonly watched: Map<string, () => void>;
  /** Sends the client a notification that belongs to no request. */
  notify(text: string, key?: string): void;
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
  known: Pick<Session, "account" | "notify" | "transport"> & Partial<Pick<Session, "caller" | "inFlight" | "shared">>,
): Session {
  const { account, notify, caller, inFlight = new InFlight(), transport, shared } = known;
  return {
    // The level applies until the client sets one.
    client: core.can.logging ? { logLevel: "info", ...client } : client,
    transport,
    principal: caller?.id,
    caller,
    inFlight,
    requests: new ServerRequests(core, shared),
    shared,
    watched: new Map(),
    notify,
    account,
    held: 0,
    seen: core.ticker.clock.now(),
    ends: Infinity,
  };
}

/** Reports a session, and its subscriptions when it ends. Its end is reported once. */
export function announce(
  { observer }: Core,
  session: Session,
  state: SessionEvent["state"],
  why?: SessionEvent["why"],
): void {
  const { id, client: { version: revision, info }, transport, principal } = session;
  if (state === "ended") {
    if (session.hasEnded) return;
    session.hasEnded = true;
    const end = why === "client" || why === "disconnected" || why === "closing" ? why : "session";
    if (observer.subscription) {
      for (const uri of session.watched.keys()) announceSubscription(observer, session, { uri, why: end });
    }
  }
  observer.session?.({ state, id: id && toShortId(id), revision, client: info, transport, principal, why });
}

/** Reports a subscription of a session. It has ended if `why` is set. */
export function announceSubscription(
  observer: Observer,
  { client: { version: revision }, transport, principal }: Session,
  { uri, why }: { readonly uri: string; readonly why?: CancelReason },
): void {
  const state = why ? "ended" : "opened";
  observer.subscription?.({ state, transport, principal, revision, lists: [], uris: [uri], why });
}

/**
 * Returns the end of a session id. It belongs to the seal, and its 48 bits distinguish a million ids. An engine copies
 * such a short slice, but a longer one would keep the whole id in memory.
 */
export function toShortId(id: string): string {
  return id.slice(-8);
}

/** Ends the subscriptions of a session. */
export function endSubscriptions({ watched }: Session): void {
  for (const end of watched.values()) end();
  watched.clear();
}
