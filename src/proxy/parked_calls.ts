/**
 * Calls of a server with sessions whose questions wait for the next request of a caller without a session. The server's
 * handler keeps running meanwhile, so each call runs it once.
 */
import { isRemoteError, McpError, ToolError } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { ClientCapabilities, Context, Elicited, Root } from "../library.ts";
import type { ForwardedRequest, ForwardRetry } from "../server/call/context.ts";
import { findClientKey } from "../server/call/client_key.ts";
import { FORM, requireCapabilities } from "../server/call/question.ts";
import { LazyModule } from "../core/protocol/lazy_module.ts";
import { ActiveTimer } from "./active_timer.ts";
import type { UpstreamParts } from "./parts.ts";

/** Loaded on demand, because few servers have several instances. */
const lazyRoutes = new LazyModule(() => import("./parked_routes.ts"));

/** Maximum number of waiting calls, in total and per client. */
const MAX_PARKED = 200;
const MAX_OF_CLIENT = 20;
/** Milliseconds for which a call waits for an answer. */
const WAIT_MS = 10 * 60_000;
/** Maximum length of a result, as JSON, that is kept in case the caller's handler runs again. */
const MAX_KEPT = 64 * 1024;

type Caller = string | object | undefined;

/** A request that one run of a handler of this server sends. */
export interface ParkedRequest {
  readonly caller: Caller;
  readonly capabilities: ClientCapabilities;
  readonly given: Pick<ForwardedRequest, "signal" | "onNotification" | "onProgress">;
  /** The call of this run. `undefined` if the run is on another instance. */
  readonly ctx?: Context;
  /** Begins the request to the other server. `undefined` in later runs on other instances. */
  readonly begin?: (options: Partial<ForwardedRequest>) => Promise<Result>;
}

export class ParkedCalls {
  readonly #upstream: UpstreamParts;
  // Bound: `MAX_PARKED`, of which each client has at most `MAX_OF_CLIENT`.
  readonly #calls = new Map<string, ParkedCall>();
  #receiving?: Promise<(() => void) | undefined>;

  constructor(upstream: UpstreamParts) {
    this.#upstream = upstream;
  }

  /** Sends a request, or continues an earlier one. Returns its result, or the questions that it waits for. */
  async run(request: ParkedRequest, { requestState, inputResponses }: ForwardRetry): Promise<Result> {
    const state = requestState === undefined ? undefined : String(requestState);
    const routed = state === undefined || this.has(state)
      ? undefined
      : await this.#route(state, inputResponses, request);
    if (routed) return routed;
    const call = state === undefined ? this.#open(request) : this.#find(state, request.caller);
    if (state !== undefined) call.answer(state, inputResponses ?? {});
    const result = await call.follow(request);
    if (result.resultType !== "input_required") this.#end(call, result);
    else await (this.#receiving ??= this.#receive());
    return result;
  }

  /** Whether a call waits for the answers of a request with this state. */
  has(state: unknown): boolean {
    return typeof state === "string" && this.#calls.has(state.split(" ")[0]);
  }

  /** Ends a call, because the caller does not answer. */
  cancel(state: string): void {
    const [id] = state.split(" ");
    this.#drop(id, "the question was not answered");
  }

  #drop(id: string, reason: string): void {
    this.#calls.get(id)?.end(reason);
    this.#calls.delete(id);
  }

