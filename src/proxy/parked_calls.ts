/**
 * Calls of a server with sessions whose questions wait for the next request of a caller without a session. The server's
 * handler keeps running meanwhile, so each call runs it once.
 */
import { isRemoteError, McpError, ToolError } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { ClientCapabilities, Context, Elicited, Root } from "../library.ts";
import type { ForwardedRequest, ForwardRetry } from "../server/call/context.ts";
import { toCall } from "../server/call/find_call.ts";
import { type EndForwarded, findForwardedEnds } from "../server/call/forwarded_keys.ts";
import { FORM, requireCapabilities } from "../server/call/question.ts";
import type { Account } from "../server/capacity/account.ts";
import { type Charge, keep } from "../server/capacity/charges.ts";
import { toCore } from "../server/handlers/bound_layer.ts";
import type { FeatureParts } from "../server/visibility/feature_parts.ts";
import { LazyModule } from "../core/protocol/lazy_module.ts";
import { ActiveTimer } from "./active_timer.ts";
import type { UpstreamParts } from "./parts.ts";

/** Loaded on demand, because few servers have several instances. */
const lazyRoutes = new LazyModule(() => import("./parked_routes.ts"));

/** Milliseconds for which a call waits for an answer, and for which its result is kept. */
const WAIT_MS = 10 * 60_000;
/** Bytes of memory that a kept result needs in addition to its text and the parameters of its call. */
const RESULT_BYTES = 1024;

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

/** A call that waits, or has ended and keeps its result. */
interface Parked {
  readonly call: ParkedCall;
  /** The place of the call, and the memory of each of its questions. */
  // Bound: the questions that the connection answers for one request, 32.
  readonly charges: Charge[];
}

/** The client that a call is charged to. */
interface Charged {
  readonly account: Account;
  readonly core: FeatureParts;
  /** Bytes of the parameters of the call. */
  readonly bytes: number;
}

export class ParkedCalls {
  readonly #upstream: UpstreamParts;
  // Bound: `proxy.parked`, and `proxy.bytes` for the calls that have ended.
  readonly #calls = new Map<string, Parked>();
  #receiving?: Promise<(() => void) | undefined>;
  #ends?: Set<EndForwarded>;
  readonly #end: EndForwarded = (state) => this.cancel(String(state));

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
    if (result.resultType === "input_required") await (this.#receiving ??= this.#receive());
    // Only the handler of an identified caller may run again, for another reason.
    else if (call.caller === undefined) this.#forget(call.id);
    return result;
  }

  /** Whether a call waits for the answers of a request with this state. */
  has(state: unknown): boolean {
    return typeof state === "string" && this.#calls.has(state.split(" ")[0]);
  }

  /** Ends a call, because the caller does not answer. */
  cancel(state: string): void {
    const [id] = state.split(" ");
    this.#calls.get(id)?.call.end("the question was not answered");
    this.#forget(id);
  }

  close(): void {
    for (const [id, { call }] of this.#calls) {
      call.end("the server is closing");
      this.#forget(id);
    }
    void this.#receiving?.then((stop) => stop?.());
    this.#ends?.delete(this.#end);
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
    const { ctx, begin } = request;
    if (!ctx || !begin) throw new TypeError("Cannot begin a call: it has no request");
    const { server, settings } = this.#upstream;
    const own = toCall(ctx, "call another server");
    // Read the account now, because the address of the client is unknown after the client has disconnected.
    const charged: Charged = { account: own.link.account, core: toCore(own), bytes: own.weigh() };
    const id = `${this.#upstream.id}.${crypto.randomUUID()}`;
    const call: ParkedCall = new ParkedCall(request, {
      id,
      begin,
      timer: new ActiveTimer(
        server.clock,
        settings.timeoutMs,
        () => call.end("the timeout has expired", "TimeoutError"),
      ),
      park: (question) => this.#park(call, charged, question),
      waitLater: (onTime) => server.clock.start(onTime, WAIT_MS, { background: true }),
      settle: (result) => this.#settle(call, charged, result),
    });
    return call;
  }

