/**
 * Every limit of the library: what it counts, its default, and what happens when it is exceeded. The table in
 * `docs/limits.md` is made from the comments here (`deno task docs:limits`).
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";

/**
 * The limits of a server, in groups. Times are in milliseconds. `Infinity` switches a limit off.
 *
 * A client is identified by its principal. Without one it is identified by its address, and otherwise by its connection
 * or session. A request with none of these counts as a client of its own.
 */
export interface Limits {
  /** A message, and the body or line that carries it. */
  readonly request: {
    /**
     * Bytes of one request body.
     *
     * Together: all bodies over 64 KiB share `request.allBodiesBytes`.
     *
     * Exceeded: HTTP 413, code -32600.
     */
    readonly bodyBytes: number;
    /**
     * Bytes of all bodies over 64 KiB that are still arriving. If only one is arriving, it may be larger than this.
     *
     * Together: this is the total. Each body also counts towards `memory`.
     *
     * Exceeded: the client with most of these bytes loses its oldest body: HTTP 503 with `Retry-After`, code -32600.
     */
    readonly allBodiesBytes: number;
    /**
     * Time in which one body must arrive. The server needs this limit because Deno keeps a stalled connection open.
     *
     * Exceeded: HTTP 408, code -32600.
     */
    readonly bodyMs: number;
    /**
     * Levels of nested objects and arrays in one message or batch. Deeper values could overflow the stack.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly depth: number;
    /**
     * JSON values in one message or batch, including nested ones.
     *
     * Together: each value counts as 140 bytes, so a message at the default limit counts as 27 MiB. The parameters of
     * running and waiting calls count towards `memory`.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly values: number;
    /**
     * Characters of a request id or progress token. The server repeats both in what it sends.
     *
     * Exceeded: HTTP 400, code -32600 for an id and -32602 for a token.
     */
    readonly idCharacters: number;
    /**
     * Characters of a method name.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly methodCharacters: number;
    /**
     * Messages in one batch. Only one protocol revision has batches.
     *
     * Together: a batch is one body, so `request.bodyBytes` and `request.values` apply to all of it.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly batchMessages: number;
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
     * Exceeded: the call waits in a queue, see `calls.waiting`.
     */
    readonly running: number;
    /**
     * Calls of one client that run at the same time, and work that its calls have deferred.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: the call waits in a queue, see `calls.waiting`. On stdio and WebSocket, the server stops reading once
     * as many calls of the client wait as this limit allows to run.
     */
    readonly runningPerClient: number;
    /**
     * Calls that wait in the queue of the process. One client may fill a quarter of it, by default 1,024 places. Over
     * stdio and WebSocket it has fewer, see `calls.runningPerClient`.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly waiting: number;
    /**
     * Handlers that go on after their response, as those of tasks do. One client may have a quarter of them, by default
     * 512.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: `detach` of an extension throws an error for HTTP 503 (429 in revisions with sessions) with
     * `Retry-After`, code -31503.
     */
    readonly detached: number;
    /**
     * Time that one handler may run, from its start. Time in a queue or waiting for an answer of the client does not
     * count. The default is checked every 15 seconds, any other value exactly. `quota({ timeoutMs })` of a handler
     * takes precedence.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly timeoutMs: number;
    /**
     * Time that the client has for an elicitation, a sampling request or a list of roots, in revisions with sessions.
     *
     * Exceeded: the server cancels the request, and `ctx.elicit` rejects with code -32602.
     */
    readonly answerMs: number;
    /**
     * Rounds of questions to the client in one call, in revisions without sessions.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly rounds: number;
    /**
     * Bytes of the sealed `requestState` that the client carries from one round to the next. The values of `ctx.once` in
     * one call may have half of this as JSON in UTF-8, in every revision.
     *
     * Together: the server holds nothing, because the client stores it.
     *
     * Exceeded: code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly stateBytes: number;
    /**
     * Time for which a `requestState` is valid.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly stateMs: number;
    /**
     * Bytes of one result as JSON in UTF-8. If a result must be read or converted, each of its values counts as 16 bytes
     * or more.
     *
     * Together: results that a client has not read yet count towards `memory`.
     *
     * Exceeded: code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly resultBytes: number;
    /**
     * Time to read the streams and iterables that one handler returned.
     *
     * Together: what was read counts towards `calls.resultBytes`.
     *
     * Exceeded: the stream is cancelled, the client gets code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly readMs: number;
    /**
     * Items on one page of a list.
     *
     * Exceeded: the page ends, and the result has a `nextCursor`.
     */
    readonly pageItems: number;
    /**
     * Time that running calls have to finish after `server.close()`.
     *
     * Exceeded: `ctx.signal` aborts, and the client gets code -32603.
     */
    readonly closeMs: number;
  };
  /** Responses and sockets that stay open. */
  readonly streams: {
    /**
     * Event streams, sockets and subscriptions that are open in the process. Streams that carry the response of a call
     * do not count.
     *
     * Together: unread data counts towards `memory` once one stream has more than 32 KiB of it.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. WebSocket and HTTP+SSE get HTTP 503 with plain text.
     */
    readonly open: number;
    /**
     * Event streams, sockets and subscriptions that one client has open.
     *
     * Together: as for `streams.open`.
     *
     * Exceeded: as for `streams.open`.
     */
    readonly openPerClient: number;
    /**
     * Time after which the response of a running call becomes an event stream. A shared timer makes it up to twice as
     * long: 25 to 50 ms by default. Without a stream, the server does not notice that a client has disconnected.
     *
     * Exceeded: the response starts with status 200 before its content is known. It is an event stream. For a client that
     * accepts only JSON, it is white space that is followed by the JSON.
     */
    readonly openAfterMs: number;
    /**
     * Time without data after which a stream gets a comment. Bun closes a stream after 10 seconds without data.
     *
     * Exceeded: the server writes a comment.
     */
    readonly heartbeatMs: number;
    /**
     * Events that may be unread on one HTTP stream.
     *
     * Together: see `streams.waitingCharacters`.
     *
     * Exceeded: `await ctx.progress(…)` and log methods wait until the client has read some.
     */
    readonly waitingTexts: number;
    /**
     * Characters that may be unread on one HTTP stream. It is also the size of the pieces that the server hands to the
     * runtime.
     *
     * Together: a large result, or a handler that does not wait, can exceed it. All unread data of one stream counts
     * towards `memory` once it has more than 16,384 characters, at two bytes per character.
     *
     * Exceeded: as for `streams.waitingTexts`.
     */
    readonly waitingCharacters: number;
    /**
     * Time for which a client may leave an HTTP stream unread. `bun server.ts` closes such a stream after 10 seconds,
     * unless the file exports a longer `idleTimeout`.
     *
     * Exceeded: the server closes the stream. In revisions without sessions it cancels the call. In a session the call
     * goes on, and the client can resume the stream.
     */
    readonly writeMs: number;
    /**
     * Resources that one subscription or one session can watch. Their URIs may have 256 characters on average.
     *
     * Together: each counts towards `memory` with 100 bytes, and two bytes per character of its URI.
     *
     * Exceeded: code -32602, with HTTP 400 for `subscriptions/listen`.
     */
    readonly watchedUris: number;
  };
  /** Sessions over HTTP, in revisions that have them. */
  readonly sessions: {
    /**
     * Sessions whose state is in memory. The ids of ended sessions have room of their own: 256 for one client. Beyond
     * that, sessions of the client that are as old as the oldest ended ones end too, unless they were used in the last
     * minute or are in memory.
     *
     * Together: each session counts towards `memory` with 4 KiB and eight bytes per character of its id, which has at
     * most 16,384 characters. Ended sessions do not count: all of them take 30 MB at most.
     *
     * Exceeded: the client with most sessions loses the state of the session that was idle for longest. Its id stays
     * valid, but the client loses its subscriptions and its kept events. If no such session is idle: HTTP 503 with
     * `Retry-After`, code -31503.
     */
    readonly open: number;
    /**
     * Sessions of one client whose state is in memory. A client with neither a principal nor a known address has no limit
     * of its own.
     *
     * Together: as for `sessions.open`.
     *
     * Exceeded: as for `sessions.open`, among the sessions of this client.
     */
    readonly openPerClient: number;
    /**
     * Time without a request, a running call or an open stream after which a session ends.
     *
     * Exceeded: HTTP 404, code -32600. The client initializes again.
     */
    readonly idleMs: number;
    /**
     * Time after which a session ends in any case.
     *
     * Exceeded: HTTP 404, code -32600. The client initializes again.
     */
    readonly lifeMs: number;
  };
  /** Events that a session keeps, so that a client can resume a stream with `Last-Event-ID`. */
  readonly replay: {
    /**
     * Events that one session keeps.
     *
     * Together: all sessions share `replay.bytes`.
     *
     * Exceeded: the session drops its oldest events. Resuming before them gets HTTP 400, code -32600.
     */
    readonly events: number;
    /**
     * Bytes of the events that all sessions keep, at two bytes per character. One client may use all that is free.
     *
     * Together: this is the total. It does not count towards `memory`. An instance has at most four times as much in a
     * store, of which one client has at most a quarter.
     *
     * Exceeded: the session of the client with most bytes that has most of them drops its oldest events. Resuming before
     * them gets HTTP 400, code -32600. In a store, new events are not kept, and changes of sessions get HTTP 429, code
     * -31503.
     */
    readonly bytes: number;
    /**
     * Time for which an event is kept.
     *
     * Exceeded: the session drops the event. Resuming before it gets HTTP 400, code -32600.
     */
    readonly ms: number;
  };
  /** The concrete paths of a server whose path has parameters, such as one for each tenant. */
  readonly endpoints: {
    /**
     * Concrete paths whose handlers are in memory. Those whose handlers are being made are counted separately, up to
     * the same number, of which one client may make a quarter.
     *
     * Together: all of them share the other limits.
     *
     * Exceeded: of the client with most paths, the server drops the one that was idle for longest. Its sessions stay valid, but their clients lose
     * their subscriptions and their kept events. If none is idle: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly open: number;
  };
  /**
   * Asynchronous authentications, and asynchronous checks of path parameters. Synchronous ones have no limit, because
   * they block the process anyway.
   */
  readonly auth: {
    /**
     * Authentications in progress. Checks of path parameters are counted separately, up to the same number.
     *
     * Together: this is the total of each.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Authentications in progress for one address. Checks of path parameters are counted separately, up to the same
     * number. An unknown address has no limit of its own.
     *
     * Together: all addresses share `auth.running`.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly runningPerPeer: number;
    /**
     * Time that one authentication may take, one check of path parameters, or the function `handlers` of a path.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. `facts.signal` aborts.
     */
    readonly timeoutMs: number;
  };
  /** One concrete path of a server whose path has parameters, such as that of a tenant. Other servers reject this group. */
  readonly perTenant: {
    /**
     * Calls of one concrete path that run or wait, of all clients together. By default there is no such limit.
     *
     * Exceeded: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Bytes that the server holds for one concrete path, of all clients together. They also count towards `memory`. By
     * default there is no such limit.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
  };
  /** Everything that clients make the server hold. */
  readonly memory: {
    /**
     * Bytes that the server holds for one client: parameters of running and waiting calls, slow or large bodies,
     * unread responses and events, sessions, and watched URIs.
     *
     * Together: all clients share `memory.bytes`.
     *
     * Exceeded: a new call gets HTTP 503 (429 in revisions with sessions), code -31503. A body or a session gets HTTP
     * 503. A large result gets HTTP 503, code -32603. If the client does not read a stream, a socket or stdio, the
     * server closes it, and cancels its calls unless the stream can be resumed.
     */
    readonly bytesPerClient: number;
    /**
     * Bytes that the server holds for all clients.
     *
     * Together: this is the total. `replay.bytes` and the buffers of the runtime and the kernel are not part of it.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
  };
}

/** Any part of {@linkcode Limits}. Other limits keep their defaults. */
export type LimitOptions = { readonly [group in keyof Limits]?: Partial<Limits[group]> };

/** Default limits. */
export const LIMITS: Limits = {
  request: {
    bodyBytes: 4 * 1024 * 1024,
    allBodiesBytes: 32 * 1024 * 1024,
    bodyMs: 30_000,
    depth: 128,
    values: 200_000,
    idCharacters: 256,
    methodCharacters: 256,
    batchMessages: 100,
    lineBytes: 8 * 1024 * 1024,
  },
  calls: {
    running: 4096,
    runningPerClient: 256,
    waiting: 4096,
    detached: 2048,
    timeoutMs: 120_000,
    answerMs: 60_000,
    rounds: 16,
    stateBytes: 65_536,
    stateMs: 600_000,
    // Well below `memory.bytesPerClient`, which limits all unread data of one client.
    resultBytes: 8 * 1024 * 1024,
    readMs: 60_000,
    pageItems: 250,
    closeMs: 5000,
  },
  streams: {
    open: 1024,
    openPerClient: 256,
    openAfterMs: 25,
    heartbeatMs: 8000,
    waitingTexts: 256,
    waitingCharacters: 8192,
    writeMs: 30_000,
    watchedUris: 1000,
  },
  sessions: {
    open: 10_000,
    openPerClient: 256,
    idleMs: 1_800_000,
    lifeMs: 86_400_000,
  },
  replay: {
    events: 1000,
    bytes: 8 * 1024 * 1024,
    ms: 300_000,
  },
  endpoints: {
    open: 1000,
  },
  auth: {
    running: 1024,
    runningPerPeer: 64,
    timeoutMs: 10_000,
  },
  perTenant: {
    running: Infinity,
    bytes: Infinity,
  },
  memory: {
    bytesPerClient: 64 * 1024 * 1024,
    bytes: 256 * 1024 * 1024,
  },
};

/**
 * Merges the user's limits into the defaults. Throws if they are not an object, a group or name is unknown, or a value is
 * not a number above 0.
 */
export function readLimits(changes: LimitOptions = {}): Limits {
  if (!isObject(changes)) throw refuse("", "they are not an object; write { calls: { running: 100 } }");
  const groups = new Map<string, Readonly<Record<string, number>>>(Object.entries(LIMITS));
  for (const [group, values] of Object.entries(changes)) {
    if (values === undefined) continue;
    const known = groups.get(group);
    if (!known) throw refuseUnknown("", group, [...groups.keys()]);
    const names = Object.keys(known);
    if (!isObject(values)) throw refuse(`.${group}`, `it is a group of limits; set any of ${names.join(", ")}`);
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      if (!Object.hasOwn(known, name)) throw refuseUnknown(`.${group}`, name, names);
      if (typeof value === "number" && value > 0) continue;
      throw refuse(
        `.${group}.${name} to ${typeof value === "string" ? JSON.stringify(value) : value}`,
        "it must be a number above 0, or Infinity to switch the limit off",
      );
    }
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    groups.set(group, { ...known, ...Object.fromEntries(given) });
  }
  // The loop sets known names to numbers only.
  return Object.fromEntries(groups) as unknown as Limits;
}

function refuseUnknown(place: string, name: string, names: readonly string[]): TypeError {
  // Most mistakes are in the end of a name. A better search would make every server larger.
  const near = names.filter((each) => each.slice(0, 3) === name.slice(0, 3)).join(" or ");
  return refuse(
    `${place}.${name}`,
    `there is no such limit; ${near ? `did you mean ${near}?` : `use ${names.join(", ")}`}`,
  );
}

function refuse(what: string, state: string): TypeError {
  return new TypeError(`Cannot set limits${what}: ${state}`);
}
