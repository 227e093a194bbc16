// All data that clients can make a server hold, by the name of its account ("pot") in src/server/capacity/account.ts. A
// test compares these names with the accounts that a server with every feature creates.
import type { PotName } from "../../src/server/capacity/account.ts";

/** Who pays for the data in an account, and what happens when the account is full. */
export interface PotRow {
  /** The unit that is counted. */
  readonly counts: string;
  readonly payer: string;
  /** The share of one client. The client's /56 network has at most twice this share. */
  readonly share: string;
  /** What happens when the account or the share is full. */
  readonly full: string;
}

const CLIENT = "the client: its principal, else its address (IPv6: its /64 network), else its connection";
const RESERVE = "a quarter of the total is for clients that hold little";

export const POTS: { readonly [name in PotName]: PotRow } = {
  "memory.bytes": {
    counts: "bytes of parameters, bodies, unread responses, sessions, subscriptions and kept results",
    payer: CLIENT,
    share: `memory.bytesPerClient; ${RESERVE}`,
    full: "the call, the body or the session is refused with 503; a stream whose reader is too slow is closed",
  },
  "connections.streams": {
    counts: "event streams, sockets and subscriptions",
    payer: CLIENT,
    share: `connections.streamsPerClient; ${RESERVE}`,
    full: "503; for a place in the reserve, the idlest stream without running calls in the reserve is closed",
  },
  "calls.running": {
    counts: "running calls, and work that calls have deferred",
    payer: CLIENT,
    share: `calls.runningPerClient; ${RESERVE}`,
    full: "the call waits, see calls.waiting",
  },
  "calls.waiting": {
    counts: "calls that wait for a slot",
    payer: CLIENT,
    share: `a quarter of the total; ${RESERVE}`,
    full: "503",
  },
  "extensions.bytes": {
    counts: "bytes that extensions keep, such as tasks that have ended",
    payer: CLIENT,
    share: `a quarter of the total; ${RESERVE}`,
    full: "the extension refuses: a tool that would begin a task gets 503",
  },
  "calls.detached": {
    counts: "calls that go on after their response, such as tasks",
    payer: CLIENT,
    share: `a quarter of the total; ${RESERVE}`,
    full: "503",
  },
  "request.allBodiesBytes": {
    counts: "bytes of bodies that are arriving and are not small",
    payer: CLIENT,
    share: "what others leave",
    full: "the client with most bytes loses its oldest body: 503",
  },
  "replay.bytes": {
    counts: "bytes of events that sessions keep",
    payer: "the client of the session",
    share: "what others leave",
    full: "the client with most bytes loses the oldest events of its session with most bytes",
  },
  "endpoints.open": {
    counts: "concrete paths in memory",
    payer: "of all clients that use a path, the one with the fewest paths",
    share: "what others leave",
    full: "the client with most paths loses the idlest path; sessions stay valid",
  },
  "endpoints.making": {
    counts: "concrete paths whose handlers are being made",
    payer: CLIENT,
    share: `a quarter of the total; ${RESERVE}`,
    full: "503",
  },
  "endpoints.checked": {
    counts: "asynchronous checks of path parameters",
    payer: "the address",
    share: `auth.runningPerPeer; ${RESERVE}`,
    full: "503",
  },
  "auth.running": {
    counts: "authentications that take time",
    payer: "the address",
    share: `auth.runningPerPeer; ${RESERVE}`,
    full: "503",
  },
  "auth.refused": {
    counts: "authentications that go on although their request was refused, because auth.running was full",
    payer: "the address",
    share: `auth.runningPerPeer; ${RESERVE}`,
    full: "503 before the caller is authenticated",
  },
  "auth.delayed": {
    counts: "requests that wait because of too many wrong credentials, or for the check of equal credentials",
    payer: "the address",
    share: `auth.delayedPerPeer; ${RESERVE}`,
    full: "429",
  },
  "handler.cacheBytes": {
    counts: "bytes of results that one cache keeps",
    payer: `${CLIENT}; of several that use one result, the one that holds least`,
    share: "a quarter of the total; each byte counts towards memory.bytes too",
    full: "the client with most bytes loses the result that it used least recently",
  },
  "search.bytes": {
    counts: "bytes of remembered rankings of a tool search",
    payer: CLIENT,
    share: "a quarter of the total",
    full: "the client with most bytes loses the ranking that it used least recently",
  },
  "handler.keepBytes": {
    counts: "bytes of large results that one tool keeps",
    payer: CLIENT,
    share: "what others leave; each byte counts towards memory.bytes too",
    full: "the client with most bytes loses its oldest result",
  },
  "handler.waiting": {
    counts: "calls that wait for a place of one handler, or of several with the same limits",
    payer: CLIENT,
    share: `a quarter of concurrency.waiting; ${RESERVE}`,
    full: "503. Clients take turns in the queue",
  },
  "idempotency.bytes": {
    counts: "bytes of the results that an instance keeps for idempotency keys; without a store also in memory.bytes",
    payer: CLIENT,
    share: `a quarter of the total; ${RESERVE}`,
    full: "503 for a new key; the result of a call that runs already is not kept, and its key says so",
  },
  "perTenant.running": {
    counts: "calls of one concrete path that run or wait",
    payer: "the tenant: the concrete path",
    share: "limits.perTenant.running for each tenant",
    full: "503",
  },
  "connections.sessions": {
    counts: "sessions in memory",
    payer: CLIENT,
    share: "sessions.openPerClient",
    full: "the client with most sessions loses the idlest of them; its id stays valid. 503 if all of them are busy",
  },
  "sessions.ending": {
    counts: "ends of sessions that the store has not confirmed, or that it confirmed late within the last minute",
    payer: CLIENT,
    share: `512 of 8,192; ${RESERVE}`,
    full: "DELETE gets 503, and the session goes on",
  },
  "sessions.sealed": {
    counts: "characters of the contents of session ids that were created within the last seconds",
    payer: CLIENT,
    share: "262,144 of 2,097,152",
    full: "the client with most characters loses the oldest contents; opening the id then takes a decryption",
  },
  "sessions.ended": {
    counts: "ids of sessions that have ended and not expired",
    payer: CLIENT,
    share: "256 of 65,536",
    full: "the client's oldest ended session is forgotten: whoever has its id can continue the session, as a new one",
  },
  "store.bytes": {
    counts: "bytes of events, states of sessions and passed-on messages that are in the store and have not expired",
    payer: "the client of the session",
    share: `replay.bytes, of four times as much; ${RESERVE}`,
    full: "events are not stored; a change of a session's state and a message that is passed on get 429",
  },
  "store.operations": {
    counts: "operations of the store that requests of clients cause, and that are in progress",
    payer: CLIENT,
    share: `32 of 256; ${RESERVE}`,
    full: "the operation waits, see store.waiting. Clients take turns",
  },
  "store.waiting": {
    counts: "requests whose first operation of the store waits for a slot",
    payer: CLIENT,
    share: `64 of 4,096; ${RESERVE}`,
    full: "503",
  },
  "store.subscriptions": {
    counts: "topics of the store that requests of clients follow, such as streams of other instances",
    payer: CLIENT,
    share: `connections.streamsPerClient; ${RESERVE}`,
    full: "the resumed stream ends",
  },
  "store.relays": {
    counts: "answers and cancellations that were passed on to other instances within 10 seconds",
    payer: CLIENT,
    share: `512 of 8,192; ${RESERVE}`,
    full: "503",
  },
  "services.values": {
    counts: "values of one service with a key: those that calls use, and those that are idle",
    payer: `${CLIENT}; of several that use one value, the one that holds fewest`,
    share: `what others leave; ${RESERVE}, except if addresses are unknown`,
    full: "the client with most values loses the one that it used least recently; 503 if all of them are in use",
  },
};

/**
 * The sets of remembered ids, by the name of their class. Each set is limited. When a share or a set is full, its
 * oldest ids are covered by a cut-off time instead, so that no id is forgotten and no client is refused.
 */
export const MARKS: { readonly [name: string]: PotRow } = {
  "used answers and links (MarkedIds)": {
    counts: "ids of answers and links with singleUse that were used",
    payer: "the client that was asked, by the hash in the sealed state",
    share: "256 ids of one client; 1,024 clients and ids in each of 512 sets, of which half are for principals",
    full: "answers of the client to questions as old as its oldest used one are refused with -32602",
  },
  "used proofs of DPoP (MarkedIds)": {
    counts: "ids of proofs that came with tokens that are bound to a key",
    payer: "the principal of the token, and its key",
    share:
      "512 ids of one principal, of which a key has half of what others leave; 1,024 keys and ids in each of 512 sets",
    full: "proofs of the key as old as its oldest used one are refused with 429, and so are further keys",
  },
};
