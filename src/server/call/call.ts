/**
 * The base class of requests in progress, which does not depend on the protocol revision or the transport.
 */
import { INVALID_PARAMS, McpError, quote, withLimits } from "../../core/protocol/errors.ts";
import { type Id, isObject, type Params, type Request as Message, type Result } from "../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { countIndexes, toWeight } from "../../core/protocol/weight.ts";
import type { Meta } from "../../core/protocol/types.ts";
import type { Account } from "../capacity/account.ts";
import { toCaller } from "./caller.ts";
import { type ContainerHost, findInternals, type ServiceCall } from "./container.ts";
import type {
  ClientInfo,
  Context,
  Log,
  OnceOptions,
  Principal,
  ReadPathParams,
  ReadSession,
  RunningServer,
} from "./context.ts";
import { CancelError } from "./cancel_error.ts";
import type { ForwardedRounds } from "./forward.ts";
import type { Cancellable, InFlight } from "./in_flight.ts";
import type { InnerCalls, InnerUse } from "./inner_calls.ts";
import type { JoinedProgress } from "./joined_progress.ts";
import type { Link } from "./link.ts";
import type { SentGuard } from "./sent_guard.ts";
import type { HandlerCall, Read, Reads } from "./handler_call.ts";
import { createLog, MAX_QUEUED_LOGS, toLoggable, wantsLevel } from "./log.ts";
import type { CancelReason, RequestReport } from "./observer.ts";
import { refusePathParams } from "./path_params.ts";
import { type PreparedQuestion, type Question, requireCapabilities } from "./question.ts";
import { elicitation, ROOTS, sampling, urlElicitation } from "./question_kinds.ts";
import type { RerunWatch, Stretch } from "./rerun_watch.ts";
import type { WatchedRun } from "./run_watch.ts";
import { AskedQuestions } from "./asked_questions.ts";
import { checkOnce } from "./once.ts";
import { HAS_SCOPES } from "../../core/internals.ts";
import { toNative } from "../../core/light_request.ts";
import type { Service, ServiceEnd } from "./service.ts";

/** Loaded on demand, because few servers forward requests. */
const lazyForward = new LazyModule(() => import("./forward.ts"));

/** Called if the client receives a handle, such as a task. `type` is the handle's type. */
export type OnHandle = (handle: Result, type: string) => Promise<void>;

/** A function that runs after a call. `end` is the outcome of the call. */
export type Deferred = (end: ServiceEnd) => unknown;

/** State that all calls to one server share. */
export interface CallHost extends ContainerHost {
  readonly server: RunningServer;
  /** Returns the path parameters. `undefined` if the path has no parameters. */
  readonly pathParams?: ReadPathParams;
  /** Detects work that a handler repeats when it runs again after a question. Set only in development. */
  reruns?: RerunWatch;
  defer(call: Call, run: Deferred): void;
  callInner(call: Call, use: InnerUse): Promise<unknown>;
  /**
   * Returns a check to run after the call has waited in a queue. The check throws the error for the client if the
   * handler no longer exists for the caller. Returns `undefined` for methods without handlers.
   */
  recheck(call: Call): (() => Promise<void>) | undefined;
  isGranted(link: Link, scopes: readonly string[]): boolean;
  /** The call whose handler makes this inner call. Set only for an inner call. */
  readonly outer?: Call;
  /** The host of the outermost call, for work that outlives that call. Set only within another call. */
  readonly outermost?: CallHost;
  /** Returns the beginning of the keys of all questions and values of an inner call. */
  readonly toInnerKey?: () => Promise<string>;
}

/**
 * Returns a host with the members of `host`, also with those that are set later, apart from `changes`. Assigns the
 * changes, because Deno takes thirty times as long for property descriptors.
 */
export function deriveHost(host: CallHost, changes: Partial<CallHost>): CallHost {
  return Object.assign(Object.create(host), changes);
}

/** Returns the home of a call that is made for `outer`. `changes` are the changed members of the host. */
export function deriveHome(outer: Call, changes: Partial<CallHost> = {}): CallHome {
  const { home, home: { opened }, sessionId } = outer;
  const host = deriveHost(outer.host, { reruns: undefined, ...changes });
  return { host, opened, sessionId, session: () => outer.session, subject: (call) => home.subject?.(call) };
}

