/**
 * A request in progress, the same in every protocol revision and on every transport.
 *
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../../protocol/errors.ts";
import { type Id, isObject, type Params, type Request as Message, type Result } from "../../protocol/jsonrpc.ts";
import { Room } from "../../protocol/room.ts";
import { countIndexes, toWeight } from "../../protocol/weight.ts";
import type { Meta, ResourceContents } from "../../protocol/types.ts";
import type { Account } from "../capacity/account.ts";
import { type ContainerHost, findInternals, type ServiceCall } from "./container.ts";
import type { ClientFacts, Context, Log, Principal, ReadRoute, ReadSession, RunningServer } from "./context.ts";
import { CancelError } from "./cancel_error.ts";
import type { Cancellable, InFlight } from "./in_flight.ts";
import type { Link } from "./link.ts";
import { createLog, toLoggable, wantsLevel } from "./log.ts";
import type { CancelReason, RequestReport } from "./observer.ts";
import { type PreparedQuestion, type Question, requireCapabilities } from "./question.ts";
import { elicitation, ROOTS, sampling, urlElicitation } from "./question_kinds.ts";
import type { RerunWatch, Stretch } from "./rerun_watch.ts";
import type { WatchedRun } from "./run_watch.ts";
import { HAS_SCOPES } from "./internals.ts";
import type { Service, ServiceEnd } from "./service.ts";

/** Few servers forward requests. */
const forwardRoom = new Room(() => import("./forward.ts"));

/** Gets the handle that a client gets of a handler that goes on, and its type. */
export type OnHandle = (handle: Result, type: string) => Promise<void>;

/** Work after a call. */
export type Deferred = (end: ServiceEnd) => unknown;

/** State that all calls of one server share. */
export interface CallHost extends ContainerHost {
  readonly server: RunningServer;
  /** Returns the parameters of the path, if it has any. */
  readonly route?: ReadRoute;
  /** Set in development. */
  reruns?: RerunWatch;
  /** Runs a function after a call. */
  defer(call: Call, run: Deferred): void;
  /** Reads a resource for a handler. */
  readResource(call: Call, uri: string): Promise<readonly ResourceContents[]>;
  /**
   * Returns the check for a call that starts to wait: whether its handler still exists for its caller. The check throws
   * the error for the client. Returns `undefined` for a method without handlers.
   */
  recheck(call: Call): (() => Promise<void>) | undefined;
  /** Tests whether the caller has scopes. */
  isGranted(link: Link, scopes: readonly string[]): boolean;
  /** The call whose handler reads a resource by this one. */
  readonly outer?: Call;
  /** Number of resources that wait for this read. */
  readonly readDepth?: number;
}

/** What the calls of one era share, or those of one session. */
export interface CallHome {
  readonly host: CallHost;
  /** Whether results may have a type of their own, which an extension defines. */
  readonly hasResultTypes?: boolean;
  /** Returns the function that reads what the server knows of the client's session. */
  readonly session: (call: Call) => ReadSession;
  /** Returns the name or the URI that the call is about. */
  readonly subject?: (call: Call) => string | undefined;
}

/** The timeout of a call, which stands still while the client is asked. */
export interface Deadline {
  stop(): void;
  start(): void;
}

/**
 * One request. Handlers see it as their {@linkcode Context}. Each era has a class of its own, which sends what the call
 * sends before its result, and owns what belongs to one call of that era.
 *
 * Such a class has a static `#model`, a call that never runs. It keeps the hidden class of calls in memory while no call
 * runs. Otherwise a full garbage collection would discard that class, and with it the compiled code that handles calls.
 * Measured on Deno with a full collection before every 300 calls: without it, a call takes 4 to 10 percent longer.
 */
