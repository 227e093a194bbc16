/**
 * The state of a session, which is the same on every transport.
 */
import { toFrozen } from "../../../core/kit/frozen.ts";
import type { LogLevel } from "../../../core/protocol/types.ts";
import type { Account } from "../../capacity/account.ts";
import type { Call } from "../../call/call.ts";
import type { ClientInfo, Principal } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import { InFlight } from "../../call/in_flight.ts";
import type { CancelReason, Observer, SessionEvent, TransportName } from "../../call/observer.ts";
import type { Dialect } from "../../engine/pipeline.ts";
import type { SharedSession } from "../../engine/store.ts";
import type { SessionWatch } from "./lost_messages.ts";
import type { Streams } from "./replay.ts";
import { ServerRequests } from "./server_requests.ts";
import type { Version } from "./versions.ts";

/** The result of the negotiation in `initialize`, and the current log level. */
export interface SessionInfo extends ClientInfo {
  readonly version: Version;
  logLevel?: LogLevel;
}

export interface Session {
  /** The session id. `undefined` for a session that ends with its connection or with its only request. */
  readonly id?: string;
  readonly client: SessionInfo;
  readonly transport: TransportName;
  /** Whether the observer has received the end of the session. */
  hasEnded?: boolean;
  /** The id of the principal that owns the session. */
  readonly principal?: string;
  /** The principal of the latest request. Its permissions can change during the session. */
  caller?: Principal;
  /** The latest call that represents the client between requests. */
  sessionCall?: Call;
  /** The value that the server's `sessionData` function returned. `undefined` until the function has returned. */
  data?: readonly [unknown];
  /** The dialect of all calls in the session. Created with the first call. */
  dialect?: Dialect;
  /** The running calls of the session. Request ids are unique among these calls. */
  readonly inFlight: InFlight;
  readonly requests: ServerRequests;
  /** Detects messages for other instances. `undefined` if there are no other instances, or if they share a store. */
  readonly watch?: SessionWatch;
  /** The resumable streams. `undefined` for a session without an id. */
  readonly streams?: Streams;
  /** The state that all instances share. `undefined` if the server has no store or the session has no id. */
  readonly shared?: SharedSession;
  /** For the URI of each resource that the client watches, the function that ends the subscription. */
  readonly watched: Map<string, () => void>;
  /** Sends the client a notification outside of any request. */
  notify(text: string, key?: string): void;
  readonly account: Account;
  /** Number of bytes charged to `account` for the session. */
  held: number;
  /** Time of the client's latest message, in milliseconds on the monotonic clock. */
  seen: number;
  /** Time at which the session expires, in milliseconds on the monotonic clock. */
  readonly ends: number;
}

/** Creates a session without an id, which ends with its connection or with its only request. */
export function createSession(
  core: Core,
  client: SessionInfo,
  known:
    & Pick<Session, "account" | "notify" | "transport">
    & Partial<Pick<Session, "caller" | "inFlight" | "shared" | "watch">>,
): Session {
  const { account, notify, caller, inFlight = new InFlight(), transport, shared, watch } = known;
  return {
    client: toShared(core, client),
    transport,
    principal: caller?.id,
    caller,
    inFlight,
    requests: new ServerRequests(core, shared ?? watch),
    shared,
    watch,
    watched: new Map(),
    notify,
    account,
    held: 0,
    seen: core.ticker.clock.now(),
    ends: Infinity,
  };
}

/** Returns the facts about the client. Only the log level can change, which is `info` until the client sets it. */
function toShared({ can }: Core, { logLevel = can.logging ? "info" : undefined, ...client }: SessionInfo): SessionInfo {
  const shared: SessionInfo = { ...toFrozen(client), logLevel };
  for (const name in client) Object.defineProperty(shared, name, { writable: false });
  return shared;
}

/** Reports the end only once, after the ends of the session's subscriptions. */
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

/** Reports a subscription of a session to the observer. If `why` is set, the subscription has ended. */
export function announceSubscription(
  observer: Observer,
  { client: { version: revision }, transport, principal }: Session,
  { uri, why }: { readonly uri: string; readonly why?: CancelReason },
): void {
  const state = why ? "ended" : "opened";
  observer.subscription?.({ state, transport, principal, revision, lists: [], uris: [uri], why });
}

/**
 * Returns the last 8 characters of a session id. These 48 random bits are enough to distinguish a million ids.
 * JavaScript engines copy such a short slice. A longer slice would keep the whole id in memory.
 */
export function toShortId(id: string): string {
  return id.slice(-8);
}

export function endSubscriptions({ watched }: Session): void {
  for (const end of watched.values()) end();
  watched.clear();
}
