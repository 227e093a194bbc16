/**
 * The limits that a server can set: what each limit counts, its default, and what happens when it is exceeded. A table
 * in `docs/reference/limits.md` is generated from these comments (`deno task docs:limits`).
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import { FIXED_LIMITS, type FixedLimits } from "./fixed_limits.ts";

/**
 * The limits of a server, in groups. Times are in milliseconds. `Infinity` turns a limit off.
 *
 * A client is identified by its principal, otherwise by its address, otherwise by its connection or session. A request
 * without any of these counts as a separate client.
 */
export interface Limits {
  /** The body or line that carries a message. */
  readonly request: {
    /**
     * Bytes of one request body.
     *
     * Together: all bodies over 64 KiB share 32 MiB while they arrive.
     *
     * Exceeded: HTTP 413, code -32600.
     */
    readonly bodyBytes: number;
    /**
     * Time in which one body must arrive. The server needs this limit because Deno keeps a stalled connection open.
     *
     * Exceeded: HTTP 408, code -32600.
     */
    readonly bodyMs: number;
    /**
     * Bytes of one line on stdio, or of one WebSocket message.
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
     * Calls that run at the same time in the process.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: the call waits in a queue of 4,096 places, of which one client may fill a quarter. If the queue is
     * full: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Calls of one client that run at the same time, and deferred work of the client's calls.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: the call waits in the queue, see `calls.running`. On stdio and WebSocket, the server stops reading once
     * as many calls of the client wait as this limit allows to run.
     */
    readonly runningPerClient: number;
    /**
     * Handlers that continue after their response, such as the handlers of tasks. One client may have a quarter of this
     * number, by default 512.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: `detach` of an extension throws an error for HTTP 503 (429 in revisions with sessions) with
     * `Retry-After`, code -31503.
     */
    readonly detached: number;
    /**
     * Time that one handler may run, from its start. Time in a queue, or waiting for the client's answer to a question,
     * does not count. The default is checked every 15 seconds, and any other value is enforced exactly. `quota({
     * timeoutMs })` of a handler takes precedence.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly timeoutMs: number;
    /**
     * Time that the client has to answer an elicitation, a sampling request or a list of roots, in revisions with
     * sessions.
     *
     * Exceeded: the server cancels the request, and `ctx.elicit` rejects with code -32602.
     */
    readonly answerMs: number;
    /**
     * Bytes of one result as JSON in UTF-8. If a result must be read or converted, each of its values counts as 16
     * bytes or more.
     *
     * Together: results that a client has not read yet count towards `memory`.
     *
     * Exceeded: code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly resultBytes: number;
    /**
     * Time that running calls have to finish after `server.close()`.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly closeMs: number;
  };
  /** Streams, sockets and sessions. */
  readonly connections: {
    /**
     * Event streams, sockets and subscriptions that are open in the process. Streams that carry the response of a call
     * do not count.
     *
     * Together: unread data counts towards `memory` once one stream has more than 32 KiB of unread data.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. WebSocket and HTTP+SSE get HTTP 503 with plain text.
     */
    readonly streams: number;
    /**
     * Event streams, sockets and subscriptions that one client has open.
     *
     * Together: as for `connections.streams`.
     *
     * Exceeded: as for `connections.streams`.
     */
    readonly streamsPerClient: number;
    /**
     * Sessions over HTTP whose state is in memory, in revisions that have sessions. One client may have 256 such
     * sessions. The ids of ended sessions are kept separately, 256 for one client. Above that number, sessions of the
     * client that are as old as the oldest ended sessions end too, unless they were used in the last minute or are in
     * memory.
     *
     * Together: each session counts towards `memory` with 4 KiB and eight bytes per character of its id, which has at
     * most 16,384 characters. Ended sessions do not count: all of them take 30 MB at most.
     *
     * Exceeded: the client with the most sessions loses the state of the session that was idle longest. The session id
     * stays valid, but the client loses the session's subscriptions and kept events. If no such session is idle: HTTP
     * 503 with `Retry-After`, code -31503.
     */
    readonly sessions: number;
    /**
     * Time without a request, a running call or an open stream after which a session ends. Every session ends after 24
     * hours.
     *
     * Exceeded: HTTP 404, code -32600. The client initializes again.
     */
    readonly sessionIdleMs: number;
  };
  /** Memory that the server holds for its clients. */
  readonly memory: {
    /**
     * Bytes that the server holds for all clients.
     *
     * Together: this is the total. Kept events of sessions (8 MiB) and the buffers of the runtime and the kernel are
     * not part of it.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
    /**
     * Bytes that the server holds for one client: parameters of running and waiting calls, slow or large bodies, unread
     * responses and events, sessions, watched URIs, and (without a store) results that are kept for idempotency keys.
     *
     * Together: all clients share `memory.bytes`.
     *
     * Exceeded: a new call gets HTTP 503 (429 in revisions with sessions), code -31503. A body or a session gets HTTP
     * 503. A large result gets HTTP 503, code -32603. If the client does not read a stream, a socket or stdio, the
     *      server closes it, and cancels its calls unless the stream can be resumed.
     */
    readonly bytesPerClient: number;
  };
  /**
   * One concrete path of a server whose path has parameters, such as the path of a tenant. Servers without path
   * parameters reject this group.
   */
  readonly perTenant: {
    /**
     * Running and waiting calls of one concrete path, for all clients together. By default there is no such limit.
     *
     * Exceeded: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Bytes that the server holds for one concrete path, for all clients together. These bytes also count towards
     * `memory`. By default there is no such limit.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
    /**
     * Whether `perTenant.running` and `perTenant.bytes` apply to all instances together. This requires a store.
     * Instances learn the counts of other instances with a delay of about a second, so together they may exceed the
     * limits for that long.
     *
     * Exceeded: as for `perTenant.running` and `perTenant.bytes`.
     */
    readonly shared: boolean;
  };
}

/** Any part of {@linkcode Limits}. All other limits keep their defaults. */
export type LimitOptions = { readonly [group in keyof Limits]?: Partial<Limits[group]> };

/** All bounds of a server: its limits, and the bounds that no option changes. */
export type Bounds = Limits & FixedLimits;

/** Bounds that differ from the defaults. */
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
  memory: {
    bytes: 256 * 1024 * 1024,
    bytesPerClient: 64 * 1024 * 1024,
  },
  perTenant: {
    running: Infinity,
    bytes: Infinity,
    shared: false,
  },
};