export abstract class Call implements ServiceCall, Cancellable {
  readonly id: Id;
  readonly method: string;
  readonly client: ClientFacts;
  readonly link: Link;
  /** The calls of the connection, where this one can be found by its id. */
  readonly inFlight: InFlight;
  /** Upper bound of the bytes that the parameters take. */
  weight: number;
  /** The client that is charged with the call. `undefined` while the server holds too little to charge anybody. */
  account?: Account;
  /** Why the call was cancelled, if it was. */
  reason?: CancelError;
  /** Parameters of the request. A subscription drops them. */
  params: Params;
  /** Whether the call can no longer send anything. */
  ended = false;
  /** Whether the handler may send requests to the client. `false` during lookup, and for methods that cannot wait. */
  asks = false;
  /** Whether this is a subscription, which holds no slot. */
  isSubscription = false;
  /** Called once if the call is cancelled. */
  onCancel?: () => void;
  /** Stop what waits for the handler. Declared only, because only middleware waits. */
  declare waiting?: ((reason: CancelError) => void)[];
  /** Work after the call. */
  declare deferred?: Deferred[];
  /**
   * Reports the call. Not only declared: observed calls would have a hidden class of their own, which a full garbage
   * collection discards with the compiled code. That made an observer cost a fifth of a call.
   */
  observed?: RequestReport;
  /** Called when the input is valid and the handler starts. Declared only, because few calls have it. */
  declare onRun?: () => void;
  /** What the effects of the call are known by, if it has an idempotency key. Declared only, because few calls have one. */
  declare idempotencyToken?: string;
  /** Called before an extension sends a handle while the handler goes on. Declared only, as above. */
  declare onHandle?: OnHandle;
  /** Milliseconds that the handler may take, if it has a limit of its own. */
  declare timeoutMs?: number;
  /** What the server knows of the session, if this call has read it without one. */
  declare data?: readonly [unknown];
  /** Number of questions that the client has not answered. */
  declare asking?: number;
  /** Stops and restarts the timeout, if it is exact. */
  declare deadline?: Deadline;
  /** Whether an answer has arrived since the time of the call was counted. */
  declare hasAsked?: boolean;
  /** Milliseconds that the call has run, if it takes long. */
  declare ranMs?: number;
  /** Whether the call waits for a slot. */
  declare isQueued?: boolean;
  /** Work since the last question, which {@linkcode RerunWatch} counts in development. */
  declare stretch?: Stretch;
  /** The run of the handler, which `RunWatch` watches in development. */
  declare watched?: WatchedRun;
  /** Set if an extension of the server makes this call, with the data that it gave. Declared only, because few do. */
  declare internal?: { readonly data: unknown };
  /** What it shares with the other calls of its era or session. */
  readonly home: CallHome;
  /** Text of the request, until it is weighed. */
  #text?: string;
  #controller?: AbortController;
  #progress = -Infinity;
  #waiting?: Promise<void>;
  #merged?: Params;
  #queuedLogs = 0;
  /** The questions so far, by key. */
  #asked?: Map<string, string>;
  /** How many requests the handler has forwarded. */
  #forwarded?: number;

  /** Creates a call that arrived over `link`. */
  constructor(
    home: CallHome,
    link: Link,
    request: Message,
    client: ClientFacts,
    inFlight: InFlight = link.inFlight,
  ) {
    this.home = home;
    this.link = link;
    this.inFlight = inFlight;
    this.id = request.id;
    this.method = request.method;
    this.weight = request.weight;
    this.#text = request.text;
    this.client = client;
    this.params = request.params ?? {};
    home.host.reruns?.begin(this);
  }

  /** Sends a notification before the result. Returns a promise if the sender should wait for room. */
  abstract notify(method: string, params: Params): Promise<void> | undefined;

  /** Asks the client. */
  abstract askClient(key: string, question: Question): Promise<unknown>;

  /** Returns the value under a key, or makes it. */
  abstract makeOnce(key: string, make: () => unknown): Promise<unknown>;

  /** Restores the answers that the call brings. Returns `undefined` if it brings none. */
  restore(): Promise<void> | undefined {
    return undefined;
  }

  /** Whether a question is open that ends this run of the handler. */
  get isAsking(): boolean {
    return false;
  }

  /** Returns the result that asks the open questions. `undefined` if none ends this run of the handler. */
  toQuestions(): Promise<Result> | undefined {
    return undefined;
  }

  /** Whether progress is sent without a token too. */
  get takesAllProgress(): boolean {
    return false;
  }

  /** Closes the connection but not the call, if the client can resume the stream later. */
  release(_retryMs: number | undefined): void {}

  get principal(): Principal | undefined {
    return this.link.principal;
  }

