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

/** Loaded on demand, because few servers forward requests. */
const forwardRoom = new Room(() => import("./forward.ts"));

/**
 * Called with the handle that the client receives for a handler that continues after the response, and with the type of
 * the handle.
 */
export type OnHandle = (handle: Result, type: string) => Promise<void>;

/** Work that runs after a call. */
export type Deferred = (end: ServiceEnd) => unknown;

/** State that all calls of one server share. */
export interface CallHost extends ContainerHost {
  readonly server: RunningServer;
  /** Returns the parameters of the path. `undefined` if the path has no parameters. */
  readonly route?: ReadRoute;
  /** Watches for repeated work. Set only in development. */
  reruns?: RerunWatch;
  /** Runs a function after a call. */
  defer(call: Call, run: Deferred): void;
  /** Reads a resource on behalf of a handler. */
  readResource(call: Call, uri: string): Promise<readonly ResourceContents[]>;
  /**
   * Returns the check to run after a call has waited: whether its handler still exists for its caller. The check throws
   * the error for the client. Returns `undefined` for a method without handlers.
   */
  recheck(call: Call): (() => Promise<void>) | undefined;
  /** Tests whether the caller of a link has the given scopes. */
  isGranted(link: Link, scopes: readonly string[]): boolean;
  /** The outer call, whose handler reads a resource. Set only for the call that reads the resource. */
  readonly outer?: Call;
  /** Number of nested reads, if handlers of resources read other resources. */
  readonly readDepth?: number;
}

/** State that the calls of one era share, or the calls of one session. */
export interface CallHome {
  readonly host: CallHost;
  /** Whether results may have a `resultType` that an extension defines. */
  readonly hasResultTypes?: boolean;
  /** Returns the function that reads the value of the server's option `session`. */
  readonly session: (call: Call) => ReadSession;
  /** Returns the name or the URI that the call refers to. */
  readonly subject?: (call: Call) => string | undefined;
}

/** The timeout of a call. It pauses while the client is asked. */
export interface Deadline {
  stop(): void;
  start(): void;
}

/**
 * One request. Handlers get it as their {@linkcode Context}. Each era has a subclass, which sends the messages before
 * the result, and holds the state that is specific to a call of the era.
 *
 * A subclass has a static `#model`, a call that never runs. It keeps the hidden class of calls in memory while no call
 * runs. Otherwise a full garbage collection would discard the hidden class, and with it the compiled code that handles
 * calls. Measured on Deno with a full collection before every 300 calls: without the model, a call takes 4 to 10
 * percent longer.
 */
