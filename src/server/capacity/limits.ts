/**
 * The limits that the server's author can change. The comment on each limit states what the limit counts, and what
 * happens when it is exceeded. A table in `docs/reference/limits.md` is generated from these comments (`deno task
 * docs:limits`).
 */
import { checkOptions, type KnownOptions, type OptionRule, show } from "../../core/known_options.ts";
import { FIXED_LIMITS, type FixedLimits } from "./fixed_limits.ts";

/**
 * The limits of a server, in groups. Times are in milliseconds. `Infinity` disables a limit.
 *
 * A client is identified by its principal, by its address if it has no principal, or otherwise by its connection or
 * session. If none of these is known, each request counts as a separate client.
 */
export interface Limits {
  /** The request body or line that contains a message. */
  readonly request: {
    /**
     * Maximum size of one request body, in bytes.
     *
     * Together: all bodies over 64 KiB share 32 MiB while they arrive.
     *
     * Exceeded: HTTP 413, code -32600.
     */
    readonly bodyBytes: number;
    /**
     * Time within which one request body must arrive. The limit is required because Deno does not close a stalled
     * connection.
     *
     * Exceeded: HTTP 408, code -32600.
     */
    readonly bodyMs: number;
    /**
     * Maximum size of one line on stdio, or of one WebSocket message, in bytes.
     *
     * Together: the server buffers one line per connection.
     *
     * Exceeded: the server skips the line and sends code -32600 without an id.
     */
    readonly lineBytes: number;
  };
  /** Calls, from their start to their result. */
  readonly calls: {
    /**
     * Number of calls that run concurrently in the process.
     *
     * Together: the calls' parameters count towards `memory`.
     *
     * Exceeded: the call waits in a queue of 4,096 places, of which one client may fill a quarter. If the queue is
     * full: code -31503.
     */
    readonly running: number;
    /**
     * Number of calls of one client that run concurrently. Functions that `ctx.defer` runs after a call count too.
     *
     * Together: the calls' parameters count towards `memory`.
     *
     * Exceeded: the call waits in the queue that `calls.running` describes. On stdio and WebSocket, the server stops
     * reading from a client when the number of the client's waiting calls reaches this limit.
     */
    readonly runningPerClient: number;
    /**
     * Number of handlers that continue after their response, such as the handlers of tasks. One client may use a
     * quarter of this number, which is 512 by default.
     *
     * Together: the calls' parameters count towards `memory`.
     *
     * Exceeded: the extension's call of `detach` throws an error, which becomes code -31503.
     */
    readonly detached: number;
    /**
     * Number of inner calls of one call. Each call of `ctx.callTool`, `ctx.getPrompt`, `ctx.readResource` and
     * `ctx.complete`, and each page of `ctx.list`, is an inner call. The inner calls of an inner call count too. In
     * revisions without sessions, the number applies to each run of the handler.
     *
     * Together: the inner calls use the slot of the call, and their parameters count towards `memory`.
     *
     * Exceeded: the method throws an error that names the handlers, which becomes code -32603 unless the handler catches
     * it.
     */
    readonly inner: number;
    /**
     * Time that one handler may run. The time in which the call waits in a queue or for the client's answer does not
     * count. The default value is checked only every 15 seconds, so a handler may run longer. Any other value is
     * enforced exactly. A handler's `quota({ timeoutMs })` takes precedence. Each step before the handler, such as
     * `admit`, `allow` or `limit` of a layer, may take the same time again.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly timeoutMs: number;
    /**
     * Time within which the client must answer an elicitation, sampling or roots request, in revisions with sessions.
     *
     * Exceeded: the server cancels the request, and `ctx.elicit` rejects with code -32602.
     */
    readonly answerMs: number;
    /**
     * Maximum size of one result as JSON, in bytes. If the server must validate or convert the result, each JSON value
     * counts as at least 16 bytes.
     *
     * Together: results that a client has not read yet count towards `memory`.
     *
     * Exceeded: the client gets code -32603 "Internal error", and `observer.fault` receives the reason.
     */
    readonly resultBytes: number;
    /**
     * Time that running calls have to finish after `server.close()` was called.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly closeMs: number;
  };
  /** Streams, sockets and sessions. */
  readonly connections: {
    /**
     * Number of event streams, sockets and subscriptions that are open in the process. Event streams that respond to a
     * call do not count.
     *
     * Together: if a stream has more than 32 KiB of unread data, all of the data counts towards `memory`.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. WebSocket and HTTP+SSE get HTTP 503 with plain text.
     */
    readonly streams: number;
    /**
     * Number of event streams, sockets and subscriptions that one client has open.
     *
     * Together: as for `connections.streams`.
     *
     * Exceeded: as for `connections.streams`.
     */
    readonly streamsPerClient: number;
    /**
     * Number of HTTP sessions whose state is in memory, in revisions with sessions. In addition, the server remembers
     * the ids of 256 ended sessions per client, and of 65,536 for all clients. If a client ends more sessions, the
     * server forgets the client's oldest ended session, and the observer gets a `limit` event with the name
     * `sessions.ended`. The name `sessions.sealed` means that a client has created so many ids within 10 seconds that
     * opening them takes more CPU time.
     *
     * Together: each session counts towards `memory` with 4 KiB, and eight bytes per character of the session id, which
     * has at most 16,384 characters.
     *
     * Exceeded: the server evicts the longest idle session of the client that has the most sessions. The session id
     * stays valid, but the session's subscriptions and stored events are lost. If this client has no idle session: HTTP
     * 503 with `Retry-After`, code -31503.
     */
    readonly sessions: number;
    /**
     * Time without a request, a running call or an open stream after which a session ends. Every session ends 24 hours
     * after its start.
     *
     * Exceeded: HTTP 404, code -32600. The client must initialize a new session.
     */
    readonly sessionIdleMs: number;
  };
  /** Event streams over HTTP. */
  readonly streams: {
    /**
     * Time without data after which the server writes a comment to a stream, at least 1,000. Choose a time below the
     * idle timeouts of proxies and runtimes, such as `timeout server` of HAProxy. Bun closes a stream after 10 seconds
     * without data. With `Infinity`, the server writes no comments, and may not notice that a client has disconnected.
     *
     * Exceeded: the server writes a comment.
     */
    readonly heartbeatMs: number;
  };
  /** HTTP sessions, in revisions with sessions. */
  readonly sessions: {
    /**
     * Number of sessions of one client whose state is in memory. All users of a gateway count as one
     * client, unless the server has `auth`, or `proxies` contains the gateway. If each of the sessions
     * has a stream, raise `connections.streamsPerClient` too. The limit does not apply to a client that has neither a
     * principal nor a known address.
     *
     * Together: all clients share `connections.sessions` and `memory`.
     *
     * Exceeded: as for `connections.sessions`, but the server evicts a session of this client.
     */
    readonly openPerClient: number;
  };
  /** Memory that the server uses for its clients. */
  readonly memory: {
    /**
     * Bytes of memory that the server uses for all clients together.
     *
     * Together: this limit is the total. The stored events of sessions (8 MiB), and the buffers of the runtime and the
     * kernel, do not count.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
    /**
     * Bytes of memory that the server uses for one client: parameters of running and waiting calls, slow or large
     * bodies, unread responses and events, sessions, watched URIs, values of `ctx.once` with `maxBytes`, and (without a
     * store) stored results for idempotency keys.
     *
     * Together: all clients share `memory.bytes`.
     *
     * Exceeded: a new call gets code -31503. A body or a session gets HTTP 503. A large result gets HTTP 503, code
     * -32603. `ctx.once` with `maxBytes` rejects with code -31503. If the client does not read from a stream, a socket
     * or stdio, the server closes the connection. The server also cancels the connection's calls, unless the client can
     * resume the stream.
     */
    readonly bytesPerClient: number;
  };
  /**
   * Limits per concrete path, such as per tenant, for a server whose path has parameters. A server without path
   * parameters rejects this group.
   */
  readonly perTenant: {
    /**
     * Number of running and waiting calls to one concrete path, from all clients together. Unlimited by default.
     *
     * Exceeded: code -31503.
     */
    readonly running: number;
    /**
     * Bytes of memory that the server uses for one concrete path, for all clients together. These bytes also count
     * towards `memory`. Unlimited by default.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
  };
}

/** Any part of {@linkcode Limits}. Omitted limits keep their defaults. */
export type LimitOptions = { readonly [group in keyof Limits]?: Partial<Limits[group]> };

/** All bounds of a server: the limits, and the bounds that no option changes. */
export type Bounds = Limits & FixedLimits;

/** Any part of {@linkcode Bounds}. Omitted bounds keep their defaults. */
export type BoundOptions = { readonly [group in keyof Bounds]?: Partial<Bounds[group]> };

/** Default limits. */
export const LIMITS: Limits = {
  request: {
    bodyBytes: 4 * 1024 * 1024,
    bodyMs: 30_000,
    lineBytes: 8 * 1024 * 1024,
  },
  calls: {
    running: 4096,
    runningPerClient: 256,
    detached: 2048,
    inner: 256,
    timeoutMs: 120_000,
    answerMs: 60_000,
    // Keep this limit well below `memory.bytesPerClient`, so that one unread result does not use up a client's memory.
    resultBytes: 8 * 1024 * 1024,
    closeMs: 5000,
  },
  connections: {
    streams: 1024,
    streamsPerClient: 256,
    sessions: 10_000,
    sessionIdleMs: 1_800_000,
  },
  streams: {
    heartbeatMs: 8000,
  },
  sessions: {
    openPerClient: 256,
  },
  memory: {
    bytes: 256 * 1024 * 1024,
    bytesPerClient: 64 * 1024 * 1024,
  },
  perTenant: {
    running: Infinity,
    bytes: Infinity,
  },
};

/** Key under which a test passes other values for fixed bounds. */
export const OTHER_BOUNDS: unique symbol = Symbol("mcp.bounds");

/** The limits that a test can set, including the bounds that no option changes. */
export interface TestLimits extends LimitOptions {
  readonly [OTHER_BOUNDS]?: BoundOptions;
}

/** Throws if the limits or a group are not an object, if a name is unknown, or if a value is invalid. */
export function readLimits(changes: TestLimits = {}): Bounds {
  checkOptions("create a server", { limits: changes }, { names: { limits: KNOWN } });
  // The cast is safe, because the defaults contain all names, and the check has rejected unknown names.
  return [LIMITS, FIXED_LIMITS, changes, changes[OTHER_BOUNDS] ?? {}].reduce(merge, {}) as Bounds;
}

function findProblem(value: unknown): string | undefined {
  return typeof value === "number" && value > 0
    ? undefined
    : `is ${show(value)}; it must be a number above 0, or Infinity to disable the limit`;
}

/** Rejects a heartbeat that is probably a number of seconds. */
function findHeartbeatProblem(value: unknown): string | undefined {
  const short = Number(value) < 1000 ? `is ${show(value)}; it must be at least 1000 milliseconds` : undefined;
  return findProblem(value) ?? short;
}

const FIXED = "this bound is fixed; remove it";

const groups: readonly (readonly [string, object])[] = Object.entries(LIMITS);
const fixed = new Map<string, object>(Object.entries(FIXED_LIMITS));

/** The limits that can be set, in groups, and the remedies for limits without their group and for fixed bounds. */
const KNOWN: KnownOptions = {
  names: Object.fromEntries(groups.map(([group, limits]) => [
    group,
    { names: fill(limits, toRule), elsewhere: fill(fixed.get(group), () => FIXED) },
  ])),
  // The limits of all clients together take precedence over the limits per tenant, which have the same names.
  hints: Object.assign({}, ...groups.toReversed().map(([group, limits]) => fill(limits, (name) => `${group}.${name}`))),
  elsewhere: fill(FIXED_LIMITS, () => FIXED),
};

function toRule(name: string): OptionRule {
  return { findProblem: name === "heartbeatMs" ? findHeartbeatProblem : findProblem };
}

function fill<V>(names: object = {}, toValue: (name: string) => V): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, toValue(name)]));
}

function merge(into: object, changes: object): object {
  const groups = new Map<string, object>(Object.entries(into));
  for (const [group, values] of Object.entries(changes)) {
    if (values === undefined) continue;
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    groups.set(group, { ...groups.get(group), ...Object.fromEntries(given) });
  }
  return Object.fromEntries(groups);
}
