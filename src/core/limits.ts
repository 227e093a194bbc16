/**
 * Every limit of the library: what it counts, its default, and what happens when it is exceeded. `docs/limits.md` is
 * made from the comments here (`deno task docs:limits`).
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";

/**
 * The limits of a server, in groups. Times are in milliseconds. `Infinity` switches a limit off.
 *
 * A client is a principal, else a peer address, else a connection.
 */
export interface Limits {
  /** One message, and the body or line that carries it. */
  readonly request: {
    /**
     * Bytes of one request body.
     *
     * Together: bodies over 64 KiB share `request.allBodiesBytes`.
     *
     * Exceeded: HTTP 413, code -32600.
     */
    readonly bodyBytes: number;
    /**
     * Bytes of all bodies over 64 KiB that are still arriving. One body alone may be larger.
     *
     * Together: this is the total. Each body also counts towards `memory`.
     *
     * Exceeded: the oldest of these bodies gets HTTP 503 with `Retry-After`, code -32600.
     */
    readonly allBodiesBytes: number;
    /**
     * Time for one body to arrive. Neither runtime closes a connection that stops in the middle of a body.
     *
     * Exceeded: HTTP 408, code -32600.
     */
    readonly bodyMs: number;
    /**
     * Levels of nested objects and arrays in one message or batch. Walking a deeper value could exhaust the stack.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message is not parsed.
     */
    readonly depth: number;
    /**
     * Values in one message or batch, nested ones included.
     *
     * Together: each is charged with 140 bytes, so the default weighs up to 27 MiB. Parameters of running and waiting
     * calls count towards `memory`.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message is not parsed.
     */
    readonly values: number;
    /**
     * Characters of a request id or progress token. Both are copied into what the server sends.
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
     * Messages in one batch, in the one revision that has batches.
     *
     * Together: one batch is one body, so `request.bodyBytes` and `request.values` hold for all of it.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly batchMessages: number;
    /**
     * Bytes of one line on stdio, or of one WebSocket message.
     *
     * Together: one line is buffered per connection.
     *
     * Exceeded: the line is skipped up to its end and answered with code -32600, without an id.
     */
    readonly lineBytes: number;
  };
  /** Calls from their start to their result. */
  readonly calls: {
    /**
     * Calls that run at once in the process.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: the call waits, see `calls.waiting`.
     */
    readonly running: number;
    /**
     * Calls of one client that run at once.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: the call waits, see `calls.waiting`. When as many wait, the server stops reading from a byte stream.
     */
    readonly runningPerClient: number;
    /**
     * Calls that wait for others to end, in the process.
     *
     * Together: their parameters count towards `memory`.
     *
     * Exceeded: HTTP 503, or 429 in revisions with sessions, with `Retry-After`, code -31503.
     */
    readonly waiting: number;
    /**
     * Time that one handler may run. 120,000 suits most servers.
     *
     * Exceeded: the call's signal is aborted, and the client gets code -32603.
     */
    readonly timeoutMs: number;
    /**
     * Time that the client has to answer a question, such as an elicitation, in revisions with sessions.
     *
     * Exceeded: the question is cancelled, and `ctx.elicit` rejects with code -32602.
     */
    readonly answerMs: number;
    /**
     * Times that one call may ask the client, in revisions without sessions.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly rounds: number;
    /**
     * Bytes of the sealed `requestState` that the client carries from one round to the next.
     *
     * Together: the client keeps it; the server holds nothing.
     *
     * Exceeded: code -32603 "Internal error", and `onError` gets the reason.
     */
    readonly stateBytes: number;
    /**
     * Time for which a `requestState` can be used.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly stateMs: number;
    /**
     * Bytes of one result as JSON in UTF-8.
     *
     * Together: what one client leaves unread counts towards `memory`.
     *
     * Exceeded: code -32603 "Internal error", and `onError` gets the reason.
     */
    readonly resultBytes: number;
    /**
     * Time to read the streams and iterables that one handler returned.
     *
     * Together: what was read counts towards `calls.resultBytes`.
     *
     * Exceeded: the stream is cancelled, the client gets code -32603 "Internal error", and `onError` gets the reason.
     */
    readonly readMs: number;
    /**
     * Items on one page of a list.
     *
     * Exceeded: the result has a `nextCursor`.
     */
    readonly pageItems: number;
    /**
     * Time that running calls have to end after `server.close()`.
     *
     * Exceeded: their signals are aborted, and the clients get code -32603.
     */
    readonly closeMs: number;
  };
  /** Responses and sockets that stay open. */
  readonly streams: {
    /**
     * Event streams, sockets and subscriptions that are open in the process. The stream of a call is none of them.
     *
     * Together: what waits on them counts towards `memory` once it is over 32 KiB for a stream.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. WebSocket and HTTP+SSE get HTTP 503 with a plain text.
     */
    readonly open: number;
    /**
     * Event streams, sockets and subscriptions of one client that are open.
     *
     * Together: as for `streams.open`.
     *
     * Exceeded: as for `streams.open`.
     */
    readonly openPerClient: number;
    /**
     * Time after which the answer to a running call becomes an event stream. It may take twice as long. Only on a
     * stream does the server notice that a client has disconnected.
     *
     * Exceeded: the response starts with status 200 and an event stream. A client that accepts only JSON gets white
     * space before it.
     */
    readonly openAfterMs: number;
    /**
     * Time between two comments on a silent stream. Bun closes a stream after 10 silent seconds.
     *
     * Exceeded: the stream gets a comment.
     */
    readonly heartbeatMs: number;
    /**
     * Events that may wait on one stream over HTTP.
     *
     * Together: see `streams.waitingCharacters`.
     *
     * Exceeded: `ctx.progress` and `ctx.log` return a promise that settles when there is room.
     */
    readonly waitingTexts: number;
    /**
     * Characters that may wait on one stream over HTTP, and of one piece that is handed to the runtime.
     *
     * Together: a handler that does not wait, and a large result, can exceed it. All that waits on one stream counts
     * towards `memory`, at two bytes a character, once it is over 16,384 characters.
     *
     * Exceeded: as for `streams.waitingTexts`.
     */
    readonly waitingCharacters: number;
    /**
     * Time for which a stream over HTTP may stand still because the client does not read.
     *
     * Exceeded: the stream is closed, and its call is cancelled.
     */
    readonly writeMs: number;
    /**
     * Resources that one subscription or one session watches. Their URIs may have 256 characters on average.
     *
     * Together: each counts towards `memory` with 100 bytes and two for each character.
     *
     * Exceeded: code -32602. `subscriptions/listen` gets it with HTTP 400.
     */
    readonly watchedUris: number;
  };
  /** Sessions over HTTP, in revisions that have them. */
  readonly sessions: {
    /**
     * Sessions whose state the process keeps. It also remembers a hundred times as many ended ones.
     *
     * Together: each counts towards `memory` with 4 KiB and its id, which has at most 16,384 characters, at eight bytes
     * a character. An ended one counts with 150 bytes.
     *
     * Exceeded: the session that was idle for longest makes room, and its id stays good. If none is idle, or too many
     * have ended, HTTP 503 with `Retry-After`, code -31503.
     */
    readonly open: number;
    /**
     * Sessions of one client whose state the process keeps. Clients that have neither a principal nor a known address
     * share `sessions.open`.
     *
     * Together: as for `sessions.open`.
     *
     * Exceeded: as for `sessions.open`, among the sessions of this client.
     */
    readonly openPerClient: number;
    /**
     * Time without a request, a running call or an open stream after which a session ends.
     *
     * Exceeded: HTTP 404, code -32600; the client initializes again.
     */
    readonly idleMs: number;
    /**
     * Longest life of a session.
     *
     * Exceeded: HTTP 404, code -32600; the client initializes again.
     */
    readonly lifeMs: number;
  };
  /** Events that a session keeps, so that a client can read a broken stream on with `Last-Event-ID`. */
  readonly replay: {
    /**
     * Events that one session keeps.
     *
     * Together: all sessions share `replay.bytes`.
     *
     * Exceeded: the oldest events of the session are dropped. Resuming before them gets HTTP 400, code -32600.
     */
    readonly events: number;
    /**
     * Bytes of the events that all sessions of the process keep, at two bytes a character. One session may keep as much
     * as is free.
     *
     * Together: this is the total. It does not count towards `memory`.
     *
     * Exceeded: as for `replay.events`.
     */
    readonly bytes: number;
    /**
     * Time for which an event is kept.
     *
     * Exceeded: the event is dropped. Resuming before it gets HTTP 400, code -32600.
     */
    readonly ms: number;
  };
  /** All that clients make the server hold. */
  readonly memory: {
    /**
     * Bytes that the server holds for one client: parameters of running and waiting calls, arriving bodies over 64 KiB,
     * unread answers and events, sessions, and watched URIs.
     *
     * Together: all clients share `memory.bytes`.
     *
     * Exceeded: a call gets code -31503 with HTTP 503, or 429 in revisions with sessions; a body or a session HTTP 503;
     * a large result HTTP 503, code -32603. A stream, a socket or stdio that the client does not read is closed, and
     * its calls are cancelled.
     */
    readonly bytesPerClient: number;
    /**
     * Bytes that the server holds for all clients.
     *
     * Together: this is the total. `replay.bytes`, and what the runtime and the kernel buffer, come on top.
     *
     * Exceeded: as for `memory.bytesPerClient`.
     */
    readonly bytes: number;
  };
}