export abstract class Call implements ServiceCall, Cancellable {
  readonly id: Id;
  readonly method: string;
  readonly client: ClientFacts;
  readonly link: Link;
  /** The running calls of the connection, among which this call can be found by its id. */
  readonly inFlight: InFlight;
  /** Upper bound of the bytes that the parameters take in memory. */
  weight: number;
  /**
   * The client that is charged for the call. `undefined` while all calls together are below the limits of one client.
   */
  account?: Account;
  /** The reason why the call was cancelled. `undefined` if the call was not cancelled. */
  reason?: CancelError;
  /** Parameters of the request. A subscription drops them to save memory. */
  params: Params;
  /** Whether the call can no longer send anything. */
  ended = false;
  /** Whether the handler may send requests to the client. `false` during lookup, and for methods that cannot wait. */
  asks = false;
  /** Whether this is a subscription, which holds no slot. */
  isSubscription = false;
  /** Called once when the call is cancelled. */
  onCancel?: () => void;
  /** Functions that stop waiting for the handler. Declared without a value, because only middleware waits. */
  declare waiting?: ((reason: CancelError) => void)[];
  /** Work that runs after the call. */
  declare deferred?: Deferred[];
  /**
   * Reports the call to the observer. Not only declared: otherwise observed calls would have another hidden class,
   * which a full garbage collection discards together with the compiled code. Measured: the observer then took a fifth
   * of the time of a call.
   */
  observed?: RequestReport;
  /** Called when the input is valid and the handler starts. Declared without a value, because few calls have it. */
  declare onRun?: () => void;
  /**
   * Token that identifies the effects of the call, if the call has an idempotency key. Declared without a value,
   * because few calls have a key.
   */
  declare idempotencyToken?: string;
  /**
   * Called before an extension sends a handle while the handler continues. Declared without a value, because few calls
   * have it.
   */
  declare onHandle?: OnHandle;
  /** Timeout of the handler in milliseconds, if it has its own timeout. */
  declare timeoutMs?: number;
  /** The value of the server's option `session`, if this call has read it without a session. */
  declare data?: readonly [unknown];
  /** Number of questions that the client has not answered. */
  declare asking?: number;
  /** Stops and restarts the timeout, if it is exact. */
  declare deadline?: Deadline;
  /** Whether an answer has arrived since the running time of the call was last increased. */
  declare hasAsked?: boolean;
  /** Running time of the call in milliseconds. Set only for a long call. */
  declare ranMs?: number;
  /** Whether the call waits for a slot. */
  declare isQueued?: boolean;
  /** Work since the last question. {@linkcode RerunWatch} records it in development. */
  declare stretch?: Stretch;
  /** The run of the handler, which `RunWatch` watches in development. */
  declare watched?: WatchedRun;
  /**
   * Set if an extension of the server makes this call, with the data that the extension passed. Declared without a
   * value, because few calls have it.
   */
  declare internal?: { readonly data: unknown };
  /** State that this call shares with other calls of its era or session. */
  readonly home: CallHome;
  /** Text of the request. Set until the size of the request is computed. */
  #text?: string;
  #controller?: AbortController;
  #progress = -Infinity;
  #waiting?: Promise<void>;
  #merged?: Params;
  #queuedLogs = 0;
  /** The questions so far, as text by key. */
  #asked?: Map<string, string>;
  /** Number of requests that the handler has forwarded. */
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

  /**
   * Sends a notification before the result. Returns a promise if the sender should wait until the client has read more.
   */
  abstract notify(method: string, params: Params): Promise<void> | undefined;

  /** Sends a question to the client, and returns the answer. */
  abstract askClient(key: string, question: Question): Promise<unknown>;

  /** Returns the value under a key. Computes the value if there is none. */
  abstract makeOnce(key: string, make: () => unknown): Promise<unknown>;

  /** Restores the answers that the client sent with the call. Returns `undefined` if the client sent no answers. */
  restore(): Promise<void> | undefined {
    return undefined;
  }

  /** Whether there is an open question, which ends this run of the handler. */
  get isAsking(): boolean {
    return false;
  }

  /** Returns the result that sends the open questions. `undefined` if there is no open question. */
  toQuestions(): Promise<Result> | undefined {
    return undefined;
  }

  /** Whether progress is sent even if the client sent no progress token. */
  get takesAllProgress(): boolean {
    return false;
  }

  /** Closes the connection if the client can resume the stream later. The call continues. */
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

  // Handlers that declare services receive a separate context. With the type `never`, a call can be used as a context
  // with any services.
  get services(): never {
    return NONE;
  }

  get session(): ReadSession {
    return this.home.session(this);
  }

  get route(): ReadRoute {
    return this.host.route ?? refuseRoute;
  }

  /** The reason why the call was cancelled. `undefined` if the call was not cancelled. */
  get why(): CancelReason | undefined {
    return this.reason?.why;
  }

  /** The name of the tool or prompt, or the URI of the resource. `undefined` for other methods. */
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

  // Getters, because handlers destructure these methods: `run: (input, { log }) => …`. Each method is bound to its
  // call, and is not created before a handler reads it.

