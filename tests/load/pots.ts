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

const QUARTER = `a quarter of the total; ${RESERVE}`;

function row(counts: string, share: string, full: string, payer = CLIENT): PotRow {
  return { counts, payer, share, full };
}

export const POTS: { readonly [name in PotName]: PotRow } = {
  "memory.bytes": row(
    "bytes of parameters, bodies, unread responses, sessions, subscriptions, kept results and large values of ctx.once",
    `memory.bytesPerClient; ${RESERVE}`,
    "the call, the body or the session is refused with 503; a stream whose reader is too slow is closed",
  ),
  "connections.streams": row(
    "event streams, sockets and subscriptions",
    `connections.streamsPerClient; ${RESERVE}`,
    "503; for a place in the reserve, the idlest stream without running calls in the reserve is closed",
  ),
  "calls.running": row(
    "running calls, and work that calls have deferred",
    `calls.runningPerClient; ${RESERVE}`,
    "the call waits, see calls.waiting",
  ),
  "calls.waiting": row("calls that wait for a slot", QUARTER, "503"),
  "extensions.bytes": row(
    "bytes that extensions keep, such as tasks that have ended",
    QUARTER,
    "the extension refuses: a tool that would begin a task gets 503",
  ),
  "calls.detached": row("calls that go on after their response, such as tasks", QUARTER, "503"),
  "request.allBodiesBytes": row(
    "bytes of bodies that are arriving and are not small",
    "what others leave",
    "the client with most bytes loses its oldest body: 503",
  ),
  "replay.bytes": row(
    "bytes of events that sessions keep",
    "what others leave",
    "the client with most bytes loses the oldest events of its session with most bytes",
    "the client of the session",
  ),
  "endpoints.open": row(
    "concrete paths in memory",
    "what others leave",
    "the client with most paths loses the idlest path; sessions stay valid",
    "of all clients that use a path, the one with the fewest paths",
  ),
  "endpoints.making": row("concrete paths whose handlers are being made", QUARTER, "503"),
  "endpoints.checked": row(
    "asynchronous checks of path parameters",
    `auth.runningPerPeer; ${RESERVE}`,
    "503",
    "the address",
  ),
  "auth.running": row("authentications that take time", `auth.runningPerPeer; ${RESERVE}`, "503", "the address"),
  "auth.refused": row(
    "authentications that go on although their request was refused, because auth.running was full",
    `auth.runningPerPeer; ${RESERVE}`,
    "503 before the caller is authenticated",
    "the address",
  ),
  "auth.delayed": row(
    "requests that wait because of too many wrong credentials, or for the check of equal credentials",
    `auth.delayedPerPeer; ${RESERVE}`,
    "429",
    "the address",
  ),
  "handler.cacheBytes": row(
    "bytes of results that one cache keeps",
    "a quarter of the total; each byte counts towards memory.bytes too",
    "the client with most bytes loses the result that it used least recently",
    `${CLIENT}; of several that use one result, the one that holds least`,
  ),
  "search.bytes": row(
    "bytes of remembered rankings of a tool search",
    "a quarter of the total",
    "the client with most bytes loses the ranking that it used least recently",
  ),
  "code.programs": row(
    "programs of codeMode() that compute or wait",
    `limits.programsPerClient of codeMode(); ${RESERVE}`,
    "503",
  ),
  "code.running": row(
    "programs of codeMode() that compute",
    "three quarters of the total if there are at least four",
    "the program waits for its turn",
  ),
  "code.bytes": row(
    "bytes of what calls of programs have returned, for programs that run again after a question",
    "10 MB",
    "the program ends with words, before its next call",
  ),
  "proxy.connections": row(
    "connections of callers to one other server",
    `proxy.connectionsPerClient; ${RESERVE}`,
    "the client with most connections loses the idle one that it used least recently; words for the model if all are in use",
  ),
  "proxy.parked": row(
    "calls of one server with sessions that wait for the next request of a caller; their parameters in memory.bytes",
    `proxy.parkedPerClient; ${RESERVE}`,
    "the other server gets an error instead of the answer",
  ),
  "proxy.bytes": row(
    "bytes of the results of such calls",
    "a quarter of the total; each byte counts towards memory.bytes too",
    "the client with most bytes loses its oldest result",
  ),
  "proxy.watched": row(
    "resources of one other server whose changes are watched for callers",
    `proxy.watchedPerClient; ${RESERVE}`,
    "the subscription gets no notifications for the resource",
    `${CLIENT}; of several that watch one resource, the one that holds fewest`,
  ),
  "handler.keepBytes": row(
    "bytes of large results that one tool keeps",
    "what others leave; each byte counts towards memory.bytes too",
    "the client with most bytes loses its oldest result",
  ),
  "handler.waiting": row(
    "calls that wait for a place of one handler, or of several with the same limits",
    `a quarter of concurrency.waiting; ${RESERVE}`,
    "503. Clients take turns in the queue",
  ),
  "idempotency.bytes": row(
    "bytes of the results that an instance keeps for idempotency keys; without a store also in memory.bytes",
    QUARTER,
    "503 for a new key; the result of a call that runs already is not kept, and its key says so",
  ),
  "perTenant.running": row(
    "calls of one concrete path that run or wait",
    "limits.perTenant.running for each tenant",
    "503",
    "the tenant: the concrete path",
  ),
  "connections.sessions": row(
    "sessions in memory",
    "sessions.openPerClient",
    "the client with most sessions loses the idlest of them; its id stays valid. 503 if all of them are busy",
  ),
  "sessions.ending": row(
    "ends of sessions that the store has not confirmed, or that it confirmed late within the last minute",
    `512 of 8,192; ${RESERVE}`,
    "DELETE gets 503, and the session goes on",
  ),
  "sessions.sealed": row(
    "characters of the contents of session ids that were created within the last seconds",
    "262,144 of 2,097,152",
    "the client with most characters loses the oldest contents; opening the id then takes a decryption",
  ),
  "sessions.ended": row(
    "ids of sessions that have ended and not expired",
    "256 of 65,536",
    "the client's oldest ended session is forgotten: whoever has its id can continue the session, as a new one",
  ),
  "store.bytes": row(
    "bytes of events, states of sessions, passed-on messages and large values of ctx.once that are in the store",
    `replay.bytes, of four times as much; ${RESERVE}`,
    "events are not stored; a change of a session's state and a message that is passed on get 429; ctx.once rejects",
    "the client of the session",
  ),
  "store.operations": row(
    "operations of the store that requests of clients cause, and that are in progress",
    `32 of 256; ${RESERVE}`,
    "the operation waits, see store.waiting. Clients take turns",
  ),
  "store.waiting": row(
    "requests whose first operation of the store waits for a slot",
    `64 of 4,096; ${RESERVE}`,
    "503",
  ),
  "store.subscriptions": row(
    "topics of the store that requests of clients follow, such as streams of other instances",
    `connections.streamsPerClient; ${RESERVE}`,
    "the resumed stream ends",
  ),
  "store.relays": row(
    "answers and cancellations that were passed on to other instances within 10 seconds",
    `512 of 8,192; ${RESERVE}`,
    "503",
  ),
  "services.values": row(
    "values of one service with a key: those that calls use, and those that are idle",
    `what others leave; ${RESERVE}, except if addresses are unknown`,
    "the client with most values loses the one that it used least recently; 503 if all of them are in use",
    `${CLIENT}; of several that use one value, the one that holds fewest`,
  ),
};

/**
 * The sets of remembered ids, by the name of their class. Each set is limited. When a share or a set is full, its
 * oldest ids are covered by a cut-off time instead, so that no id is forgotten and no client is refused.
 */
export const MARKS: { readonly [name: string]: PotRow } = {
  "used answers and links (MarkedIds)": row(
    "ids of answers and links with singleUse that were used",
    "256 ids of one client; 1,024 clients and ids in each of 512 sets, of which half are for principals",
    "answers of the client to questions as old as its oldest used one are refused with -32602",
    "the client that was asked, by the hash in the sealed state",
  ),
  "used proofs of DPoP (MarkedIds)": row(
    "ids of proofs that came with tokens that are bound to a key",
    "512 ids of one principal, of which a key has half of what others leave; 1,024 keys and ids in each of 512 sets",
    "proofs of the key as old as its oldest used one are refused with 429, and so are further keys",
    "the principal of the token, and its key",
  ),
};
