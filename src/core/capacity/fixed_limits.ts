/**
 * The bounds that no option changes: what each counts, its value, the reason for it, and what happens when it is exceeded.
 * A table in `docs/reference/limits.md` is made from the comments here (`deno task docs:limits`).
 *
 * @module
 */

/** Bounds that no option changes, in groups. Times are in milliseconds. */
export interface FixedLimits {
  /** A message, and the body that carries it. */
  readonly request: {
    /**
     * Bytes of all bodies over 64 KiB that are still arriving. If only one is arriving, it may be larger than this.
     *
     * Reason: eight bodies at the default limit. Bodies that arrived wait for their turn, so more would not be served
     * sooner.
     *
     * Exceeded: the client with most of these bytes loses its oldest body: HTTP 503 with `Retry-After`, code -32600.
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
     * JSON values in one message or batch, including nested ones.
     *
     * Reason: a value takes 140 bytes in memory, however short its text. A message at this limit counts as 27 MiB towards
     * `memory`.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly values: number;
    /**
     * Characters of a request id or progress token.
     *
     * Reason: the server repeats both in what it sends, a token with each progress notification.
     *
     * Exceeded: HTTP 400, code -32600 for an id and -32602 for a token.
     */
    readonly idCharacters: number;
    /**
     * Characters of a method name.
     *
     * Reason: observers and error messages get the name.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly methodCharacters: number;
    /**
     * Messages in one batch. Only one protocol revision has batches.
     *
     * Reason: each message may become a call, and all their responses are one body.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly batchMessages: number;
  };
  /** Calls, from their start to their result. */
  readonly calls: {
    /**
     * Calls that wait in the queue of the process. One client may fill a quarter of it. Over stdio and WebSocket it has
     * fewer, see `calls.runningPerClient`.
     *
     * Reason: as many as run by default, so that a call waits for about one other. Their parameters count towards
     * `memory`.
     *
     * Exceeded: HTTP 503 (429 in revisions with sessions) with `Retry-After`, code -31503.
     */
    readonly waiting: number;
    /**
     * Rounds of questions to the client in one call, in revisions without sessions.
     *
     * Reason: a handler that asks again whatever the answer is would never end. Real dialogs have fewer than 10 rounds.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly rounds: number;
    /**
     * Bytes of the sealed `requestState` that the client carries from one round to the next. The values of `ctx.once` in
     * one call may have half of this as JSON in UTF-8, in every revision.
     *
     * Reason: the client stores it and sends it with every answer.
     *
     * Exceeded: code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly stateBytes: number;
    /**
     * Time for which a `requestState` is valid.
     *
     * Reason: time for a person to read and decide. Within it, the server remembers which answers were used.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly stateMs: number;
    /**
     * Time to read the streams and iterables that one handler returned.
     *
     * Reason: a stream that never ends would hold its call forever. Most clients wait 60 seconds.
     *
     * Exceeded: the stream is cancelled, the client gets code -32603 "Internal error", and `observer.fault` gets the reason.
     */
    readonly readMs: number;
    /**
     * Items on one page of a list.
     *
     * Reason: most servers fit on one page, and a page of 250 tools has about 250 KB.
     *
     * Exceeded: the page ends, and the result has a `nextCursor`.
     */
    readonly pageItems: number;
  };
  /** Responses and sockets that stay open. */
  readonly streams: {
    /**
     * Time after which the response of a running call becomes an event stream. A shared timer makes it up to twice as
     * long.
     *
     * Reason: without a stream, the server does not notice that a client has disconnected. Most calls end sooner and need
     * none.
     *
     * Exceeded: the response starts with status 200 before its content is known. It is an event stream. For a client that
     * accepts only JSON, it is white space that is followed by the JSON.
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
     * Exceeded: `await ctx.progress(…)` and log methods wait until the client has read some.
     */
    readonly waitingTexts: number;
    /**
     * Characters that may be unread on one HTTP stream. It is also the size of the pieces that the server hands to the
     * runtime. A large result, or a handler that does not wait, can exceed it. All unread data of one stream counts towards
     * `memory` once it has more than 16,384 characters, at two bytes per character.
     *
     * Reason: a runtime copies each piece into a buffer of its own.
     *
     * Exceeded: as for `streams.waitingTexts`.
     */
    readonly waitingCharacters: number;
    /**
     * Time for which a client may leave an HTTP stream unread. `bun server.ts` closes such a stream after 10 seconds,
     * unless the file exports a longer `idleTimeout`.
     *
     * Reason: what it has not read is held in memory. A client that reads at all reads within seconds.
     *
     * Exceeded: the server closes the stream. In revisions without sessions it cancels the call. In a session the call
     * goes on, and the client can resume the stream.
     */
    readonly writeMs: number;
    /**
     * Resources that one subscription or one session can watch. Their URIs may have 256 characters on average.
     *
     * Reason: each counts towards `memory` with 100 bytes, and two bytes per character of its URI.
     *
     * Exceeded: code -32602, with HTTP 400 for `subscriptions/listen`.
     */
    readonly watchedUris: number;
  };
  /** Sessions over HTTP, in revisions that have them. */
  readonly sessions: {
    /**
     * Sessions of one client whose state is in memory. A client with neither a principal nor a known address has no limit
     * of its own.
     *
     * Reason: each window of an application opens one, and some applications never end theirs.
     *
     * Exceeded: as for `connections.sessions`, among the sessions of this client.
     */
    readonly openPerClient: number;
    /**
     * Time after which a session ends in any case.
     *
     * Reason: instances remember the ids of ended sessions for as long.
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
     * Reason: what a client misses while it changes networks. All sessions share `replay.bytes`.
     *
     * Exceeded: the session drops its oldest events. Resuming before them gets HTTP 400, code -32600.
     */
    readonly events: number;
    /**
     * Bytes of the events that all sessions keep, at two bytes per character. One client may use all that is free. They do
     * not count towards `memory`. An instance has at most four times as much in a store, of which one client has at most a
     * quarter.
     *
     * Reason: events that nobody asks for again must not compete with calls for memory.
     *
     * Exceeded: the session of the client with most bytes that has most of them drops its oldest events. Resuming before
     * them gets HTTP 400, code -32600. In a store, new events are not kept, and changes of sessions get HTTP 429, code
     * -31503.
     */
    readonly bytes: number;
    /**
     * Time for which an event is kept.
     *
     * Reason: clients reconnect within minutes or begin anew.
     *
     * Exceeded: the session drops the event. Resuming before it gets HTTP 400, code -32600.
     */
    readonly ms: number;
  };
  /** Idempotency keys of tools, and the results that are kept for them. */
  readonly idempotency: {
    /**
     * Characters of an idempotency key.
     *
     * Reason: keys are random ids and numbers of orders, and an error repeats the key.
     *
     * Exceeded: code -32602.
     */
    readonly keyCharacters: number;
    /**
     * Bytes of the results that an instance keeps for idempotency keys, with 512 bytes for each key. One client has at most
     * a quarter. Without a store they also count towards `memory`.
     *
     * Reason: a result that is dropped too early would let its call run twice, so none is dropped for a newer one. A client
     * can make 54 calls a second with keys that are kept for ten minutes.
     *
     * Exceeded: a call with a new key gets HTTP 503 (429 in revisions with sessions), code -31503. The result of a call
     * that runs already is not kept: a repeated call gets code -31409.
     */
    readonly bytes: number;
  };
  /** The concrete paths of a server whose path has parameters, such as one for each tenant. */
  readonly endpoints: {
    /**
     * Concrete paths whose handlers are in memory. Those whose handlers are being made are counted separately, up to
     * the same number, of which one client may make a quarter.
     *
     * Reason: handlers of a path are made again when they are needed, so that this costs time and not correctness.
     *
     * Exceeded: of the client with most paths, the server drops the one that was idle for longest. Its sessions stay
     * valid, but their clients lose their subscriptions and their kept events. If none is idle: HTTP 503 with
     * `Retry-After`, code -31503.
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
     * Reason: their callers are not known yet, so their shares cannot protect others.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Authentications in progress for one address. Checks of path parameters are counted separately, up to the same
     * number. An unknown address has no limit of its own.
     *
     * Reason: one address must not use up `auth.running`.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly runningPerPeer: number;
    /**
     * Time that one authentication may take, one check of path parameters, or the function `handlers` of a path.
     *
     * Reason: a client waits for it before its call starts.
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