  get [HAS_SCOPES](): (scopes: readonly string[]) => boolean {
    return (scopes) => this.host.isGranted(this.link, scopes);
  }

  get http(): Request | undefined {
    return this.link.http?.request;
  }

  get server(): RunningServer {
    const { server, reruns } = this.home.host;
    return reruns ? reruns.watchServer(this, server) : server;
  }

  get host(): CallHost {
    return this.home.host;
  }

  // Handlers that declare services get a context of their own. The type lets a call stand for any context.
  get services(): never {
    return NONE;
  }

  get session(): ReadSession {
    return this.home.session(this);
  }

  get route(): ReadRoute {
    return this.host.route ?? refuseRoute;
  }

  /** Why the call was cancelled, if it was. */
  get why(): CancelReason | undefined {
    return this.reason?.why;
  }

  /** The name of the tool or prompt, or the URI of the resource, if the call is about one. */
  get subject(): string | undefined {
    return this.home.subject?.(this);
  }

  get meta(): Meta {
    const meta = this.params._meta;
    return isObject(meta) ? meta : {};
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.reason !== undefined) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  // Handlers destructure these methods: `run: (input, { log }) => …`. They are getters, so that each is bound to its
  // call and costs nothing until a handler reads it.

  get progress(): Context["progress"] {
    return (progress, { total, message } = {}) => {
      const { progressToken: token }: Meta = Object(this.params._meta);
      if (!(isProgressToken(token) || this.takesAllProgress) || !(progress > this.#progress)) return done;
      this.#progress = progress;
      const params = { progressToken: token, progress, total, message };
      if (!this.#waiting) return this.#send("notifications/progress", params);
      // The client reads more slowly than the handler works, so only the newest value is kept.
      this.#merged = params;
      return this.#waiting;
    };
  }

  get log(): Log {
    return createLog((level, data, logger) => {
      if (!wantsLevel(this.client, level)) return done;
      // A handler that does not wait gets ahead of its client. Beyond this limit, its messages are dropped.
      if (this.#waiting && this.#queuedLogs++ >= MAX_QUEUED_LOGS) return this.#waiting;
      return this.#send("notifications/message", { level, logger, data: toLoggable(data) });
    });
  }

  get elicit(): Context["elicit"] {
    return (key, options) => this.#ask(() => elicitation(key, options), "elicit", key);
  }

  get elicitUrl(): Context["elicitUrl"] {
    return (key, options) => this.#ask(() => urlElicitation(key, options), "elicitUrl", key);
  }

  get sample(): Context["sample"] {
    return (key, request) => this.#ask(() => sampling(key, request), "sample", key);
  }

  get roots(): Context["roots"] {
    return () => this.#ask(() => ROOTS, "roots");
  }

  get forward(): Context["forward"] {
    return (send) => {
      const index = this.#forwarded = (this.#forwarded ?? -1) + 1;
      const { once, signal } = this;
      const ask = (question: PreparedQuestion) => quiet(this.#put(() => question));
      const result = forwardRoom.open().then(({ forward }) => forward({ once, ask, signal, index }, send));
      return this.#watch(result, "forward");
    };
  }

  get once(): Context["once"] {
    // The value has the type of `make`, apart from its conversion to JSON and back.
    return <T>(key: string, make: () => T | Promise<T>) => {
      const { reruns } = this.host;
      const run = () => this.makeOnce(key, make) as Promise<T>; // As in `once` above.
      return quiet(reruns ? reruns.once(this, run) : run());
    };
  }

  get get(): Context["get"] {
    // The value has the type of its service.
    return async <T>(service: Service<T>) => await findInternals(service)?.get(this, service) as T;
  }

  get readResource(): Context["readResource"] {
    return (uri) => quiet(this.host.readResource(this, uri));
  }

  get defer(): Context["defer"] {
    return (run) => this.host.defer(this, run);
  }

  get closeStream(): Context["closeStream"] {
    return (retryMs) => {
      if (!this.ended) this.release(retryMs);
    };
  }

  /** Reports the call. `subject` is the parameter that names what it is about. */
  observe(report: RequestReport, subject: string | undefined): void {
    report.identify(this.client, subject && this.params[subject], this.sessionId);
    this.observed = report;
  }

  /** Reports the call as a part of `outer`, if that is observed. */
  observePart(outer: Call): void {
    this.observed = outer.report?.part(this.method, this.subject);
  }

  /** What reports the call, or the one that it is a part of. */
  get report(): RequestReport | undefined {
    return this.observed;
  }

  /** Part of the id of the session, which observers get. */
  get sessionId(): string | undefined {
    return undefined;
  }

  /** From here on, the handler may ask the client. */
  allowQuestions(): void {
    this.asks = true;
  }

  /** The call is a part of `outer`: its handler may ask the client if that of `outer` may. */
  inherit({ asks, internal }: Call): void {
    this.asks = asks;
    if (internal) this.internal = internal;
  }

  /** An extension of the server makes this call. */
  markInternal(data: unknown): void {
    this.internal = { data };
  }

  /** Runs something that cannot ask the client, such as `allow`. */
  async withoutQuestions<T>(run: () => Promise<T>): Promise<T> {
    const { asks } = this;
    this.asks = false;
    try {
      return await run();
    } finally {
      this.asks = asks;
    }
  }

  /** Limits the time of the handler to `ms`, or to the default of the server. */
  limitTime(ms: number | undefined): void {
    this.timeoutMs = ms;
  }

  /** Runs the synchronous part of the handler. In development, it is timed. */
  timed<T>(run: () => T): T {
    return this.watched ? this.watched.time(run) : run();
  }

  /** Calls `run` when the input is valid and the handler starts. */
  whenRun(run: () => void): void {
    this.onRun = run;
  }

  /** The call has an idempotency key, which `token` stands for. `onHandle` keeps the handle that the client may get. */
  identifyEffects(token: string, onHandle?: OnHandle): void {
    this.idempotencyToken = token;
    this.onHandle = onHandle;
  }

  /** Calls `run` once if the call is cancelled. */
  whenCancelled(run: () => void): void {
    this.onCancel = run;
  }

  /** Ends a call that the scheduler does not end, such as a subscription. From here on, it sends nothing. */
  end(): void {
    this.ended = true;
  }

  /** Turns the call into a subscription, which holds no slot and no longer needs its parameters. */
  subscribe(): void {
    this.isSubscription = true;
    this.params = {};
  }

  /** Measures the bytes that the parameters take. */
  weigh(): number {
    if (this.#text !== undefined) {
      this.weight = toWeight(this.#text, { max: 0, indexes: countIndexes(this.#text) });
      this.#text = undefined;
    }
    return this.weight;
  }

  /** Charges the client with this running call, unless it is charged already. */
  charge(): void {
    if (this.account || this.isSubscription) return;
    this.account = this.link.account;
    this.account.start();
    this.account.charge(this.weigh());
  }

  /**
   * Waits for something that is no work of the handler, such as an answer. Meanwhile its time stands still, and that of a
   * handler that reads a resource by this call.
   */
  async untilAnswered<T>(answer: Promise<T>): Promise<T> {
    const { outer } = this.host;
    this.asking = (this.asking ?? 0) + 1;
    this.deadline?.stop();
    try {
      return await (outer ? outer.untilAnswered(answer) : answer);
    } finally {
      this.hasAsked = true;
      if (!--this.asking) this.deadline?.start();
    }
  }

  /**
   * Adds a period to the time of the call, and cancels it at the limit. Periods in which the client was asked do not
   * count.
   */
  age(periodMs: number, maxMs: number): void {
    if (this.isSubscription || this.isQueued || this.deadline || this.timeoutMs === Infinity) return;
    if (this.asking || this.hasAsked) this.hasAsked = false;
    // The first period is partial.
    else if (this.ranMs === undefined) this.ranMs = 0;
    else if ((this.ranMs += periodMs) >= maxMs) this.timeOut(maxMs, "calls.timeoutMs");
  }

  /** Cancels the call because it took too long. */
  timeOut(ms: number, limit: string): void {
    const text = `Cannot finish the call: it took longer than ${ms} ms (${limit})`;
    this.cancel(new CancelError("timeout", text));
  }

  /** Cancels the call. It gets a response only if its reason has one. */
  cancel(reason: CancelError): void {
    if (this.ended) return;
    if (this.observed) this.observed.why = reason.why;
    this.ended = true;
    this.reason = reason;
    this.#controller?.abort(this.reason);
    this.onCancel?.();
    for (const reject of this.waiting ?? []) reject(reason);
  }

  /** Returns the outcome of `work`. Rejects with the reason of the call once it is cancelled. */
  untilCancelled<T>(work: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    work.then(resolve, reject);
    const stop = (reason: CancelError) => {
      // Nobody may wait for it any more, and an unhandled rejection would end the process.
      promise.catch(() => {});
      reject(reason);
    };
    if (this.reason) stop(this.reason);
    else (this.waiting ??= []).push(stop);
    return promise;
  }

  #ask<T>(prepare: () => PreparedQuestion, method: string, key?: string): Promise<T> {
    // The question's `read` returns only values of type T.
    return this.#watch(this.#put(prepare) as Promise<T>, method, key);
  }

  /** In development, records whether the handler waits for a promise of `ctx.method(key)`. */
  #watch<T>(answer: Promise<T>, method: string, key?: string): Promise<T> {
    quiet(answer);
    if (!this.watched) return answer;
    return this.watched.ask(`ctx.${method}(${key === undefined ? "" : quote(key)})`, answer);
  }

  // Reaches the carrier synchronously, so that questions asked together are sent together.
  async #put(prepare: () => PreparedQuestion): Promise<unknown> {
    if (!this.asks) {
      throw new TypeError(`Cannot ask the client in ${this.method}: ask in a tool, a prompt or a resource`);
    }
    const { key, requires, make } = prepare();
    requireCapabilities(this.client.capabilities, requires, "ask the client");
    if (this.ended) throw this.reason ?? new McpError(INVALID_PARAMS, "Cannot ask the client: the call has ended");
    const { reruns } = this.host;
    const question = make(this.client.capabilities);
    const text = JSON.stringify([question.method, question.params]);
    const before = this.#asked?.get(key);
    if (before !== undefined && before !== text) {
      throw new TypeError(`Cannot ask ${quote(key)} twice: the questions differ; give each a key of its own`);
    }
    (this.#asked ??= new Map()).set(key, text);
    const { report } = this;
    const ask = () => {
      const answer = this.untilAnswered(this.askClient(key, question));
      return report ? report.ask(question.method, answer) : answer;
    };
    return await (reruns ? reruns.ask(this, key, ask) : ask());
  }

  #send(method: string, params: Params): Promise<void> {
    if (this.ended) return done;
    this.host.reruns?.note(this, SENT[method]);
    let room;
    try {
      room = this.notify(method, params);
    } catch {
      // A value that JSON cannot represent must not fail the handler that sends it.
      if ("data" in params) return this.#send(method, { level: params.level, data: "[a value that JSON cannot hold]" });
    }
    if (!room || this.#waiting) return this.#waiting ?? done;
    this.#waiting = room.then(() => {
      const merged = this.#merged;
      this.#waiting = this.#merged = undefined;
      this.#queuedLogs = 0;
      if (merged) return this.#send("notifications/progress", merged);
    });
    return this.#waiting;
  }
}

function refuseRoute(): never {
  throw new TypeError("Cannot read path parameters: the path of the server has none");
}

/** Creates the error for a result that is too long. */
export function toTooLong({ method, params: { name = "", uri = name } }: Call, bytes: number): Error {
  return new Error(
    `Cannot send the result of ${method} ${quote(uri)}: it is longer than ${bytes} bytes (calls.resultBytes)`,
  );
}

const done = Promise.resolve();
const NONE = Object.freeze({}) as never; // As `services` above says.

/** Work that a handler does by sending a notification, for warnings in development. */
const SENT: Readonly<Record<string, string>> = {
  "notifications/progress": "reports progress",
  "notifications/message": "logs a message",
};

/** Number of log messages that may wait after one that found no room. */
const MAX_QUEUED_LOGS = 256;

// A question may fail before the handler awaits it. Without a handler, that rejection would end the process.
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Whether a value can be a progress token. */
export function isProgressToken(value: unknown): value is string | number {
  return typeof value === "string" || Number.isInteger(value);
}
