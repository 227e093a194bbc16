/**
 * Runs calls within layers of extensions. Such a layer can redirect the messages of a handler, and can let the handler
 * continue after the response.
 */
import { INVALID_PARAMS, INVALID_REQUEST, McpError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Params, readResultType, type Result, toTypedResult } from "../../core/protocol/jsonrpc.ts";
import type { LogLevel } from "../../core/protocol/types.ts";
import { Answers } from "../call/answers.ts";
import { Call, type CallHome, type Deferred, deriveHost, isProgressToken, type OnHandle } from "../call/call.ts";
import type { OnceOptions, ProgressOptions } from "../call/context.ts";
import type { DetachOptions, Redirect, WrappedCall } from "../engine/extension.ts";
import type { ExtensionPart } from "../engine/layers.ts";
import type { ServerHandle } from "../engine/server_handle.ts";
import type { Executor } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { CancelError } from "../call/cancel_error.ts";
import { InFlight } from "../call/in_flight.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import type { RequestReport } from "../call/observer.ts";
import { keepKeys } from "../call/forwarded_keys.ts";
import type { Read } from "../call/handler_call.ts";
import { addTo, toReads } from "../call/reads.ts";
import { SILENT } from "../call/link.ts";
import { listRelays } from "../call/relays.ts";
import { makeJson, OnceValues, reserveMemory } from "../call/once.ts";
import { type Question, requireCapabilities } from "../call/question.ts";
import { isGranted } from "../call/scopes.ts";
import { deadline } from "../../core/kit/deadline.ts";
import { checkResult } from "../call/wire_check.ts";
import { sealAttached } from "../engine/attached.ts";
import { keepBytes } from "../engine/kept_bytes.ts";

/** Runs the handler, and the inner layers of extensions, with a call. */
export type RunCall = (call: Call) => Result | Promise<Result>;

export interface WrappingLayer extends ExtensionPart {
  readonly around: NonNullable<ExtensionPart["around"]>;
  readonly handler: WrappedCall["handler"];
}

export async function runWrapped(
  outer: Call,
  layer: WrappingLayer,
  next: RunCall,
  executor: Executor,
): Promise<Result> {
  return await new ExtensionRun(outer, layer, next, executor).run(layer.around);
}

/** The functions to which a {@linkcode LayeredCall} passes the messages, questions and state changes of its handler. */
interface Says {
  /** Id of the extension. */
  readonly id: string;
  notify(method: string, params: Params): Promise<void> | undefined;
  ask(key: string, question: Question): Promise<unknown>;
  once(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown>;
  /** Returns the outer call. `undefined` after the handler was detached. */
  outer(): Call | undefined;
  release(retryMs: number | undefined): void;
  read(read: Read): void;
  isAsking(): boolean;
  reportsAllProgress(): boolean;
  identify(token: string, onHandle?: OnHandle): void;
  /** Returns the report of the outer call. `undefined` after the handler was detached. */
  report(): RequestReport | undefined;
}

/**
 * The call that the handler sees within a layer. The link of this call sends nothing and does not refer to the
 * connection, so that the call can outlive the connection.
 */
class LayeredCall extends Call {
  readonly #says: Says;
  /** The answers to questions that have not arrived. */
  readonly #answers = new WeakSet<Promise<unknown>>();

  constructor(outer: Call, home: CallHome, says: Says) {
    const { id, method, params, client, link } = outer;
    const { account, http, headers, version, principal, hasAllScopes, transport, owner } = link;
    const facts = { account, http, headers, version, principal, hasAllScopes, transport, owner };
    const silent = { ...facts, ...SILENT, inFlight: new InFlight() };
    super(home, silent, { kind: "request", id, method, params, weight: outer.weigh() }, client);
    this.#says = says;
    this.onRead = (read) => says.read(read);
    this.inherit(outer);
    this.outer = outer.outer;
    this.layers = [...outer.layers ?? [], says.id];
    this.watchPassed(outer.passed);
    outer.passed?.moveTo(this);
    // An earlier run of the handler may have read resources whose values this run gets from `ctx.once`.
    if (outer.reads) this.reads = outer.reads;
    // The result of the handler also depends on the answers to questions of outer attributes.
    for (const [key, text] of outer.askedTexts ?? []) (this.askedTexts ??= new Map()).set(`outer ${key}`, text);
    this.limitTime(outer.timeoutMs);
  }