/** Key of bounds that only tests change. */
export const OTHER_BOUNDS: unique symbol = Symbol("mcp.bounds");

/** Limits in a test, which may also change the bounds that no option changes. */
export interface TestLimits extends LimitOptions {
  readonly [OTHER_BOUNDS]?: BoundOptions;
}

/**
 * Merges the user's limits into the defaults. Throws if the limits or a group are not an object, if a name is unknown,
 * or if a value is not a number above 0 (for `shared`, a boolean).
 */
export function readLimits(changes: TestLimits = {}): Bounds {
  const given: unknown = changes;
  if (!isObject(given)) throw refuse("", "they are not an object; write { calls: { running: 100 } }");
  for (const [group, values] of Object.entries(given)) if (values !== undefined) checkGroup(group, values);
  // The cast is safe, because the defaults contain all names, and changes contain no other names.
  return [LIMITS, FIXED_LIMITS, changes, changes[OTHER_BOUNDS] ?? {}].reduce(merge, {}) as Bounds;
}

function checkGroup(group: string, values: unknown): void {
  const known = new Map<string, Readonly<Record<string, number | boolean>>>(Object.entries(LIMITS)).get(group);
  if (!known) throw refuseUnknown(group, `.${group}`, Object.keys(LIMITS));
  const names = Object.keys(known);
  if (!isObject(values)) throw refuse(`.${group}`, `it is a group of limits; set any of ${names.join(", ")}`);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const path = `.${group}.${name}`;
    if (!Object.hasOwn(known, name)) throw refuseUnknown(name, path, names);
    const isSwitch = known[name] === false;
    if (typeof value === typeof known[name] && (isSwitch || Number(value) > 0)) continue;
    throw refuse(
      `${path} to ${typeof value === "string" ? JSON.stringify(value) : value}`,
      isSwitch ? "it must be true or false" : "it must be a number above 0, or Infinity to switch the limit off",
    );
  }
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

function refuseUnknown(name: string, path: string, names: readonly string[]): TypeError {
  const [, group, key = ""] = path.split(".");
  const fixed = new Map<string, object>(Object.entries(FIXED_LIMITS)).get(group);
  if (fixed && Object.hasOwn(fixed, key)) return refuse(path, "no option changes this bound; leave it out");
  // Compare only the beginning of names, because most typing errors are at the end. A better search would make every
  // server larger.
  const near = names.filter((each) => each.slice(0, 3) === name.slice(0, 3)).join(" or ");
  return refuse(path, `there is no such limit; ${near ? `did you mean ${near}?` : `use ${names.join(", ")}`}`);
}

function refuse(what: string, state: string): TypeError {
  return new TypeError(`Cannot set limits${what}: ${state}`);
}