/** State that is shared by all calls in an era or in a session. */
export interface CallHome {
  readonly host: CallHost;
  /** Whether results may have a `resultType` that an extension defines. */
  readonly hasResultTypes?: boolean;
  readonly session: (call: Call) => ReadSession;
  /** The session, if there is one. The same object for all calls of the session on this instance. */
  readonly opened?: object;
  /** The part of the session id that observers receive. */
  readonly sessionId?: string;
  /** Returns the name or URI of the handler that the call refers to. */
  readonly subject?: (call: Call) => string | undefined;
}

/** An exact timeout of a call. The call stops the timeout while the client answers a question. */
export interface Deadline {
  stop(): void;
  start(): void;
}

/** Watches the end of a handler, which may be after the response or after the cancellation of its call. */
export interface PassedWork {
  /** Adds work that has to end too, because it runs the handler or may still start it. */
  push(work: Promise<unknown>): void;
  /** Watches an inner call from now on, which can outlive the call. */
  moveTo(inner: Call): void;
  /** Called when a call with this watch is cancelled. */
  cancel(call: Call, reason: CancelError): void;
  /** Runs the handler, unless it must not start any more. */
  run(call: Call, handler: { readonly run: (call: Call) => Result | Promise<Result> }): Result | Promise<Result>;
}

/**
 * One request. Handlers receive the call as their {@linkcode Context}. Each era has a subclass, which sends the
 * messages that precede the result, and contains the era-specific state. Fields with `declare` get no value in the
 * constructor, because few calls use them.
 *
 * Each subclass has a static `#model`, which is a call that never runs. Without it, a full garbage collection while no
 * call runs would discard the hidden class of calls and the compiled code that handles calls. Measured on Deno: without
 * the models of calls and links, a call takes 13 % more CPU time under continuous load, and 21 % (29 % in a session)
 * with a full collection before each series of calls. On Bun, the models make no difference.
 */
export abstract class Call implements ServiceCall, Cancellable {
  readonly id: Id;
  readonly method: string;
  readonly client: ClientInfo;
  readonly link: Link;
  /** The connection's running calls. A cancellation from the client finds the call in this list by the call's id. */
  readonly inFlight: InFlight;
  /** Upper bound of the memory that the parameters use, in bytes. */
  weight: number;
  /** `undefined` while all running calls together are below the per-client limits. */
  account?: Account;
  /** `undefined` if the call was not cancelled. */
  reason?: CancelError;
  /** A subscription drops its parameters to save memory. */
  params: Params;
  /** Whether the call can no longer send anything. */
  ended = false;
  /** `false` during lookup, and for methods that cannot wait for an answer. */
  asks = false;
  /** A subscription does not count towards `calls.running`. */
  isSubscription = false;
  /** Called once when the call is cancelled. */
  onCancel?: () => void;
  /** Functions that reject the promises of {@linkcode Call.untilCancelled}. */
  declare waiting?: ((reason: CancelError) => void)[];
  /** Gets what middleware and layers of extensions wait for, if a layer watches the end of the handler. */
  declare passed?: PassedWork;
  declare deferred?: Deferred[];
  /**
   * Reports the call to the observer. The field is initialized even without an observer, so that observed calls have
   * the same hidden class as the model. Measured without the initialization: the observer took a fifth of each call's
   * time.
   */
  observed?: RequestReport;
  /** Called after the input was validated, when the handler starts. */
  declare onRun?: () => void;
  /** Token that identifies the effects of the call. Set only for a call with an idempotency key. */
  declare idempotencyToken?: string;
  /** Called before an extension sends a handle, such as a task, while the handler continues. */
  declare onHandle?: OnHandle;
  /** The keys of the requests that were forwarded in this run. */
  declare forwardedKeys?: Set<string>;
  /** The progress of the forwarded requests. */
  declare forwardedProgress?: JoinedProgress;
  /** The handler's own timeout, in milliseconds. */
  declare timeoutMs?: number;
  /** The value of `sessionData`. Set if this call has read it, and the client has no session that stores it. */
  declare data?: readonly [unknown];
  /** Whether the handler has reported progress of a wrong type. */
  declare hasMisfit?: boolean;
  /** Number of questions that the client has not answered. */
  declare asking?: number;
  /** The exact timeout. `undefined` if the call has only the server's default timeout. */
  declare deadline?: Deadline;
  /** Whether an answer has arrived since `ranMs` was last increased. */
  declare hasAsked?: boolean;
  /** Running time in milliseconds. Set after the call has run for one period of `age`. */
  declare ranMs?: number;
  /** Whether the call waits for a slot, or for a step before its handler, such as `allow`. */
  declare isQueued?: boolean;
  /** The handler's work since its last question, which {@linkcode RerunWatch} records in development. */
  declare stretch?: Stretch;
  /** The record of the handler's run, which `RunWatch` creates in development. */
  declare watched?: WatchedRun;
  /**
   * The handler that makes this inner call, as other handlers and layers see it. `undefined` if the call is passed on for
   * the client, because a client must not choose an exception for inner calls.
   */
  declare outer?: HandlerCall;
  /** The ids of the extensions whose layers run this call. Set only within such a layer. */
  declare layers?: readonly string[];
  declare inner?: InnerCalls;
  /** The resources and other handlers that the handler has called, if not every caller may call them. */
  declare reads?: Reads;
  /** The caller for whom the output guards run. */
  declare guarded?: Read;
  /** Called when such a read begins. Set only for a call within another call. */
  declare onRead?: (read: Read) => void;
  /** The questions that were asked in this run, as JSON text by key. */
  declare askedTexts?: Map<string, string>;
  declare questions?: AskedQuestions;
  declare guard?: SentGuard;
  /** Data from the server extension that makes this call, if any. */
  declare internal?: { readonly data: unknown };
  readonly home: CallHome;
  /** The request as JSON text. Set until {@linkcode Call.weigh} computes the weight. */
  #text?: string;
  #controller?: AbortController;
  /** The last progress of the handler itself, without the progress of its inner calls. */
  reported = -Infinity;
  #waiting?: Promise<void>;
  #merged?: Params;
  #queuedLogs = 0;