  override get isAsking(): boolean {
    return this.#says.isAsking();
  }

  override get report(): RequestReport | undefined {
    return this.observed ?? this.#says.report();
  }

  override get reportsAllProgress(): boolean {
    return this.#says.reportsAllProgress();
  }

  // Pass the token to the outer calls too, because an outer layer may also answer with a handle.
  override identifyEffects(token: string, onHandle?: OnHandle): void {
    super.identifyEffects(token, onHandle);
    this.#says.identify(token, onHandle);
  }

  notify(method: string, params: Params): Promise<void> | undefined {
    return this.#says.notify(method, params);
  }

  askClient(key: string, question: Question): Promise<unknown> {
    const answer = this.#says.ask(key, question);
    this.#answers.add(answer);
    return answer;
  }

  // The timeout of the outer call pauses too. For a question, it pauses only while the client is asked, because an
  // extension may answer the question itself.
  override untilAnswered<T>(answer: Promise<T>): Promise<T> {
    const outer = this.#answers.has(answer) ? undefined : this.#says.outer();
    return super.untilAnswered(outer ? outer.untilAnswered(answer) : answer);
  }

  makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#says.once(key, make, options);
  }

  /** The outer call, which keeps the requests that this call forwards. `undefined` after the handler was detached. */
  get forwarder(): Call | undefined {
    return this.#says.outer();
  }

  // The outer call may read for a handler that has returned.
  override startHandler<T>(run: () => T): T {
    const outer = this.#says.outer();
    return super.startHandler(() => outer ? outer.startHandler(run) : run());
  }

  override release(retryMs: number | undefined): void {
    this.#says.release(retryMs);
  }
}

/** Runs one layer around a call. The handler runs with a separate call, which can outlive the request. */
class ExtensionRun {
  /** The original call. `undefined` after the handler was detached from the call. */
  #outer?: Call;
  readonly #inner: LayeredCall;
  readonly #layer: WrappingLayer;
  readonly #next: RunCall;
  readonly #executor: Executor;
  readonly #declared?: Params;
  readonly #started = Promise.withResolvers<void>();
  /** Settles with the result or the error of the handler. */
  readonly #running = Promise.withResolvers<Result>();
  /** Settles with the result that `next` resolves to. Rejects when the inner call is cancelled. */
  readonly #ended = Promise.withResolvers<Result>();
  readonly #made: OnceValues;
  readonly #answers = new Answers();
  readonly #isInner: boolean;
  #redirect: Redirect = {};
  #hasRun = false;
  #isPending = false;
  #isDetached = false;

