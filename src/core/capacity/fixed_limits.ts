/**
 * The bounds that no option changes: what each bound counts, its value, the reason for it, and what happens when it is
 * exceeded. A table in `docs/reference/limits.md` is generated from these comments (`deno task docs:limits`).
 *
 * @module
 */

/** Bounds that no option changes, in groups. Times are in milliseconds. */
export interface FixedLimits {
  /** A message, and the body that carries it. */
  readonly request: {
    /**
     * Bytes of all bodies over 64 KiB that are still arriving. A single body may exceed this bound.
     *
     * Reason: enough for eight bodies at the default limit. Bodies wait for their turn after they have arrived, so a
     * higher bound would not serve any body sooner.
     *
     * Exceeded: the client with the most of these bytes loses its oldest body: HTTP 503 with `Retry-After`, code
     * -32600.
     */
    readonly allBodiesBytes: number;
    /**
     * Levels of nested objects and arrays in one message or batch.
     *
     * Reason: deeper values could overflow the stack of code that walks them. Real arguments have fewer than 20 levels.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly depth: number;
    /**
     * JSON values in one message or batch, including nested values.
     *
     * Reason: a value takes 140 bytes in memory, however short its text. A message at this limit counts as 27 MiB
     * towards `memory`.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly values: number;
    /**
     * Characters of a request id or progress token.
     *
     * Reason: the server repeats the id in the response, and the token in each progress notification.
     *
     * Exceeded: HTTP 400, code -32600 for an id and -32602 for a token.
     */
    readonly idCharacters: number;
    /**
     * Characters of a method name.
     *
     * Reason: events for observers and error messages contain the name.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly methodCharacters: number;
    /**
     * Messages in one batch. Only one protocol revision has batches.
     *
     * Reason: each message may become a call, and all responses together form one body.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly batchMessages: number;
  };
  /** Calls, from their start to their result. */
  readonly calls: {
    /**
     * Calls that wait in the queue of the process. One client may fill a quarter of it. Over stdio and WebSocket, a
     * client may have fewer calls in the queue, see `calls.runningPerClient`.
     *
     * Reason: as many calls as run by default, so that a call waits for about one other call. Their parameters count
     * towards `memory`.
     *
     * Exceeded: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly waiting: number;
    /**
     * Rounds of questions to the client in one call, in revisions without sessions.
     *
     * Reason: a handler that asks again after every answer would never end. Usual dialogs have fewer than 10 rounds.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly rounds: number;
    /**
     * Bytes of the sealed `requestState` that the client carries from one round to the next. The values of `ctx.once`
     * in one call may take half of these bytes as JSON in UTF-8, in every revision.
     *
     * Reason: the client stores the state and sends it with every answer.
     *
     * Exceeded: code -32603 "Internal error", and `observer.fault` receives the reason.
     */
    readonly stateBytes: number;
    /**
     * Time for which a `requestState` is valid.
     *
     * Reason: enough time for a person to read and decide. During this time, the server must remember which answers
     * were used.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly stateMs: number;
    /**
     * Time to read the streams and iterables that one handler returned.
     *
     * Reason: a stream that never ends would hold its call forever. Most clients wait 60 seconds.
     *
     * Exceeded: the stream is cancelled, the client gets code -32603 "Internal error", and `observer.fault` receives
     * the reason.
     */
    readonly readMs: number;
    /**
     * Items on one page of a list.
     *
     * Reason: most servers fit on one page, and a page of 250 tools has about 250 KB of JSON.
     *
     * Exceeded: the page ends, and the result has a `nextCursor`.
     */
    readonly pageItems: number;
  };
  /** Responses and sockets that stay open. */
  readonly streams: {
    /**
     * Time after which the response of a running call becomes an event stream. Because of a shared timer, it may take
     * up to twice as long.
     *
     * Reason: without a stream, the server does not notice that a client has disconnected. Most calls end sooner and
     * need no stream.
     *
     * Exceeded: the response starts with status 200 before its content is known. The response is an event stream. A
     * client that accepts only JSON gets white space, followed by the JSON.
     */
    readonly openAfterMs: number;
    /**
     * Time without data after which a stream gets a comment.
     *
     * Reason: Bun closes a stream after 10 seconds without data.
     *
     * Exceeded: the server writes a comment.
     */
    readonly heartbeatMs: number;
    /**
     * Events that may be unread on one HTTP stream.
     *
     * Reason: a handler that sends faster than its client reads would fill the memory.
     *
     * Exceeded: `await ctx.progress(…)` and log methods wait until the client has read some of the events.
     */
    readonly waitingTexts: number;
    /**
     * Characters that may be unread on one HTTP stream. This is also the size of the pieces that the server passes to
     * the runtime. A large result, or a handler that does not await its messages, can exceed this bound. All unread
     * data of one stream counts towards `memory` once it has more than 16,384 characters, at two bytes per character.
     *
     * Reason: a runtime copies each piece into a separate buffer.
     *
     * Exceeded: as for `streams.waitingTexts`.
     */
    readonly waitingCharacters: number;
    /**
     * Time for which a client may leave an HTTP stream unread. `bun server.ts` closes such a stream after 10 seconds,
     * unless the file exports a longer `idleTimeout`.
     *
     * Reason: unread data stays in memory. A client that is still connected usually reads within seconds.
     *
     * Exceeded: the server closes the stream. In revisions without sessions it cancels the call. In a session, the call
     * continues, and the client can resume the stream.
     */
    readonly writeMs: number;
    /**
     * Resources that one subscription or one session can watch. Their URIs may have 256 characters on average.
     *
     * Reason: each resource counts towards `memory` with 100 bytes, and two bytes per character of its URI.
     *
     * Exceeded: code -32602, with HTTP 400 for `subscriptions/listen`.
     */
    readonly watchedUris: number;
  };
  /** Sessions over HTTP, in revisions that have them. */
  readonly sessions: {
    /**
     * Sessions of one client whose state is in memory. The limit does not apply to a client with neither a principal
     * nor a known address.
     *
     * Reason: each window of an application may open a session, and some applications never end their sessions.
     *
     * Exceeded: as for `connections.sessions`, among the sessions of this client.
     */
    readonly openPerClient: number;
    /**
     * Maximum lifetime of a session.
     *
     * Reason: instances must remember the ids of ended sessions for this time.
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
     * Reason: enough for the events that a client misses while it changes networks. All sessions share `replay.bytes`.
     *
     * Exceeded: the session drops its oldest events. Resuming from an earlier event gets HTTP 400, code -32600.
     */
    readonly events: number;
    /**
     * Bytes of the events that all sessions keep, at two bytes per character. One client may use all free bytes. These
     * bytes do not count towards `memory`. In a store, an instance keeps at most four times as many bytes, of which one
     * client has at most a quarter.
     *
     * Reason: most events are never requested again, so they must not compete with calls for memory.
     *
     * Exceeded: the largest session of the client with the most bytes drops its oldest events. Resuming from an earlier
     * event gets HTTP 400, code -32600. In a store, new events are not kept, and changes of sessions get HTTP 429, code
     * -31503.
     */
    readonly bytes: number;
    /**
     * Time for which an event is kept.
     *
     * Reason: clients reconnect within minutes, or begin a new session.
     *
     * Exceeded: the session drops the event. Resuming from an earlier event gets HTTP 400, code -32600.
     */
    readonly ms: number;
  };
  /** Idempotency keys of tools, and the results that are kept for them. */
  readonly idempotency: {
    /**
     * Characters of an idempotency key.
     *
     * Reason: keys are usually random ids or order numbers, and error messages repeat the key.
     *
     * Exceeded: code -32602.
     */
    readonly keyCharacters: number;
    /**
     * Bytes of the results that an instance keeps for idempotency keys, with 512 bytes for each key. One client has at
     * most a quarter. Without a store, the bytes also count towards `memory`.
     *
     * Reason: if a result is dropped too early, its call can run twice, so no result is dropped to make room for a
     * newer result. With keys that are kept for ten minutes, a client can make 54 calls per second.
     *
     * Exceeded: a call with a new key gets HTTP 503 (429 in revisions with sessions), code -31503. The result of a call
     * that is already running is not kept, and a repeated call gets code -31409.
     */
    readonly bytes: number;
  };
  /** The concrete paths of a server whose path has parameters, such as one for each tenant. */
  readonly endpoints: {
    /**
     * Concrete paths whose handlers are in memory. Paths whose handlers are being created are counted separately, up to
     * the same number, of which one client may have a quarter.
     *
     * Reason: the handlers of a path are created again when they are needed, so dropping them only costs time.
     *
     * Exceeded: the server drops the path that was idle longest, of the client with the most paths. Its sessions stay
     * valid, but their clients lose their subscriptions and their kept events. If no path is idle: HTTP 503 with
     * `Retry-After`, code -31503.
     */
    readonly open: number;
  };
  /**
   * Asynchronous authentications, and asynchronous checks of path parameters. Synchronous authentications and checks
   * have no limit, because they block the process anyway.
   */
  readonly auth: {
    /**
     * Authentications in progress. Checks of path parameters are counted separately, up to the same number.
     *
     * Reason: their callers are not known yet, so limits per client cannot protect other clients.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Authentications in progress for one address. Checks of path parameters are counted separately, up to the same
     * number. The limit does not apply to unknown addresses.
     *
     * Reason: clients with the same address must not use up `auth.running`.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly runningPerPeer: number;
    /**
     * Time that one authentication, one check of path parameters, or the function `handlers` of a path may take.
     *
     * Reason: a client waits for this step before its call starts.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. `facts.signal` aborts.
     */
    readonly timeoutMs: number;
  };
}

/** The values of the bounds. */
export const FIXED_LIMITS: FixedLimits = {
  request: {
    allBodiesBytes: 32 * 1024 * 1024,
    depth: 128,
    values: 200_000,
    idCharacters: 256,
    methodCharacters: 256,
    batchMessages: 100,
  },
  calls: {
    waiting: 4096,
    rounds: 16,
    stateBytes: 65_536,
    stateMs: 600_000,
    readMs: 60_000,
    pageItems: 250,
  },
  streams: {
    openAfterMs: 25,
    heartbeatMs: 8000,
    waitingTexts: 256,
    waitingCharacters: 8192,
    writeMs: 30_000,
    watchedUris: 1000,
  },
  sessions: {
    openPerClient: 256,
    lifeMs: 86_400_000,
  },
  replay: {
    events: 1000,
    bytes: 8 * 1024 * 1024,
    ms: 300_000,
  },
  idempotency: {
    keyCharacters: 256,
    bytes: 64 * 1024 * 1024,
  },
  endpoints: {
    open: 1000,
  },
  auth: {
    running: 1024,
    runningPerPeer: 64,
    timeoutMs: 10_000,
  },
};