  close(): void {
    for (const call of this.#calls.values()) call.end("the server is closing");
    this.#calls.clear();
    void this.#receiving?.then((stop) => stop?.());
  }

  /** Continues a call that waits on another instance. Returns `undefined` if there is no such call. */
  async #route(state: string, answers: Params = {}, request: ParkedRequest): Promise<Result | undefined> {
    const [instance] = state.split(".");
    const store = await this.#upstream.store;
    const { caller, capabilities, ctx, given: { signal } } = request;
    if (!store || !ctx || instance === this.#upstream.id || typeof caller === "object") return;
    const { routeAnswers } = await lazyRoutes.load();
    return await routeAnswers(store.by(ctx), instance, { state, caller, capabilities, answers, signal });
  }

  /** Receives the answers that other instances get. */
  async #receive(): Promise<(() => void) | undefined> {
    const store = await this.#upstream.store;
    if (!store) return;
    const { receiveAnswers } = await lazyRoutes.load();
    return await receiveAnswers(store.own, this.#upstream.id, {
      cancel: (state) => this.cancel(state),
      run: async ({ state, answers, caller, capabilities }) => {
        const given = { signal: new AbortController().signal, onNotification() {} };
        return await this.run({ caller, capabilities, given }, { requestState: state, inputResponses: answers });
      },
    });
  }

  #open(request: ParkedRequest): ParkedCall {
    const { server, settings } = this.#upstream;
    const id = `${this.#upstream.id}.${crypto.randomUUID()}`;
    const call: ParkedCall = new ParkedCall(request, {
      id,
      timer: new ActiveTimer(
        server.clock,
        settings.timeoutMs,
        () => call.end("the timeout has expired", "TimeoutError"),
      ),
      park: () => this.#park(call),
      waitLater: (onTime) => server.clock.start(onTime, WAIT_MS, { background: true }),
      forget: () => void this.#calls.delete(id),
    });
    return call;
  }

  #find(state: string, caller: Caller): ParkedCall {
    const call = this.#calls.get(state.split(" ")[0]);
    if (call && call.caller === caller) return call;
    throw new ToolError(
      `Cannot continue the call of ${this.#upstream.settings.name}: it no longer waits for this answer, and may have ` +
        "run; check its effect before you repeat it",
    );
  }

  /** Makes room for a call that begins to wait. Throws if there is no room. */
  #park(call: ParkedCall): void {
    if (this.#calls.has(call.id)) return;
    const own = [...this.#calls.values()].filter((each) => each.client === call.client);
    const full = own.length >= MAX_OF_CLIENT ? own : this.#calls.size >= MAX_PARKED ? [...this.#calls.values()] : [];
    // The result of a call that has ended is only kept while there is room.
    const ended = full.find((each) => each.isDone);
    if (full.length && !ended) {
      throw McpError.internalError("Cannot ask the user: too many calls wait for an answer; try again later");
    }
    if (ended) this.#drop(ended.id, "its result was kept for long enough");
    this.#calls.set(call.id, call);
  }

  /** Keeps a small result for a while, because the handler of an identified caller may run again for another reason. */
  #end(call: ParkedCall, result: Result): void {
    if (call.caller === undefined || JSON.stringify(result).length > MAX_KEPT) this.#calls.delete(call.id);
    else if (this.#calls.has(call.id)) call.expire();
  }
}

interface Asked {
  readonly method: string;
  readonly params: Params;
  readonly resolve: (answer: Params) => void;
  readonly reject: (reason: unknown) => void;
}

interface ParkedParts {
  readonly id: string;
  readonly timer: ActiveTimer;
  /** Throws if the call must not wait. */
  readonly park: () => void;
  readonly waitLater: (onTime: () => void) => () => void;
  readonly forget: () => void;
}

class ParkedCall {
  readonly id: string;
  readonly caller: Caller;
  /** The client to which the waiting call is charged. */
  readonly client: Caller;
  /** Whether the other server has responded. */
  isDone = false;
  readonly #parts: ParkedParts;
  readonly #stop = new AbortController();
  readonly #result: Promise<Result>;
  /** The latest run that waits for the call. Progress and log messages go to this run. */
  #current: ParkedRequest;
  #round = 0;
  #count = 0;
  // Bound: the questions that the connection answers for one request, 32.
  readonly #asked = new Map<string, Asked>();
  #news = Promise.withResolvers<void>();
  #stopWaiting = () => {};
  /** The error for a capability that the caller lacks, which says more than the error of the other server. */
  #missing: unknown;