  constructor(outer: Call, layer: WrappingLayer, next: RunCall, executor: Executor) {
    this.#outer = outer;
    this.#layer = layer;
    this.#next = next;
    this.#executor = executor;
    const { home, client } = outer;
    const { id, lacksSessions, required } = layer;
    // The layer already runs around the whole call, which may be a task. A task in a task would never end. A relay with
    // another method waits for the result.
    const relay = listRelays(outer).find(({ layers, method }) => method !== outer.method || layers?.includes(id));
    this.#isInner = !!outer.outer || !!relay;
    this.#inner = new LayeredCall(outer, this.#toHome(home), {
      id,
      notify: (method, params) => this.#receive(method, params),
      ask: (key, question) => {
        const { ask } = this.#redirect;
        return ask ? this.#answers.get(key, () => this.#ask(key, question, ask)) : this.#askClient(key, question);
      },
      once: (key, make, options) => {
        const keep = () => this.#keep(key, make, options);
        // Check the size here, so that extensions need not.
        const bounded = options?.maxBytes === undefined
          ? make
          : async () => JSON.parse(await makeJson(key, make, options));
        return this.#redirect.once?.(key, bounded, keep, options) ?? keep();
      },
      outer: () => this.#outer,
      release: (retryMs) => this.#outer?.release(retryMs),
      read: (read) => this.#outer && addTo(this.#outer, read),
      isAsking: () => !!this.#outer?.isAsking,
      reportsAllProgress: () => this.#redirect.progress !== undefined,
      identify: (token, onHandle) => this.#outer?.identifyEffects(token, onHandle),
      report: () => this.#outer?.report,
    });
    const settings = client.capabilities.extensions?.[id];
    const hasTypes = home.hasResultTypes && !relay;
    if (isObject(settings) && (hasTypes || !lacksSessions)) this.#declared = settings;
    // Within an inner call, the handler runs to its end, so only the client's declaration counts.
    else if (required) {
      requireCapabilities(this.#isInner ? client.capabilities : {}, [`extensions.${id}`], "run the call");
    }
    this.#made = new OnceValues({
      limits: executor.limits,
      // The cast is safe for the reason below.
      reserve: reserveMemory(home.host.parts as FeatureParts, {
        link: this.#inner.link,
        // The handler may outlive the outer call.
        defer: (run) => void this.#running.promise.finally(run).catch(() => {}),
      }),
    });
    // Read `onRun` now. A closure over `outer` would keep `outer` in memory for as long as the handler runs.
    const { onRun } = outer;
    this.#inner.whenRun(() => {
      this.#started.resolve();
      onRun?.();
    });
    this.#inner.whenCancelled(() => this.#ended.reject(this.#inner.reason));
    this.#ended.promise.catch(() => {});
    this.#running.promise.catch(() => {});
  }

  async run(around: WrappingLayer["around"]): Promise<Result> {
    const outer = this.#outer;
    const inner = this.#inner;
    const onAbort = () => {
      if (!this.#isDetached && outer?.reason) inner.cancel(outer.reason);
    };
    outer?.signal.addEventListener("abort", onAbort);
    await outer?.host.lives?.until(this.#layer.id);
    // The call may have been cancelled while the extension started.
    if (outer?.ended) onAbort();
    try {
      const result: unknown = await around(this.#toFacade(), (to) => this.#run(to));
      if (!isObject(result)) {
        throw new TypeError(
          `Cannot send the result: around of ${this.#layer.id} did not return an object; return the result of next()`,
        );
      }
      const type = readResultType(result);
      if (type === undefined) return checkResult(inner, result, `around of ${this.#layer.id}`);
      if (this.#isDetached) await inner.onHandle?.(result, type);
      return result;
    } finally {
      outer?.signal.removeEventListener("abort", onAbort);
      if (!this.#isDetached) {
        // Cancel a handler that is still running. After the response, the handler would no longer count against the
        // limits of the client.
        if (this.#isPending) {
          inner.cancel(
            new CancelError(
              "extension",
              "Cannot continue the handler: the response was already sent; call detach() before around returns",
            ),
          );
        }
        inner.end();
      }
    }
  }

  #toFacade(): WrappedCall {
    const inner = this.#inner;
    const isAsking = () => this.#isAsking;
    const { handler, id } = this.#layer;
    return {
      handler,
      // The cast is safe, because `extension_lives.ts` created the server object.
      server: inner.host.lives?.find(id) as ServerHandle | undefined,
      ctx: inner,
      hasSession: !inner.home.hasResultTypes,
      isInner: this.#isInner,
      hasAllScopes: !inner.principal && isGranted({}, inner.link, []),
      account: inner.principal ? undefined : inner.link.account.key ?? UNKNOWN,
      get isAsking() {
        return isAsking();
      },
      signal: this.#outer?.signal ?? inner.signal,
      declared: this.#declared,
      internal: inner.internal,
      get reads() {
        return toReads(inner);
      },
      untilRun: () => this.#started.promise,
      // The cast is safe for the reason below.
      sealAttached: () => sealAttached((inner.host.parts as FeatureParts).sealer, inner.principal),
      detach: (options) => this.#detach(options),
      get why() {
        return inner.why;
      },
      cancel: (message) => inner.cancel(new CancelError("extension", message)),
      // The cast is safe, because the host of a server's call always has the parts of the server's core.
      keep: (bytes) => keepBytes({ account: inner.link.account, core: inner.host.parts as FeatureParts }, bytes),
      result: (resultType, fields) => this.#toResult(resultType, fields),
    };
  }

  #toResult(resultType: string, fields: Params): Result {
    const refuse = (state: string) =>
      new TypeError(`Cannot answer with the result type ${quote(resultType)}: ${state}`);
    if (typeof resultType !== "string" || !/^[\w./-]+$/.test(resultType)) {
      throw refuse('it is not a valid name; use letters, digits, ".", "/", "_" and "-"');
    }
    if (resultType === "complete" || resultType === "input_required") {
      throw refuse("it belongs to the protocol; choose another name");
    }
    if (!this.#declared) throw refuse(`the client did not declare ${this.#layer.id}; return the result of next()`);
    if (!this.#inner.home.hasResultTypes) {
      throw refuse("clients with sessions do not support result types; return the result of next()");
    }
    return toTypedResult(resultType, fields);
  }

  #run(to: Redirect = {}): Promise<Result> {
    if (this.#hasRun) throw new TypeError("Cannot run the handler: it has already run; call next() only once");
    checkOptions("run the handler", to, REDIRECT);
    this.#redirect = to;
    this.#hasRun = this.#isPending = true;
    this.#inner.passed?.push(this.#running.promise);
    void this.#runNext();
    return this.#ended.promise;
  }

  async #runNext(): Promise<void> {
    const inner = this.#inner;
    try {
      if (inner.ended) throw inner.endError;
      const result = await this.#next(inner);
      // The executor checks the questions of a detached call.
      if (inner.questions && !this.#isDetached) this.#executor.checkQuestions(inner, result);
      this.#running.resolve(result);
      if (!this.#isDetached) this.#ended.resolve(result);
    } catch (error) {
      const known = this.#executor.toError(error, inner);
      this.#running.reject(known);
      if (!this.#isDetached) this.#ended.reject(inner.reason ?? known);
    } finally {
      this.#isPending = false;
    }
  }

  #detach({ timeoutMs }: DetachOptions = {}): void {
    const refuse = (state: string) => new TypeError(`Cannot detach the handler: ${state}`);
    if (this.#isDetached) throw refuse("it was already detached; call detach() only once");
    if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0)) {
      throw refuse(`timeoutMs is ${show(timeoutMs)}; it must be a number above 0`);
    }
    if (this.#inner.ended) throw this.#inner.reason ?? refuse("the call has ended");
    // This response sends the question to the client. The client answers by retrying the request, and the detached
    // handler would never get that answer.
    if (this.#isAsking) {
      throw refuse("a question to the client is open; return the result of next() while call.isAsking is true");
    }
    const inner = this.#inner;
    keepKeys(inner);
    const ending = this.#executor.detach(inner, this.#running.promise, timeoutMs);
    inner.passed?.push(ending);
    // Quotas of relays keep their places for as long as the handler runs.
    for (const { passed } of listRelays(inner)) passed?.push(ending);
    if (this.#outer) inner.observePart(this.#outer);
    inner.observed?.start();
    this.#isDetached = true;
    this.#outer = undefined;
    ending.then((outcome) => {
      if (outcome?.result) inner.observed?.succeed(outcome.result);
      else if (outcome?.error) inner.observed?.fail(outcome.error);
      else inner.observed?.cancel();
      if (outcome?.result) this.#ended.resolve(outcome.result);
      else this.#ended.reject(this.#inner.reason ?? outcome?.error);
    });
  }

  get #isAsking(): boolean {
    const outer = this.#outer;
    return !!outer && (outer.isAsking || !!outer.asking);
  }

  #toHome(home: CallHome): CallHome {
    const { host: shared, hasResultTypes, session } = home;
    // Defer the work until the outer call ends, because the scheduler does not end the inner call.
    const defer = (_inner: Call, run: Deferred) => shared.defer(this.#outer ?? this.#inner, run);
    const outermost = shared.outermost ?? shared;
    const reruns = undefined;
    const host = deriveHost(shared, { defer, outermost });
    const alone = deriveHost(host, { reruns });
    // A detached call has no outer call any more.
    const later = (_inner: Call, run: Deferred) => outermost.defer(this.#inner, run);
    const detached = deriveHost(outermost, { defer: later, reruns, outermost });
    const toHost = () => this.#outer ? this.#redirect.ask ? alone : host : detached;
    return {
      // In development, `reruns` warns about work before a question, because the client's retry repeats this work. The
      // client does not retry if the extension answers the questions, or if the handler was detached.
      get host() {
        return toHost();
      },
      hasResultTypes,
      session,
      subject: (inner) => home.subject?.(inner),
    };
  }

  #receive(method: string, params: Params): Promise<void> | undefined {
    const { progress: onProgress, log: onLog } = this.#redirect;
    const direct = async () => await this.#notify(method, params);
    try {
      const { progress, total, message, level, data, logger } = params;
      // The cast is safe, because `progress` and `log` of the context created these parameters.
      if (method === "notifications/progress" && onProgress) {
        onProgress(progress as number, { total, message } as ProgressOptions, direct); // The cast is safe for the reason above.
      } else if (method === "notifications/message" && onLog) {
        onLog(level as LogLevel, data, logger as string | undefined, direct); // The cast is safe for the reason above.
      } else return this.#notify(method, params);
    } catch (error) {
      this.#executor.toError(error, this.#inner);
    }
  }

  #notify(method: string, params: Params): Promise<void> | undefined {
    // If the progress token is missing, the extension asked for progress, but the client did not.
    if (method === "notifications/progress" && !isProgressToken(params.progressToken)) return;
    return this.#outer?.notify(method, params);
  }

  async #ask(key: string, question: Question, ask: NonNullable<Redirect["ask"]>): Promise<unknown> {
    const { method, params } = question;
    const check = async (answer: unknown) => (await question.read(answer)).problem;
    const askClient = async () => {
      let given: unknown;
      const read = (answer: unknown) => question.read(given = answer);
      await this.#askClient(key, { ...question, read });
      return given;
    };
    const answer = await deadline(ask({ key, method, params, check }, askClient), { signal: this.#inner.signal });
    const checked = await question.read(answer);
    if (checked.problem === undefined) return checked.value;
    throw new McpError(INVALID_PARAMS, `Cannot use the answer to ${quote(key)}: ${checked.problem}`);
  }

  async #askClient(key: string, question: Question): Promise<unknown> {
    const outer = this.#outer;
    if (outer) return await outer.untilAnswered(outer.askClient(key, question));
    throw new McpError(INVALID_REQUEST, `Cannot ask ${quote(key)}: the response to the request was already sent`);
  }

  // Keep the value here too, because the handler may outlive the outer call and its values.
  #keep(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#made.get(key, () => this.#outer ? this.#outer.makeOnce(key, make, options) : make(), options);
  }
}

/** The account of callers without a principal and an address. */
const UNKNOWN = "unknown";

const REDIRECT: KnownOptions<keyof Redirect> = {
  names: { progress: "function", log: "function", ask: "function", once: "function" },
};