  #find(state: string, caller: Caller): ParkedCall {
    const call = this.#calls.get(state.split(" ")[0])?.call;
    if (call && call.caller === caller) return call;
    throw new ToolError(
      `Cannot continue the call of ${this.#upstream.settings.name}: it no longer waits for this answer, and may have ` +
        "run; check its effect before you repeat it",
    );
  }

  /** Charges a call that begins to wait, and its question. Throws if there is no room. */
  #park(call: ParkedCall, { account, core, bytes }: Charged, question: Params): void {
    const parked = this.#calls.get(call.id);
    const { parked: total, parkedPerClient: share } = core.limits.proxy;
    const shareName = "proxy.parkedPerClient";
    const pot = account.pot({ name: "proxy.parked", of: this.#upstream.potName, total, share, shareName });
    const memory = toBytes(question) + (parked ? 0 : bytes);
    const charge = keep(core, account, [...parked ? [] : [[pot, 1] as const], [account.memory, memory]]);
    this.#ends = findForwardedEnds(core.state).add(this.#end);
    if (charge && parked) return void parked.charges.push(charge);
    if (charge) return void this.#calls.set(call.id, { call, charges: [charge] });
    throw McpError.internalError(
      `Cannot ask the user: too many calls wait for an answer (${shareName}, proxy.parked, memory); try again later`,
    );
  }

  /** Keeps the result of a call that has waited, because a later run of the caller's handler gets it. */
  #settle(call: ParkedCall, { account, core, bytes: given }: Charged, result?: Result): void {
    const { id } = call;
    if (!this.#calls.has(id)) return;
    this.#forget(id);
    if (!result) return;
    const total = core.limits.proxy.bytes;
    const options = { of: this.#upstream.potName, total, share: total / 4, isCache: true };
    const pot = account.pot({ name: "proxy.bytes", ...options });
    const bytes = given + toBytes(result) + RESULT_BYTES;
    const drop = () => this.#calls.delete(id);
    const charge = keep(core, account, [[account.memory, bytes], [pot, bytes]], { ttlMs: WAIT_MS, drop });
    if (charge) this.#calls.set(id, { call, charges: [charge] });
  }

  #forget(id: string): void {
    for (const charge of this.#calls.get(id)?.charges ?? []) charge.end();
    this.#calls.delete(id);
  }
}

/** Returns the bytes of memory for a value from another server. A character takes two bytes. */
function toBytes(value: object): number {
  return 2 * JSON.stringify(value).length;
}

interface Asked {
  readonly method: string;
  readonly params: Params;
  readonly resolve: (answer: Params) => void;
  readonly reject: (reason: unknown) => void;
}

interface ParkedParts {
  readonly id: string;
  readonly begin: (options: Partial<ForwardedRequest>) => Promise<Result>;
  readonly timer: ActiveTimer;
  /** Throws if the call must not wait for an answer to a question. */
  readonly park: (question: Params) => void;
  readonly waitLater: (onTime: () => void) => () => void;
  /** Called when the call has ended, with the result if there is one. */
  readonly settle: (result?: Result) => void;
}

class ParkedCall {
  readonly id: string;
  readonly caller: Caller;
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
    this.#parts = parts;
    this.#current = request;
    const { onProgress } = request.given;
    // The client of the other server checks the answers.
    const ask = async <T>(method: string, params: object): Promise<T> => await this.#ask(method, { ...params }) as T; // See above.
    const elicit = (asked: Params) => ask<Elicited<Params>>("elicitation/create", asked);
    this.#result = parts.begin({
      signal: this.#stop.signal,
      ...onProgress && { onProgress: (progress) => this.#current.given.onProgress?.(progress) },
      onNotification: (notification) => this.#current.given.onNotification(notification),
      onElicit: elicit,
      onElicitUrl: elicit,
      onSample: (asked) => ask("sampling/createMessage", asked),
      roots: async () => (await ask<{ readonly roots: readonly Root[] }>("roots/list", {})).roots,
    });
    const finish = (result?: Result) => {
      parts.timer.stop();
      this.#stopWaiting();
      for (const { reject } of this.#asked.values()) reject(new Error("Cannot answer: the request has ended"));
      this.#asked.clear();
      parts.settle(result);
    };
    this.#result.then(finish, () => finish());
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
    const { timer, waitLater, settle } = this.#parts;
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
      settle();
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

  end(reason: string, name = "AbortError"): void {
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
    this.#parts.park(params);
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