  constructor(
    home: CallHome,
    link: Link,
    request: Message,
    client: ClientInfo,
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

  /** Returns a promise if the client reads too slowly, which resolves when the client has read more. */
  abstract notify(method: string, params: Params): Promise<void> | undefined;

  /** Sends a question to the client. Resolves to the client's answer. */
  abstract askClient(key: string, question: Question): Promise<unknown>;

  abstract makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown>;

  /**
   * The requests of `ctx.forward` that have not ended. `undefined` if the handler does not run again after a question.
   */
  get forwarded(): ForwardedRounds | undefined {
    return undefined;
  }

  /** Restores the answers that the client sent with the request. Returns `undefined` if the client sent no answers. */
  restore(): Promise<void> | undefined {
    return undefined;
  }

  /** Whether this run of the handler ends, because an answer can arrive only with a new request. */
  get isAsking(): boolean {
    return false;
  }

  /** Returns the result that contains the open questions, or `undefined` if there is no open question. */
  toQuestions(): Promise<Result> | undefined {
    return undefined;
  }

  /** Whether progress is reported even if the client sent no progress token. */
  get reportsAllProgress(): boolean {
    return false;
  }

  /** Closes the connection if the client can resume the stream later. The call continues. */
  release(_retryMs: number | undefined): void {}

  get principal(): Principal | undefined {
    return this.link.principal;
  }

  get caller(): Context["caller"] {
    return toCaller(this);
  }

  get [HAS_SCOPES](): (scopes: readonly string[]) => boolean {
    return (scopes) => this.host.isGranted(this.link, scopes);
  }

  get http(): Request | undefined {
    const { http } = this.link;
    return http && toNative(http.request);
  }

  get server(): RunningServer {
    const { server, reruns } = this.home.host;
    return reruns ? reruns.watchServer(this, server) : server;
  }

  get host(): CallHost {
    return this.home.host;
  }

  // Handlers that declare services receive a separate context. With the type `never`, TypeScript accepts a call as a
  // context with any services.
  get services(): never {
    return NONE;
  }

  get session(): ReadSession {
    return this.home.session(this);
  }

  get pathParams(): ReadPathParams {
    return this.host.pathParams ?? refusePathParams;
  }

  get why(): CancelReason | undefined {
    return this.reason?.why;
  }

  /** The tool's or prompt's name, or the resource's URI. `undefined` for other methods. */
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
      if (this.reason) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  // Getters, because handlers destructure these methods: `run: (input, { log }) => …`. A getter binds its method to the
  // call, and creates the method only when a handler reads the property.

  get progress(): Context["progress"] {
    const { guard } = this;
    return (progress, { total, message } = {}) => {
      if (!this.wantsProgress) return done;
      const { progressToken: token } = this.meta;
      // Leave out members that have a wrong type. `null` counts as absent.
      const most = Number.isFinite(total) ? total : undefined;
      const text = typeof message === "string" ? message : undefined;
      const isFinite = Number.isFinite(progress);
      if (!isFinite || most !== (total ?? undefined) || text !== (message ?? undefined)) this.#reportMisfit();
      if (!isFinite || progress <= this.reported) return done;
      this.reported = progress;
      const params = { progressToken: token, progress, total: most, message: text };
      return this.#send("notifications/progress", params, guard);
    };
  }

  get wantsProgress(): boolean {
    return isProgressToken(this.meta.progressToken) || this.reportsAllProgress;
  }

  get log(): Log {
    const { guard } = this;
    return createLog((level, data, logger) =>
      wantsLevel(this.client, level)
        ? this.#send("notifications/message", { level, logger, data: toLoggable(data) }, guard)
        : done
    );
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
    return (send, options) => {
      const ask = (question: PreparedQuestion) => quiet(this.#put(() => question));
      const result = lazyForward.load().then(({ forward }) => forward({ call: this, ask, send, options }));
      return this.#watch(result, "forward");
    };
  }

  get once(): Context["once"] {
    // The cast is safe, because the value is the return value of `make`, converted to JSON and back.
    return <T>(key: string, make: () => T | Promise<T>, options?: OnceOptions) => {
      const { reruns } = this.host;
      const run = async () => {
        checkOnce(key, options);
        return await this.makeOnce(toOwnKey(key), make, options) as T; // See the comment on the cast above.
      };
      return quiet(reruns ? reruns.once(this, run) : run());
    };
  }

  get get(): Context["get"] {
    // The cast is safe, because `service` created the value.
    return async <T>(service: Service<T>) => await findInternals(service)?.get(this, service) as T;
  }

  get callTool(): Context["callTool"] {
    return this.#useInner("callTool");
  }

  get getPrompt(): Context["getPrompt"] {
    return this.#useInner("getPrompt");
  }

  get readResource(): Context["readResource"] {
    return this.#useInner("readResource");
  }

  get list(): Context["list"] {
    return this.#useInner("list");
  }

  get complete(): Context["complete"] {
    return this.#useInner("complete");
  }

  get defer(): Context["defer"] {
    return (run) => this.host.defer(this, run);
  }

  get closeStream(): Context["closeStream"] {
    return (retryMs) => {
      if (!this.ended) this.release(retryMs);
    };
  }

  /** `subject` is the name of the parameter that contains the handler's name or URI. */
  observe(report: RequestReport, subject: string | undefined): void {
    report.identify(this.client, subject && this.params[subject], this.sessionId);
    this.observed = report;
  }

  observePart(outer: Call): void {
    this.observed = outer.report?.part(this.method, this.subject);
  }

  /** The report of this call. A subclass can return the report of an outer call. */
  get report(): RequestReport | undefined {
    return this.observed;
  }

  /** The part of the session id that observers receive. */
  get sessionId(): string | undefined {
    return this.home.sessionId;
  }

  allowQuestions(): void {
    this.asks = true;
  }

  /** Copies the permission to ask questions, the session value and the extension's data of an outer call. */
  inherit({ asks, data, internal }: Call): void {
    this.asks = asks;
    if (data) this.data = data;
    if (internal) this.internal = internal;
  }

  /** Runs a function that must not ask the client questions, such as `allow`. */
  async withoutQuestions<T>(run: () => T | Promise<T>): Promise<T> {
    const { asks } = this;
    this.asks = false;
    try {
      return await run();
    } finally {
      this.asks = asks;
    }
  }

  /** Sets the handler's timeout in milliseconds. `undefined` stands for the server's default timeout. */
  limitTime(ms: number | undefined): void {
    this.timeoutMs = ms;
  }

  /** Throws if the call has ended, because a middleware or a layer may call `next()` late. */
  startHandler<T>(run: () => T): T {
    if (this.ended) throw this.endError;
    return this.watched ? this.watched.time(run) : run();
  }

  guardSent(guard: SentGuard): void {
    this.guard = guard;
  }

  watchPassed(passed: PassedWork | undefined): void {
    this.passed = passed;
  }

  whenRun(run: () => void): void {
    this.onRun = run;
  }

  identifyEffects(token: string, onHandle?: OnHandle): void {
    this.idempotencyToken = token;
    this.onHandle = onHandle;
  }

  whenCancelled(run: () => void): void {
    this.onCancel = run;
  }

  /** Ends the call, and cancels the inner calls that its handler has not awaited. The ended call sends nothing. */
  end(): void {
    this.ended = true;
    this.inner?.end();
  }

  /** The call then no longer counts towards `calls.running`. Drops the parameters. */
  subscribe(): void {
    this.isSubscription = true;
    this.params = {};
  }

  /** Returns an upper bound of the memory that the parameters use, in bytes. */
  weigh(): number {
    if (this.#text) {
      this.weight = toWeight(this.#text, { max: 0, indexes: countIndexes(this.#text) });
      this.#text = undefined;
    }
    return this.weight;
  }

  /** Does nothing if the call already counts. */
  charge(): void {
    // The scheduler charges the steps before the handler itself.
    if (this.account || this.isSubscription || this.isQueued) return;
    this.account = this.link.account;
    this.account.start();
    this.account.charge(this.weigh());
  }

  /**
   * Waits for a promise that does not depend on the handler's own work, such as a client's answer. Until the promise
   * settles, the timeout pauses. For an inner call, the timeout of the outer call pauses too.
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

  /** Cancels the call when its running time reaches `maxMs`. Periods with an open question do not count. */
  age(periodMs: number, maxMs: number): void {
    if (this.isSubscription || this.isQueued || this.deadline || this.timeoutMs === Infinity) return;
    if (this.asking || this.hasAsked) this.hasAsked = false;
    // Do not count the first period, because the call started during this period.
    else if (this.ranMs === undefined) this.ranMs = 0;
    else if ((this.ranMs += periodMs) >= maxMs) this.timeOut(maxMs, "calls.timeoutMs");
  }

  /** `limit` is the name of the option for the error message. */
  timeOut(ms: number, limit: string): void {
    const text = `Cannot finish the call: it took longer than ${ms} ms (${limit})`;
    this.cancel(withLimits(new CancelError("timeout", text), limit));
  }

  /** The client receives a response only if `reason.response` is set. */
  cancel(reason: CancelError): void {
    if (this.ended) return;
    if (this.observed) this.observed.why = reason.why;
    this.ended = true;
    this.reason = reason;
    this.#controller?.abort(this.reason);
    this.inner?.cancel(reason);
    // Handlers that have returned may have made inner calls too.
    this.inner?.end();
    this.onCancel?.();
    for (const reject of this.waiting ?? []) reject(reason);
    this.passed?.cancel(this, reason);
  }

  /** The error for a handler that must not start or continue, because the call was cancelled or has its response. */
  get endError(): Error {
    return this.reason ??
      new Error("Cannot run the handler: the response was already sent; await next() in the middleware");
  }

  /** Settles like `work`, or rejects with the reason as soon as the call is cancelled. */
  untilCancelled<T>(work: Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    work.then(resolve, reject);
    const stop = (reason: CancelError) => {
      // Handle the rejection here. The code that called this method may not handle the rejection, and an unhandled
      // rejection would end the process.
      promise.catch(() => {});
      reject(reason);
    };
    if (this.reason) stop(this.reason);
    else (this.waiting ??= []).push(stop);
    return promise;
  }

  #useInner(name: InnerUse["name"]): never {
    // The cast is safe, because `callInner` returns the value of the context's method with this name.
    return ((...given: unknown[]) => quiet(this.host.callInner(this, { name, given }))) as never;
  }

  #ask<T>(prepare: () => PreparedQuestion, method: string, key?: string): Promise<T> {
    // The cast is safe, because the question's `read` returns a value of type T.
    return this.#watch(this.#put(prepare) as Promise<T>, method, key);
  }

  #watch<T>(answer: Promise<T>, method: string, key?: string): Promise<T> {
    const questions = this.questions ??= new AskedQuestions();
    return questions.ask(`ctx.${method}(${key === undefined ? "" : quote(key)})`, answer);
  }