  constructor(request: ParkedRequest, parts: ParkedParts) {
    this.id = parts.id;
    this.caller = request.caller;
    this.client = request.caller ?? (request.ctx && findClientKey(request.ctx));
    this.#parts = parts;
    this.#current = request;
    const { onProgress } = request.given;
    // The client of the other server checks the answers.
    const ask = async <T>(method: string, params: object): Promise<T> => await this.#ask(method, { ...params }) as T; // See above.
    const elicit = (asked: Params) => ask<Elicited<Params>>("elicitation/create", asked);
    const begin = request.begin ?? (() => Promise.reject(new TypeError("Cannot begin a call: it has no request")));
    this.#result = begin({
      signal: this.#stop.signal,
      ...onProgress && { onProgress: (progress) => this.#current.given.onProgress?.(progress) },
      onNotification: (notification) => this.#current.given.onNotification(notification),
      onElicit: elicit,
      onElicitUrl: elicit,
      onSample: (asked) => ask("sampling/createMessage", asked),
      roots: async () => (await ask<{ readonly roots: readonly Root[] }>("roots/list", {})).roots,
    });
    const finish = () => {
      this.isDone = true;
      parts.timer.stop();
      this.#stopWaiting();
      for (const { reject } of this.#asked.values()) reject(new Error("Cannot answer: the request has ended"));
      this.#asked.clear();
    };
    this.#result.then(finish, () => {
      finish();
      parts.forget();
    });
  }

  /** Passes on the answers of a round. Each round can be answered once. */
  answer(state: string, answers: Params): void {
    const isNow = state === this.#state;
    const isRepeated = this.caller !== undefined && Number(state.split(" ")[1]) < this.#round;
    if (!isNow && !isRepeated) throw new ToolError("Cannot continue the call: this answer was already used");
    if (!isNow || !this.#asked.size) return;
    this.#round++;
    this.#stopWaiting();
    this.#news = Promise.withResolvers();
    for (const [key, { resolve, reject }] of [...this.#asked]) {
      // A question that arrived meanwhile belongs to the next round.
      if (!Object.hasOwn(answers, key)) continue;
      this.#asked.delete(key);
      const answer = answers[key];
      if (isObject(answer)) resolve(answer);
      else reject(McpError.internalError("Cannot answer: the client sent no answer"));
    }
    if (this.#asked.size) this.#news.resolve();
  }

  /** Waits for the result, or for questions. The call is cancelled with the run. */
  async follow(request: ParkedRequest): Promise<Result> {
    const { timer, waitLater } = this.#parts;
    const { signal } = request.given;
    this.#current = request;
    const cancel = () => this.#stop.abort(signal.reason);
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel);
    try {
      const result = await Promise.race([this.#result, this.#news.promise]);
      if (result) return result;
    } catch (error) {
      throw this.#missing !== undefined && isRemoteError(error) ? this.#missing : error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
    timer.pause();
    this.#stopWaiting();
    const stop = waitLater(() => {
      this.end("nobody has answered in 10 minutes");
      this.#parts.forget();
    });
    this.#stopWaiting = () => {
      stop();
      timer.resume();
      this.#stopWaiting = () => {};
    };
    const inputRequests = Object.fromEntries(
      [...this.#asked].map(([key, { method, params }]) => [key, { method, params }]),
    );
    return { resultType: "input_required", inputRequests, requestState: this.#state };
  }

  /** Forgets the result later. */
  expire(): void {
    this.#stopWaiting();
    this.#stopWaiting = this.#parts.waitLater(this.#parts.forget);
  }

  end(reason: string, name = "AbortError"): void {
    if (this.isDone) this.#stopWaiting();
    this.#stop.abort(new DOMException(`Cannot continue the call: ${reason}`, name));
  }

  get #state(): string {
    return `${this.id} ${this.#round}`;
  }

  async #ask(method: string, params: Params): Promise<Params> {
    try {
      requireCapabilities(this.#current.capabilities, [toNeed(method, params)], "ask the user");
    } catch (error) {
      // The other server decides what it does without the answer.
      this.#missing = error;
      throw error;
    }
    this.#parts.park();
    const { promise, resolve, reject } = Promise.withResolvers<Params>();
    this.#asked.set(`question_${++this.#count}`, { method, params, resolve, reject });
    // Questions that the other server asks together reach the caller together.
    setTimeout(() => this.#asked.size && this.#news.resolve(), 0);
    return await promise;
  }
}

function toNeed(method: string, params: Params): string {
  if (method === "roots/list") return "roots";
  if (method === "elicitation/create") return params.mode === "url" ? "elicitation.url" : FORM;
  return params.tools === undefined && params.toolChoice === undefined ? "sampling" : "sampling.tools";
}