/** Any part of {@linkcode Limits}; the rest keeps its defaults. */
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
    timeoutMs: Infinity,
    answerMs: 60_000,
    rounds: 16,
    stateBytes: 65_536,
    stateMs: 600_000,
    // Well below `memory.bytesPerClient`, which bounds all that one client leaves unread.
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
  memory: {
    bytesPerClient: 64 * 1024 * 1024,
    bytes: 256 * 1024 * 1024,
  },
};

/** The defaults with what the user changed. Throws if a group or name is unknown, or a value is no number above 0. */
export function readLimits(changes: LimitOptions = {}): Limits {
  const groups = new Map<string, Readonly<Record<string, number>>>(Object.entries(LIMITS));
  for (const [group, values] of Object.entries(changes)) {
    const known = groups.get(group);
    if (!known) throw refuse(group, `there is no such group; the groups are ${[...groups.keys()].join(", ")}`);
    const names = Object.keys(known).join(", ");
    if (!isObject(values)) throw refuse(group, `it is a group of limits; set any of ${names}`);
    for (const [name, value] of Object.entries(values)) {
      if (!Object.hasOwn(known, name)) throw refuse(`${group}.${name}`, `the limits of this group are ${names}`);
      if (typeof value === "number" && value > 0) continue;
      throw refuse(`${group}.${name} to ${value}`, "it must be a number above 0, or Infinity to switch the limit off");
    }
  }
  return {
    request: { ...LIMITS.request, ...changes.request },
    calls: { ...LIMITS.calls, ...changes.calls },
    streams: { ...LIMITS.streams, ...changes.streams },
    sessions: { ...LIMITS.sessions, ...changes.sessions },
    replay: { ...LIMITS.replay, ...changes.replay },
    memory: { ...LIMITS.memory, ...changes.memory },
  };
}

function refuse(what: string, state: string): TypeError {
  return new TypeError(`Cannot set limits.${what}: ${state}`);
}