  // Runs synchronously until `askClient` is called, so that questions that are asked together are sent together. With
  // guards, the run of the handler ends only after the guards have processed all questions.
  async #put(prepare: () => PreparedQuestion): Promise<unknown> {
    if (!this.asks) {
      throw new TypeError(
        `Cannot ask the client in ${this.method}: questions are not allowed here; ask in run or read`,
      );
    }
    const { key: given, requires, make } = prepare();
    const key = toOwnKey(given);
    requireCapabilities(this.client.capabilities, requires, "ask the client");
    if (this.ended) {
      throw this.reason ??
        new McpError(INVALID_PARAMS, "Cannot ask the client: the call has ended; ask before the handler returns");
    }
    const { reruns } = this.host;
    const question = make(this.client.capabilities);
    const text = JSON.stringify([question.method, question.params]);
    const asked = this.askedTexts ??= new Map();
    const before = asked.get(key);
    if (before && before !== text) {
      throw new TypeError(`Cannot ask ${quote(key)} twice: the questions differ; give each question its own key`);
    }
    asked.set(key, text);
    const { report, guard } = this;
    const send = (question: Question) => {
      const answer = this.untilAnswered(this.askClient(key, question));
      return report ? report.ask(question.method, answer) : answer;
    };
    const ask = (question: Question) => reruns ? reruns.ask(this, key, () => send(question)) : send(question);
    return await (guard ? guard.ask(question, ask) : ask(question));
  }

  /** Reports progress of a wrong type. Reports the mistake only once, because handlers report progress in loops. */
  #reportMisfit(): void {
    if (this.hasMisfit) return;
    this.hasMisfit = true;
    const state = "progress and total must be finite numbers, and message a string";
    this.host.parts?.report(new TypeError(`Cannot report progress of ${quote(this.subject)}: ${state}`), this);
  }

  #send(method: string, params: Params, guard?: SentGuard): Promise<void> {
    if (guard) return guard.say(params, (params) => this.#send(method, params));
    if (this.ended) return done;
    if (this.#waiting) {
      // The client reads more slowly than the handler reports progress, so keep only the newest value.
      if ("progress" in params) {
        this.#merged = params;
        return this.#waiting;
      }
      // A handler that does not await its log messages can send faster than the client reads. Drop messages above this
      // limit.
      if (this.#queuedLogs++ >= MAX_QUEUED_LOGS) return this.#waiting;
    }
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

export function toTooLong({ method, params: { name = "", uri = name } }: Call, bytes: number): Error {
  const limit = "calls.resultBytes";
  const state = `it is longer than ${bytes} bytes (${limit})`;
  return withLimits(new Error(`Cannot send the result of ${method} ${quote(uri)}: ${state}`), limit);
}

const done = Promise.resolve();
const NONE = Object.freeze({}) as never; // See the comment on the `services` getter above.

/** Used in development warnings. */
const SENT: Readonly<Record<string, string>> = {
  "notifications/progress": "reports progress",
  "notifications/message": "logs a message",
};

// Marks the promise's rejection as handled, because a question can fail before the handler awaits the promise. An
// unhandled rejection would end the process.
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * Doubles the tabs in a key of a handler, because the keys of its inner calls contain single tabs. Otherwise a handler
 * whose key contains a part that the client chooses could get the values and answers of its inner calls.
 */
function toOwnKey(key: string): string {
  return `${key}`.replaceAll("\t", "\t\t");
}

export function isProgressToken(value: unknown): value is string | number {
  return typeof value === "string" || Number.isInteger(value);
}
