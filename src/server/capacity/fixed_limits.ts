/**
 * The bounds that no option changes. The comment on each bound states what the bound counts, the reason for its value,
 * and what happens when it is exceeded. A table in `docs/reference/limits.md` is generated from these comments (`deno
 * task docs:limits`).
 */

/** Bounds that no option changes, in groups. Times are in milliseconds. */
export interface FixedLimits {
  /** A message, and the request body that contains the message. */
  readonly request: {
    /**
     * Total size of all request bodies over 64 KiB that are still arriving, in bytes. A single body may exceed this
     * bound.
     *
     * Reason: eight bodies of the default maximum size fit. Bodies that have arrived wait until the server can parse
     * them, so a higher bound would not make any response faster.
     *
     * Exceeded: the client that uses the most of these bytes loses its oldest body, and gets HTTP 503 with
     * `Retry-After`, code -32600.
     */
    readonly allBodiesBytes: number;
    /**
     * Nesting depth of objects and arrays in one message or batch.
     *
     * Reason: recursive code could overflow the stack with deeper values. Real arguments have fewer than 20 levels.
     *
     * Exceeded: HTTP 400, code -32600. The error has no id, because the message was not parsed.
     */
    readonly depth: number;
    /**
     * Number of JSON values in one message or batch, including nested values.
     *
     * Reason: even a value with a short text takes 140 bytes of memory. A message with the maximum number of values
     * counts as 27 MiB towards `memory`.
     *
     * Exceeded: as for `request.depth`.
     */
    readonly values: number;
    /**
     * Length of a request id or progress token, in characters.
     *
     * Reason: the server repeats the id in the response, and the token in each progress notification.
     *
     * Exceeded: HTTP 400, code -32600 for an id and -32602 for a token.
     */
    readonly idCharacters: number;
    /**
     * Length of a method name, in characters.
     *
     * Reason: observer events and error messages contain the name.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly methodCharacters: number;
    /**
     * Number of messages in one batch. Only one protocol revision has batches.
     *
     * Reason: each message can start a call, and one response body contains the responses to all calls.
     *
     * Exceeded: HTTP 400, code -32600.
     */
    readonly batchMessages: number;
  };
  /** Calls, from their start to their result. */
  readonly calls: {
    /**
     * Number of calls that wait in the process's queue. One client may fill a quarter of the queue. Over stdio and
     * WebSocket, the maximum per client is `calls.runningPerClient` if this limit is lower.
     *
     * Reason: the number equals the default of `calls.running`, so that each waiting call needs to wait for only about
     * one running call to end. The parameters of waiting calls count towards `memory`.
     *
     * Exceeded: code -31503.
     */
    readonly waiting: number;
    /**
     * Number of rounds in which one call asks the client questions, in revisions without sessions.
     *
     * Reason: a handler that asks another question after every answer would never end. A typical dialog has fewer than
     * 10 rounds.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly rounds: number;
    /**
     * Number of answers in one session whose sender the server is checking.
     *
     * Reason: each check can run `admit` and `allow`. A client that reaches the limit delays only its own answers.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. The call still waits for its answer.
     */
    readonly answersChecked: number;
    /**
     * Size of the sealed `requestState`, which the client returns with its answers, in bytes. In every revision, the
     * `ctx.once` values of one call may together use half of this size as JSON. Values with `maxBytes` do not count.
     *
     * Reason: the client must store the state, and send the state with every answer.
     *
     * Exceeded: the client gets code -32603 "Internal error", and `observer.fault` receives the reason.
     */
    readonly stateBytes: number;
    /**
     * Size of the sealed `requestState` if it contains the state of another server, to which `ctx.forward` has forwarded
     * the call, in bytes.
     *
     * Reason: the other server's state may have `stateBytes`, and sealing it again adds a third. Its questions need
     * space too.
     *
     * Exceeded: as for `calls.stateBytes`.
     */
    readonly forwardedStateBytes: number;
    /**
     * Time for which a `requestState` is valid.
     *
     * Reason: a person needs time to read and decide. During this time, the server must remember which answers were
     * used.
     *
     * Exceeded: HTTP 400, code -32602.
     */
    readonly stateMs: number;
    /**
     * Time that the server spends on reading the streams and iterables that one handler returned.
     *
     * Reason: a stream that never ends would keep its call running forever. Most clients wait 60 seconds for a
     * response.
     *
     * Exceeded: the stream is cancelled, the client gets code -32603 "Internal error", and `observer.fault` receives
     * the reason.
     */
    readonly readMs: number;
    /**
     * Number of items on one page of a list.
     *
     * Reason: the lists of most servers fit on one page, and a page with 250 tools has about 250 KB of JSON.
     *
     * Exceeded: the page ends, and the result has a `nextCursor`.
     */
    readonly pageItems: number;
  };
  /** Event streams and sockets. */
  readonly streams: {
    /**
     * Time after which the response to a running call becomes an event stream. The delay can be up to twice this time,
     * because all calls share one timer.
     *
     * Reason: without a stream, the server does not notice that a client has disconnected. Most calls end sooner and
     * need no stream.
     *
     * Exceeded: the server sends status 200, and the result follows as an event. A client that accepts only JSON gets
     * white space until the JSON result follows.
     */
    readonly openAfterMs: number;
    /**
     * Number of unread events on one HTTP stream.
     *
     * Reason: without backpressure, a handler that sends faster than the client reads would fill the memory.
     *
     * Exceeded: `await ctx.progress(…)` and log methods wait until the client has read some of the events.
     */
    readonly waitingTexts: number;
    /**
     * Number of unread characters on one HTTP stream. The server also writes long texts to the runtime in chunks of
     * this size. A large result, or a handler that does not await its messages, can exceed this bound. If a stream has
     * more than 16,384 unread characters, all unread characters count towards `memory` with two bytes each.
     *
     * Reason: a runtime copies each chunk into a separate buffer.
     *
     * Exceeded: as for `streams.waitingTexts`.
     */
    readonly waitingCharacters: number;
    /**
     * Time for which a client may leave an HTTP stream unread. `bun server.ts` closes such a stream after 10 seconds,
     * unless the file exports a longer `idleTimeout`.
     *
     * Reason: unread data uses memory. A client that is still connected usually reads within seconds.
     *
     * Exceeded: the server closes the stream. In revisions without sessions, the server also cancels the call. In a
     * session, the call continues, and the client can resume the stream.
     */
    readonly writeMs: number;
    /**
     * Number of resources that one subscription or one session can watch. The URIs of these resources may have 256
     * characters on average.
     *
     * Reason: each watched resource counts towards `memory` with 100 bytes, and two bytes per character of the URI.
     *
     * Exceeded: code -32602, with HTTP 400 for `subscriptions/listen`.
     */
    readonly watchedUris: number;
  };
  /** HTTP sessions, in revisions with sessions. */
  readonly sessions: {
    /**
     * Size of what a client says about itself in `clientInfo`, apart from its name, version and title, as JSON in bytes.
     *
     * Reason: the session id contains these facts, and every request contains the session id. A description and the URL
     * of a website need about 150 bytes.
     *
     * Exceeded: handlers do not see the longest facts.
     */
    readonly clientInfoBytes: number;
    /**
     * Maximum lifetime of a session.
     *
     * Reason: instances must remember the id of an ended session until the session would have expired.
     *
     * Exceeded: as for `connections.sessionIdleMs`.
     */
    readonly lifeMs: number;
  };
  /** Events that the server stores for a session, so that the client can resume a stream with `Last-Event-ID`. */
  readonly replay: {
    /**
     * Number of events that the server stores for one session.
     *
     * Reason: the number exceeds the events that a client usually misses while it changes networks. All sessions share
     * `replay.bytes`.
     *
     * Exceeded: the server drops the session's oldest events. A client that resumes from a dropped event gets HTTP 400,
     * code -32600.
     */
    readonly events: number;
    /**
     * Size of the methods, names and URIs of the calls that a stream carries, as JSON in bytes, with two bytes per
     * character. Only a batch has several calls.
     *
     * Reason: with a store, every stored group of events contains these names, by which other instances check the rights
     * of a client that resumes the stream. The URI of a resource rarely exceeds 2,000 characters.
     *
     * Exceeded: the client can resume the stream only on the instance that created the stream. Other instances respond
     * with HTTP 400, code -32600.
     */
    readonly callsBytes: number;
    /**
     * Total size of the events that the server stores for all sessions, in bytes, with two bytes per character. One
     * client may use all free bytes. These bytes do not count towards `memory`. With a store, an instance stores at
     * most four times as many bytes, and one client may use a quarter of these bytes. Values of `ctx.once` with
     * `maxBytes` in the store count towards these bytes.
     *
     * Reason: clients never request most of the events, so the events must not compete with calls for memory.
     *
     * Exceeded: the server drops the oldest events of the largest session of the client that uses the most bytes. With a
     * store, new events are not stored, and requests that change a session get HTTP 429, code -31503. `ctx.once`
     * rejects with code -31503 before the value is made.
     */
    readonly bytes: number;
    /**
     * Time for which an event is stored.
     *
     * Reason: clients reconnect within minutes, or begin a new session.
     *
     * Exceeded: as for `replay.events`.
     */
    readonly ms: number;
  };
  /** Idempotency keys of tool calls, and the results that the server stores for the keys. */
  readonly idempotency: {
    /**
     * Length of an idempotency key, in characters.
     *
     * Reason: keys are usually random ids or order numbers. Error messages contain the key.
     *
     * Exceeded: code -32602.
     */
    readonly keyCharacters: number;
    /**
     * Total size of the results that an instance stores for idempotency keys and plans, in bytes. Each key counts as
     * another 512 bytes, and each plan as another 1,024 bytes and two bytes per character. One client may use a quarter
     * of the bytes. Without a store, the bytes also count towards `memory`, where each key counts as another 896 bytes.
     *
     * Reason: if the server dropped a result before the key expires, a repeated call would run a second time. Therefore
     * the server never drops a result to make room for a newer result. If each key is stored for ten minutes, one
     * client can make 54 calls per second.
     *
     * Exceeded: a call with a new key, or for a new plan, gets code -31503. The result of a running call is not stored, and a repeated call
     * gets code -31409.
     */
    readonly bytes: number;
  };
  /** The use of the store by clients. Operations that the server makes for itself do not count. */
  readonly store: {
    /**
     * Number of store operations that the requests of all clients together have in progress. One client may have an
     * eighth of this number in progress, which is 32, and twice as many requests that wait to begin. The last quarter
     * of the number is for clients that use few resources. In addition, one client may follow as many topics of the
     * store as `connections.streamsPerClient`, such as the streams of other instances that the client has resumed.
     *
     * Reason: the number is about a quarter of the default of the store's option `pending`, so that three servers can
     * share a store. One request makes at most four operations at the same time.
     *
     * Exceeded: the operation waits, and the clients take turns. If too many requests of the client wait to begin: code
     * -31503. A request that has begun to use the store is not refused, because its first half would have been done in
     * vain. A further stream that the client resumes from another instance ends.
     */
    readonly operations: number;
  };
  /** The rates of handlers, set by `quota({ rate })`. */
  readonly rates: {
    /**
     * Number of new clients whose calls are counted separately, for each rate and period. The same bound applies
     * separately to principals and to all other clients. An IPv6 /56 network counts as one client. With `shared`, the
     * bound also limits the number of new logs in the store, for each instance and period.
     *
     * Reason: anybody can call from many addresses, and a count takes memory, and with `shared` three keys in a store
     * such as Redis. Clients with many addresses must not affect principals.
     *
     * Exceeded: further new clients of the kind share one count. With `shared`, the instance counts their calls without
     * the store.
     */
    readonly clients: number;
  };
  /** The concrete paths of a server whose path has parameters, such as one path per tenant. */
  readonly endpoints: {
    /**
     * Number of concrete paths whose handlers are in memory. A second, separate bound of the same size applies to paths
     * whose handlers are being created. One client may use a quarter of the second bound.
     *
     * Reason: the server creates a path's handlers again when a client uses the path, so evicting a path only costs
     * time.
     *
     * Exceeded: the server evicts the longest idle path of the client that uses the most paths. The path's sessions
     * stay valid, but their subscriptions and stored events are lost. If no path is idle: HTTP 503 with `Retry-After`,
     * code -31503.
     */
    readonly open: number;
  };
  /**
   * Asynchronous authentications, and asynchronous checks of path parameters. Synchronous authentications and checks
   * need no bound, because they run one after another.
   */
  readonly auth: {
    /**
     * Number of authentications in progress. The same bound applies separately to checks of path parameters.
     *
     * Reason: the callers are not known yet, so per-client limits cannot protect other clients.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly running: number;
    /**
     * Number of authentications in progress for one address. The same bound applies separately to checks of path
     * parameters. The bound does not apply to unknown addresses.
     *
     * Reason: clients at one address must not be able to use up `auth.running`.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503.
     */
    readonly runningPerPeer: number;
    /**
     * Time that one authentication, one check of path parameters, or one run of the `handlers` function for a path may
     * take.
     *
     * Reason: the client's call cannot start before this step has ended.
     *
     * Exceeded: HTTP 503 with `Retry-After`, code -31503. During an authentication, `info.signal` aborts.
     */
    readonly timeoutMs: number;
    /**
     * Number of failed authentications from one address in one minute: opaque tokens and `basicAuth` passwords that are
     * invalid or being checked. A token that was accepted within the last hour does not count, nor does a name that was
     * accepted from this address within the last hour. The server remembers 10,000 tokens (as digests) and 10,000 names.
     * An IPv6 /56 network counts as one address. The bound does not apply to unknown addresses.
     *
     * Reason: a client could flood the issuer with requests, or try one password for many users. `auth.failuresPerUser`
     * does not apply to different spellings of a name, although many databases treat them as the same name.
     *
     * Exceeded: requests with unknown tokens or names from this address wait until a check in progress has succeeded. If
     * too many checks have failed, the server sends one token at a time to the issuer, and checks one password per second,
     * until the minute has passed. Behind a proxy that is not in `proxies`, this affects all clients with unknown tokens
     * or names.
     */
    readonly failuresPerPeer: number;
    /**
     * Number of passwords for one user name from one address that are wrong or being checked by `basicAuth`, in one
     * minute. Requests that share one check count once. Names that differ only in case, accents or white space count as
     * one name. Addresses count as for `auth.failuresPerPeer`.
     *
     * Reason: a client could guess thousands of passwords per second. The bound does not apply to a name alone, because
     * anyone could then lock out the user.
     *
     * Exceeded: requests from this address with this name wait until a check in progress has succeeded. If too many
     * passwords were wrong, the server checks one password per second, until the minute has passed. Behind a proxy that
     * is not in `proxies`, this affects all clients with this name.
     */
    readonly failuresPerUser: number;
    /**
     * Number of requests that wait because of `auth.failuresPerPeer` or `auth.failuresPerUser`, or for the check of
     * another request with the same credentials. These requests do not count towards `auth.running`.
     *
     * Reason: a waiting request holds its connection and its headers. Clients at 12 addresses can fill the bound, except
     * for its last quarter. The server then refuses only requests that must wait anyway.
     *
     * Exceeded: HTTP 429 with `Retry-After`, code -31429.
     */
    readonly delayed: number;
    /**
     * Number of requests from one address that count towards `auth.delayed`.
     *
     * Reason: clients at one address must not be able to use up `auth.delayed`.
     *
     * Exceeded: HTTP 429 with `Retry-After`, code -31429.
     */
    readonly delayedPerPeer: number;
    /**
     * Time for which a request waits because of `auth.failuresPerPeer` or `auth.failuresPerUser`.
     *
     * Reason: most clients wait at least 10 seconds for a response.
     *
     * Exceeded: HTTP 429 with `Retry-After`, code -31429.
     */
    readonly delayMs: number;
  };
  /** The searches of `toolSearch()` without the option `rank`. */
  readonly search: {
    /**
     * Number of different words of a query that count, without words such as "the".
     *
     * Reason: models search with up to ten words. Each word, with its synonyms, takes time that grows with the number of
     * tools.
     *
     * Exceeded: the search ignores further words.
     */
    readonly words: number;
    /**
     * Total size of the remembered rankings of all clients, in bytes. One client may use a quarter of the bytes. These
     * bytes do not count towards `memory`.
     *
     * Reason: models repeat searches, and a remembered ranking takes no time. A ranking has about 1 KB.
     *
     * Exceeded: the client that uses the most bytes loses the ranking that it used least recently.
     */
    readonly bytes: number;
  };
  /** Each `proxy()`. */
  readonly proxy: {
    /**
     * Number of connections of callers to the other server, if each caller has a connection of its own. A caller has at
     * most four of them, for clients with different capabilities.
     *
     * Reason: each connection to a command is a process, and each connection to a URL is a session of the other server.
     *
     * Exceeded: the client with the most connections loses the idle connection that it used least recently. If all of
     * them are in use, the result of the call is an error for the model, which says to try again later.
     */
    readonly connections: number;
    /**
     * Number of connections of callers that belong to one client, which can have many sessions.
     *
     * Reason: one client must not be able to use up `proxy.connections`.
     *
     * Exceeded: as with `proxy.connections`, with the idle connections of this client.
     */
    readonly connectionsPerClient: number;
    /**
     * Number of calls of a server with sessions that wait for a caller without a session, which answers with its next
     * request. The parameters and questions of these calls count towards `memory`.
     *
     * Reason: the handler of the other server keeps running until the caller answers, or for ten minutes.
     *
     * Exceeded: the other server gets an error instead of the answer, code -32603.
     */
    readonly parked: number;
    /**
     * Number of the calls in `proxy.parked` that belong to one client.
     *
     * Reason: one client must not be able to use up `proxy.parked`.
     *
     * Exceeded: the other server gets an error instead of the answer, code -32603.
     */
    readonly parkedPerClient: number;
    /**
     * Total size of the results of these calls that are kept for ten minutes, in bytes. One client may use a quarter of
     * the bytes. These bytes also count towards `memory`.
     *
     * Reason: the handler of the caller may run again, for another question, and its call must not run twice.
     *
     * Exceeded: the client that uses the most bytes loses the result that it got first. If its handler runs again, the
     * result of the call is an error for the model, which says that the call may have run.
     */
    readonly bytes: number;
    /**
     * Number of resources whose changes the proxy watches for its callers.
     *
     * Reason: the other server keeps a subscription for each resource.
     *
     * Exceeded: the subscription gets no notifications of the other server for the resource.
     */
    readonly watched: number;
    /**
     * Number of the resources in `proxy.watched` that are charged to one client. A resource that several clients watch is
     * charged to one of them.
     *
     * Reason: one client must not be able to use up `proxy.watched`.
     *
     * Exceeded: as with `proxy.watched`.
     */
    readonly watchedPerClient: number;
  };
}

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
    answersChecked: 32,
    stateBytes: 65_536,
    forwardedStateBytes: 131_072,
    stateMs: 600_000,
    readMs: 60_000,
    pageItems: 250,
  },
  streams: {
    openAfterMs: 25,
    waitingTexts: 256,
    waitingCharacters: 8192,
    writeMs: 30_000,
    watchedUris: 1000,
  },
  sessions: {
    clientInfoBytes: 1024,
    lifeMs: 86_400_000,
  },
  replay: {
    events: 1000,
    callsBytes: 16_384,
    bytes: 8 * 1024 * 1024,
    ms: 300_000,
  },
  idempotency: {
    keyCharacters: 256,
    bytes: 64 * 1024 * 1024,
  },
  store: {
    operations: 256,
  },
  rates: {
    clients: 10_000,
  },
  endpoints: {
    open: 1000,
  },
  auth: {
    running: 1024,
    runningPerPeer: 64,
    timeoutMs: 10_000,
    failuresPerPeer: 60,
    failuresPerUser: 10,
    delayed: 1000,
    delayedPerPeer: 64,
    delayMs: 5000,
  },
  search: {
    words: 12,
    bytes: 512 * 1024,
  },
  proxy: {
    connections: 32,
    connectionsPerClient: 16,
    parked: 200,
    parkedPerClient: 20,
    bytes: 8 * 1024 * 1024,
    watched: 1000,
    watchedPerClient: 250,
  },
};