  get progress(): Context["progress"] {
    return (progress, { total, message } = {}) => {
      const { progressToken: token }: Meta = Object(this.params._meta);
      if (!(isProgressToken(token) || this.takesAllProgress) || !(progress > this.#progress)) return done;
      this.#progress = progress;
      const params = { progressToken: token, progress, total, message };
      if (!this.#waiting) return this.#send("notifications/progress", params);
      // The client reads more slowly than the handler reports progress, so keep only the newest value.
      this.#merged = params;
      return this.#waiting;
    };
  }

  get log(): Log {
    return createLog((level, data, logger) => {
      if (!wantsLevel(this.client, level)) return done;
      // A handler that does not await its messages may send faster than its client reads. Drop its messages above this
      // limit.
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
    // The cast is safe, because the value is the one `make` returned, converted to JSON and back.
    return <T>(key: string, make: () => T | Promise<T>) => {
      const { reruns } = this.host;
      const run = () => this.makeOnce(key, make) as Promise<T>; // See `once` above.
      return quiet(reruns ? reruns.once(this, run) : run());
    };
  }

  get get(): Context["get"] {
    // The cast is safe, because the value was created by its service.
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

  /** Reports the call to the observer. `subject` is the parameter with the name or URI that the call refers to. */
  observe(report: RequestReport, subject: string | undefined): void {
    report.identify(this.client, subject && this.params[subject], this.sessionId);
    this.observed = report;
  }

  /** Reports the call as a part of `outer`, if `outer` is observed. */
  observePart(outer: Call): void {
    this.observed = outer.report?.part(this.method, this.subject);
  }

  /** The report of the call, or of the call that it is a part of. */
  get report(): RequestReport | undefined {
    return this.observed;
  }

  /** Part of the session id, which observers receive. */
  get sessionId(): string | undefined {
    return undefined;
  }

  /** Allows the handler to ask the client from now on. */
  allowQuestions(): void {
    this.asks = true;
  }

  /** Makes the call a part of `outer`: its handler may ask the client if the handler of `outer` may. */
  inherit({ asks, internal }: Call): void {
    this.asks = asks;
    if (internal) this.internal = internal;
  }

  /** Marks the call as made by an extension of the server. */
  markInternal(data: unknown): void {
    this.internal = { data };
  }

  /** Runs a function that must not ask the client, such as `allow`. */
  async withoutQuestions<T>(run: () => Promise<T>): Promise<T> {
    const { asks } = this;
    this.asks = false;
    try {
      return await run();
    } finally {
      this.asks = asks;
    }
  }

  /** Limits the time of the handler to `ms` milliseconds, or to the default of the server if `ms` is `undefined`. */
  limitTime(ms: number | undefined): void {
    this.timeoutMs = ms;
  }

  /** Runs the synchronous part of the handler. In development, measures its time. */
  timed<T>(run: () => T): T {
    return this.watched ? this.watched.time(run) : run();
  }

  /** Calls `run` when the input is valid and the handler starts. */
  whenRun(run: () => void): void {
    this.onRun = run;
  }

  /** Sets the token that stands for the idempotency key. `onHandle` keeps the handle that the client may get. */
  identifyEffects(token: string, onHandle?: OnHandle): void {
    this.idempotencyToken = token;
    this.onHandle = onHandle;
  }

  /** Calls `run` once when the call is cancelled. */
  whenCancelled(run: () => void): void {
    this.onCancel = run;
  }

  /** Ends a call outside the scheduler, such as a subscription. The call sends nothing afterwards. */
  end(): void {
    this.ended = true;
  }

  /** Turns the call into a subscription, which holds no slot and no longer needs its parameters. */
  subscribe(): void {
    this.isSubscription = true;
    this.params = {};
  }

  /** Computes the bytes that the parameters take in memory. */
  weigh(): number {
    if (this.#text !== undefined) {
      this.weight = toWeight(this.#text, { max: 0, indexes: countIndexes(this.#text) });
      this.#text = undefined;
    }
    return this.weight;
  }

  /** Charges the client for this running call, unless the client is already charged. */
  charge(): void {
    if (this.account || this.isSubscription) return;
    this.account = this.link.account;
    this.account.start();
    this.account.charge(this.weigh());
  }

  /**
   * Waits for something other than the handler's own work, such as an answer. Meanwhile, the timeout pauses. If a
   * handler reads a resource with this call, the timeout of that handler pauses too.
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
   * Adds a period to the time of the call, and cancels the call at its timeout. Does not count periods in which the
   * client was asked.
   */
  age(periodMs: number, maxMs: number): void {
    if (this.isSubscription || this.isQueued || this.deadline || this.timeoutMs === Infinity) return;
    if (this.asking || this.hasAsked) this.hasAsked = false;
    // Do not count the first period, because the call started during it.
    else if (this.ranMs === undefined) this.ranMs = 0;
    else if ((this.ranMs += periodMs) >= maxMs) this.timeOut(maxMs, "calls.timeoutMs");
  }

  /** Cancels the call after a timeout. */
  timeOut(ms: number, limit: string): void {
    const text = `Cannot finish the call: it took longer than ${ms} ms (${limit})`;
    this.cancel(new CancelError("timeout", text));
  }

  /** Cancels the call. The client gets a response only if the reason has one. */
  cancel(reason: CancelError): void {
    if (this.ended) return;
    if (this.observed) this.observed.why = reason.why;
    this.ended = true;
    this.reason = reason;
    this.#controller?.abort(this.reason);
    this.onCancel?.();
    for (const reject of this.waiting ?? []) reject(reason);
  }

  /** Returns the outcome of `work`. Rejects with the reason when the call is cancelled. */
  untilCancelled<T>(work: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    work.then(resolve, reject);
    const stop = (reason: CancelError) => {
      // Handle the rejection, because there may be no other handler, and an unhandled rejection would end the process.
      promise.catch(() => {});
      reject(reason);
    };
    if (this.reason) stop(this.reason);
    else (this.waiting ??= []).push(stop);
    return promise;
  }

  #ask<T>(prepare: () => PreparedQuestion, method: string, key?: string): Promise<T> {
    // `read` of the question returns only values of type T.
    return this.#watch(this.#put(prepare) as Promise<T>, method, key);
  }

  /** In development, records whether the handler waits for a promise of `ctx.method(key)`. */
  #watch<T>(answer: Promise<T>, method: string, key?: string): Promise<T> {
    quiet(answer);
    if (!this.watched) return answer;
    return this.watched.ask(`ctx.${method}(${key === undefined ? "" : quote(key)})`, answer);
  }

  // Runs synchronously up to the call of `askClient`, so that questions asked together are sent together.
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
      // Send a placeholder, because a value that JSON cannot represent must not make the handler fail.
      if ("data" in params) {
        return this.#send(method, { level: params.level, data: "[a value that JSON cannot represent]" });
      }
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
  throw new TypeError("Cannot read path parameters: the path of the server has no parameters");
}

/** Creates the error for a result that is too long. */
export function toTooLong({ method, params: { name = "", uri = name } }: Call, bytes: number): Error {
  return new Error(
    `Cannot send the result of ${method} ${quote(uri)}: it is longer than ${bytes} bytes (calls.resultBytes)`,
  );
}

const done = Promise.resolve();
const NONE = Object.freeze({}) as never; // See `services` above.

/** Descriptions of notifications as work of a handler, for warnings in development. */
const SENT: Readonly<Record<string, string>> = {
  "notifications/progress": "reports progress",
  "notifications/message": "logs a message",
};

/** Maximum number of log messages that wait while the client reads too slowly. */
const MAX_QUEUED_LOGS = 256;

// Handles the rejection of a question, which may fail before the handler awaits it. An unhandled rejection would end
// the process.
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Whether a value can be a progress token. */
export function isProgressToken(value: unknown): value is string | number {
  return typeof value === "string" || Number.isInteger(value);
}
