/**
 * JSON-RPC over a channel: request ids, requests in flight, timeouts, cancellation and notifications.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, McpError } from "../protocol/errors.ts";
import { type Id, isId, isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { KnownOptions } from "../core/call/known_options.ts";
import { ANSWER, type AnswerOptions, type AskingRequest } from "./answer_options.ts";
import { type ClientMiddleware, type ClientRequest, runMiddleware } from "./request_middleware.ts";
import { withDeadline } from "./deadline.ts";
import type { Channel, SendResult } from "./channel.ts";
import { delay } from "./delay.ts";
import { AnswerSlots } from "./answer_slots.ts";
import type { Message, Notification } from "./message.ts";
import { startTimer } from "../kit/timer.ts";
import { describeResponse } from "./response_text.ts";
import type { ClientCapabilities } from "../protocol/types.ts";
import type { Held } from "./subscription.ts";

/** The progress of a request. */
export interface Progress {
  /** A value that grows with every report. */
  readonly progress: number;
  /** The value of `progress` at the end of the work, if it is known. */
  readonly total?: number;
  /** A message to show to the user. */
  readonly message?: string;
}

/**
 * Options of a request. Its own `onElicit`, `onElicitUrl`, `onSample` and `roots` replace the functions of the
 * connection for questions of this request. In a session, the server knows only the capabilities that were declared
 * when the session began.
 */
export interface RequestOptions extends AnswerOptions {
  /** Called with each progress report. Without it, the client requests no progress. */
  readonly onProgress?: (progress: Progress) => void;
  /** Called with each notification that belongs to this request, or that may belong to it. */
  readonly onNotification?: (notification: Notification) => void;
  /** Cancels the request. */
  readonly signal?: AbortSignal;
  /**
   * Timeout of the request in milliseconds, whatever it waits for: the server, a user who answers, or an extension that
   * finishes the result. Defaults to `timeoutMs` of `connect`.
   */
  readonly timeoutMs?: number;
  /** Additional HTTP headers, which replace headers of the same name. `null` removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Additional fields of `_meta`. */
  readonly meta?: Params;
  /**
   * Whether extensions convert results of their types to final results. Defaults to `true`. With `false`, `request`
   * returns the result unchanged, such as the handle of a task.
   */
  readonly finish?: boolean;
  /**
   * Whether to answer questions and send the request again. Defaults to `true`. With `false`, the method returns the
   * result of the first response: its `resultType` is `input_required` if the server asks a question, and extensions do
   * not finish it. In a session, the server asks with requests of its own, which the client still answers.
   */
  readonly rounds?: boolean;
  /**
   * A result that an earlier request returned with `finish: false`, such as the handle of a task. The client does not
   * send the request. Instead, the extension finishes this result, even in another process.
   */
  readonly resume?: Result;
}

/** The names of {@linkcode RequestOptions}. */
export const REQUEST: KnownOptions<keyof RequestOptions> = {
  names: {
    ...ANSWER,
    rounds: "boolean",
    onProgress: "function",
    onNotification: "function",
    signal: true,
    timeoutMs: true,
    headers: true,
    meta: true,
    finish: "boolean",
    resume: true,
  },
  hints: { timeout: "timeoutMs", _meta: "meta", progress: "onProgress" },
};

/** Options of a request in the test kit. */
export interface TestRequestOptions extends RequestOptions {
  /** The id of the request. Defaults to the next number. */
  readonly id?: Id;
}

/** Options of a request as the protocols get them. */
export interface SentRequestOptions extends TestRequestOptions {
  /** Answers the questions of the request. Defaults to the function of the connection. */
  readonly answer?: RequestHandler;
  /**
   * Capabilities that this request declares in addition to the capabilities of the connection. Has no effect in a
   * session.
   */
  readonly capabilities?: ClientCapabilities;
}

/** A request from the server: elicitation, sampling or roots. */
export interface ServerRequest {
  /** The method, such as `elicitation/create`. */
  readonly method: string;
  /** The parameters. */
  readonly params: Params;
  /**
   * The server's key of the question: the key that the handler chose, or in a session the id of the server's request.
   */
  readonly key?: string;
  /** The request during which the server asks. `undefined` if this is not known. */
  readonly request?: AskingRequest;
}

/**
 * Answers a request from the server with a result, or throws an `McpError`. `signal` aborts when the request is
 * cancelled.
 */
export type RequestHandler = (request: ServerRequest, signal: AbortSignal) => unknown;

/** Adds to messages the fields that a protocol revision requires. */
export interface Codec {
  toParams(params: Params): Params;
  toHeaders(message: Message): Readonly<Record<string, string>>;
  /**
   * Whether there is a session. In a session, the server may send requests, streams can be resumed, and a request is
   * cancelled with a notification even if it has its own stream.
   */
  readonly hasSession: boolean;
}

/** The result of a request, with the status and headers of its HTTP response. */
export interface Outcome {
  readonly result: Result;
  readonly status?: number;
  readonly headers?: Headers;
}

/** The JSON-RPC connection of a client. */
export interface Rpc {
  readonly channel: Channel;
  /** The default timeout of a request in milliseconds. */
  readonly timeoutMs: number;
  /** Returns the milliseconds for which requests have waited for a user. Their timeouts do not count this time. */
  readonly waitedMs: () => number;
  /** The codec of the protocol revision. Set when the era is known. */
  codec: Codec;
  /** Called with every notification. */
  readonly listeners: Set<(notification: Notification) => void>;
  /** The number of characters that wait in all subscriptions of the connection. */
  readonly held: Held;
  request(method: string, params: Params, options?: SentRequestOptions): Promise<Outcome>;
  notify(method: string, params?: Params): Promise<void>;
  /** Answers a question from the server. If too many questions are open, waits until earlier questions are answered. */
  answer(question: ServerRequest, options: AnswerQuestionOptions): Promise<unknown>;
  /** Processes a message that is not a response. */
  receive(message: Message): void;
  /** Aborts all requests in flight. */
  abort(reason?: unknown): void;
  /** Settles when all cancellations are sent, or after a second. */
  settle(): Promise<void>;
}

/** Options for answering a question. */
export interface AnswerQuestionOptions {
  readonly signal: AbortSignal;
  /** Answers the question. Defaults to the function of the connection. */
  readonly answer?: RequestHandler;
}

/** The options of {@linkcode createRpc}. */
export interface RpcOptions {
  readonly codec: Codec;
  readonly answer: RequestHandler;
  readonly timeoutMs: number;
  /** Functions that wrap each request. The first function is the outermost. */
  readonly use?: readonly ClientMiddleware[];
  open(onMessage: (message: Message) => void): Channel;
  /** Called with errors outside of requests. */
  readonly onError: (error: unknown) => void;
  /** Whether to send an answer again if a busy server did not accept it. Defaults to `false`. */
  readonly repeatsAnswers?: boolean;
}

/** A request in flight. */
interface Running {
  readonly id: Id;
  readonly request: AskingRequest;
  /** Answers the questions of this request. `undefined` if the request has no function of its own. */
  readonly answer?: RequestHandler;
  readonly token: unknown;
  readonly deliver: (notification: Notification) => void;
  readonly stop: AbortController;
  /** Whether the request was sent in a session. */
  readonly hasSession: boolean;
  /** Set to `true` when the client no longer waits for the response. */
  isGivenUp: boolean;
  /** Stops the timer. Set while the client waits for the result of a request that the server has cancelled. */
  stopTimer?: () => void;
}

/** The `_meta` field of a notification that contains the id of its subscription. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

const ENDED = "Cannot get the response: the server cancelled the request";
const CALL_ENDED = "Cannot answer: the request that asked has ended";
/** Milliseconds to wait for cancellations to be sent when the connection closes. */
const SETTLE_MS = 1000;
/** Milliseconds to wait for the result of a request that the server has cancelled. */
const RESULT_MS = 200;
/**
 * Maximum number of questions from the server that are answered at the same time. Limited, because each question may
 * involve a user or a model.
 */
const MAX_ANSWERING = 8;
/** Maximum number of further questions that wait to be answered. */
const MAX_WAITING = 100;
/** Maximum length of all open questions together, in characters. A single question may be longer. */
const MAX_QUESTION_CHARACTERS = 16 * 1024 * 1024;
/** Milliseconds until an answer that the server did not accept is sent again. Doubles each time. */
const ANSWER_RETRY_MS = 250;
const ANSWER_RETRIES = 5;

/** The result that is assumed if a message could not be sent. */
const FAILED: SendResult = { status: 503 };

/** Maximum number of immediate replies that are being sent at the same time. Further requests get no reply. */
const MAX_REPLYING = 100;

/** A request from the server that is being answered, or that waits to be answered. */
interface Question {
  readonly id: Id;
  readonly stop: AbortController;
  /** The running requests to which the question may belong. When the last of these requests ends, answering stops. */
  readonly calls: Set<Running>;
}

/** Opens a channel, and creates a JSON-RPC connection over it. */
export function createRpc(options: RpcOptions): Rpc {
  return new ChannelRpc(options);
}

class ChannelRpc implements Rpc {
  readonly channel: Channel;
  readonly timeoutMs: number;
  codec: Codec;
  readonly listeners = new Set<(notification: Notification) => void>();
  readonly held: Held = { characters: 0 };
  readonly #answer: RequestHandler;
  readonly #use: readonly ClientMiddleware[];
  readonly #onError: (error: unknown) => void;
  readonly #repeatsAnswers: boolean;
  readonly #running = new Set<Running>();
  readonly #questions = new Set<Question>();
  readonly #slots = new AnswerSlots(MAX_ANSWERING);
  #questionCharacters = 0;
  #replying = 0;
  readonly #cancelling = new Set<Promise<void>>();
  #lastId = 0;

  constructor({ codec, answer, timeoutMs, use = [], open, onError, repeatsAnswers = false }: RpcOptions) {
    this.codec = codec;
    this.timeoutMs = timeoutMs;
    this.#answer = answer;
    this.#use = use;
    this.#onError = onError;
    this.#repeatsAnswers = repeatsAnswers;
    this.channel = open((message) => this.receive(message));
  }

  readonly waitedMs = (): number => this.channel.waitedMs?.() ?? 0;

  async request(method: string, params: Params, options: SentRequestOptions = {}): Promise<Outcome> {
    const { signal, timeoutMs = this.timeoutMs } = options;
    return await withDeadline(
      { method, signal, timeoutMs, waitedMs: this.waitedMs },
      (signal) =>
        this.#use.length
          ? this.#requestWithin({ method, params, headers: options.headers ?? {}, signal }, options)
          : this.#exchange({ method, params }, { ...options, signal }),
    );
  }

  /** Sends a request through the functions of `use`. */
  async #requestWithin(request: ClientRequest, options: SentRequestOptions): Promise<Outcome> {
    let last: Outcome | undefined;
    const result = await runMiddleware(this.#use, request, async ({ headers, signal, ...changed }) => {
      last = await this.#exchange(changed, { ...options, headers, signal });
      return last.result;
    });
    return { ...last, result };
  }

  /** Sends a request once, and cancels it when its signal aborts. */
  async #exchange({ method, params: given }: AskingRequest, options: SentRequestOptions): Promise<Outcome> {
    const { id = ++this.#lastId, signal, answer } = options;
    const params = this.#toParams(id, given, options);
    signal?.throwIfAborted();
    const request = { method, params: given };
    const running = toRunning({ id, request, answer, params, hasSession: this.codec.hasSession }, options);
    const onAbort = () => this.#giveUp(running, method, signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return toOutcome(id, await this.#send({ jsonrpc: "2.0", id, method, params }, running, options));
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async notify(method: string, params?: Params): Promise<void> {
    const message = { jsonrpc: "2.0" as const, method, params };
    const outcome = await this.channel.send(message, { headers: this.codec.toHeaders(message) });
    const { status, message: { error } = {} } = outcome;
    if (status === undefined || (status >= 200 && status < 300 && !error)) return;
    throw new McpError(
      error?.code ?? 0,
      error?.message ?? `Cannot notify: ${describeResponse(outcome)}`,
      error?.data,
      { status },
    );
  }

  receive(message: Message, from?: Running): void {
    const { id, method, params = {} } = message;
    // This is the response to a cancelled request, so ignore it.
    if (method === undefined) return;
    if (isId(id)) return void this.#respond(id, { method, params }, from).catch(this.#onError);
    const notification = { method, params };
    if (method === "notifications/cancelled") this.#receiveCancelled(params.requestId);
    const belongs = from ? [from] : [...this.#running].filter((each) => mayBelong(notification, each));
    for (const deliver of [...this.listeners, ...belongs.map(({ deliver }) => deliver)]) {
      try {
        deliver(notification);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  abort(reason: unknown = new DOMException("Cannot go on: the connection was closed", "AbortError")): void {
    for (const { stop } of [...this.#running]) stop.abort(reason);
    for (const { stop } of [...this.#questions]) stop.abort(reason);
  }

  answer(question: ServerRequest, { signal, answer = this.#answer }: AnswerQuestionOptions): Promise<unknown> {
    return this.#slots.run(async () => await answer(question, signal), signal);
  }

  async settle(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const stopTimer = startTimer(SETTLE_MS, late.resolve);
    await Promise.race([Promise.all(this.#cancelling), late.promise]);
    stopTimer();
  }

  #toParams(id: Id, given: Params, { onProgress, meta: added }: TestRequestOptions): Params {
    const own = isObject(given._meta) ? given._meta : undefined;
    const meta = onProgress ? { progressToken: id, ...added } : added;
    return this.codec.toParams(own || meta ? { ...given, _meta: { ...own, ...meta } } : given);
  }

  #send(message: Message, running: Running, { headers }: TestRequestOptions): ReturnType<Channel["send"]> {
    this.#running.add(running);
    const sending = this.channel.send(message, {
      headers: { ...this.codec.toHeaders(message), ...headers },
      signal: running.stop.signal,
      onMessage: (message) => this.receive(message, running),
      resumes: () => running.hasSession && !running.isGivenUp,
    });
    sending.catch(() => {}).finally(() => {
      running.stopTimer?.();
      this.#running.delete(running);
      this.#stopQuestions(running);
    });
    return sending;
  }

  /** Stops answering questions that could belong only to the request that has ended. */
  #stopQuestions(running: Running): void {
    for (const { calls, stop } of [...this.#questions]) {
      if (calls.delete(running) && !calls.size) stop.abort(new DOMException(CALL_ENDED, "AbortError"));
    }
  }

  /** Cancels a running request. */
  #giveUp(running: Running, method: string, reason: unknown): void {
    const { id, stop, hasSession } = running;
    running.isGivenUp = true;
    this.#stopQuestions(running);
    // Do not notify the server: a handshake must not be cancelled, and where a request has its own stream, closing the
    // stream cancels it.
    if (method === "initialize" || (this.channel.openStream && !hasSession)) return stop.abort(reason);
    const why = reason instanceof Error ? reason.message : String(reason);
    const notifying = this.notify("notifications/cancelled", { requestId: id, reason: why }).catch(() => {}).finally(
      () => {
        this.#cancelling.delete(notifying);
        stop.abort(reason);
      },
    );
    this.#cancelling.add(notifying);
  }

  /**
   * Handles a cancellation from the server. In a session, it cancels a request from the server. Without a session, it
   * ends a subscription, whose result may follow.
   */
  #receiveCancelled(id: unknown): void {
    if (this.codec.hasSession) {
      for (const question of [...this.#questions]) if (question.id === id) question.stop.abort();
      return;
    }
    for (const running of this.#running) {
      if (running.id !== id) continue;
      running.stopTimer = startTimer(RESULT_MS, () => running.stop.abort(new DOMException(ENDED, "AbortError")));
    }
  }

  async #respond(id: Id, request: ServerRequest, from?: Running): Promise<void> {
    if (!this.codec.hasSession) {
      throw new Error(`Cannot answer ${request.method}: this revision has no requests from the server`);
    }
    const stop = new AbortController();
    // Answer a ping at once, because it tests whether the connection works.
    if (request.method === "ping") return await this.#reply(id, await this.#toAnswer(request, stop.signal, from));
    const characters = JSON.stringify(request.params).length;
    const isHeavy = this.#questions.size > 0 && this.#questionCharacters + characters > MAX_QUESTION_CHARACTERS;
    if (isHeavy || this.#slots.waiting >= MAX_WAITING) {
      const message = `Cannot answer ${request.method}: too many requests wait for an answer; ask fewer at a time`;
      return await this.#reply(id, { error: { code: INTERNAL_ERROR, message } });
    }
    const question: Question = { id, stop, calls: this.#findCalls(request, from) };
    this.#questions.add(question);
    this.#questionCharacters += characters;
    try {
      await this.#slots.run(() => this.#answerQuestion(question, request, from), stop.signal);
    } catch {
      // Answering was stopped while the question waited.
    } finally {
      this.#questions.delete(question);
      this.#questionCharacters -= characters;
    }
    // Reply even though the call has ended. If all messages share one channel, the question may belong to another
    // request, and without a reply the server would wait forever.
    const hasEnded = stop.signal.reason instanceof DOMException && stop.signal.reason.message === CALL_ENDED;
    if (hasEnded && !from) await this.#reply(id, { error: { code: INTERNAL_ERROR, message: CALL_ENDED } });
  }

  async #answerQuestion({ id, stop: { signal } }: Question, asked: ServerRequest, from?: Running): Promise<void> {
    const answer = await this.#toAnswer({ ...asked, key: String(id) }, signal, from);
    const message = { jsonrpc: "2.0" as const, id, ...answer };
    if (signal.aborted) return;
    // Ignore network errors: if the server is gone, the running requests fail anyway. Retry only after a refusal.
    for (let retry = 0; !signal.aborted; retry++) {
      const options = { headers: this.codec.toHeaders(message), signal };
      const { status = 200 } = await this.channel.send(message, options).catch(() => FAILED);
      // Retry, because the server's call waits for the answer. Another instance may accept the answer, or the same
      // instance may accept it later.
      const isRefused = status >= 500 || status === 429;
      if (!isRefused || !this.#repeatsAnswers || retry === ANSWER_RETRIES) return;
      await delay(ANSWER_RETRY_MS * 2 ** retry, signal).catch(() => {});
    }
  }

  /**
   * Returns the running requests to which a question may belong. If the question did not arrive on the stream of a
   * request, a request for roots may belong to no running request.
   */
  #findCalls({ method }: ServerRequest, from?: Running): Set<Running> {
    return new Set(from ? [from] : method === "roots/list" ? [] : this.#running);
  }

  /** Sends a reply. Sends nothing if too many earlier replies are still being sent. */
  async #reply(id: Id, reply: Pick<Message, "result" | "error">): Promise<void> {
    if (this.#replying >= MAX_REPLYING) return;
    const message = { jsonrpc: "2.0" as const, id, ...reply };
    this.#replying++;
    await this.channel.send(message, { headers: this.codec.toHeaders(message) }).catch(() => {});
    this.#replying--;
  }

  async #toAnswer(
    asked: ServerRequest,
    signal: AbortSignal,
    from?: Running,
  ): Promise<Pick<Message, "result" | "error">> {
    try {
      const { request, answer = this.#answer } = this.#findAsking(asked, from) ?? {};
      return { result: await answer({ ...asked, request }, signal) };
    } catch (error) {
      if (isMcpError(error)) return { error: { code: error.code, message: error.message, data: error.data } };
      if (!signal.aborted) this.#onError(error);
      return { error: { code: INTERNAL_ERROR, message: `Cannot answer ${asked.method}` } };
    }
  }

  /**
   * Returns the request to which a question belongs, if that is certain. Throws if an answer could be meant for another
   * request.
   */
  #findAsking({ method }: ServerRequest, from?: Running): Running | undefined {
    if (from || method === "ping") return from;
    const [first, ...others] = this.#running;
    if (!others.length) return first;
    if (![first, ...others].some(({ answer }) => answer)) return;
    const state = `${
      others.length + 1
    } requests with functions of their own are running, and the question may belong to any of them`;
    throw McpError.internalError(
      `Cannot answer ${method}: ${state}; send one request at a time, or open one connection for each`,
    );
  }
}

function toRunning(
  { params, ...facts }: Pick<Running, "id" | "request" | "answer" | "hasSession"> & { readonly params: Params },
  { onProgress, onNotification }: TestRequestOptions,
): Running {
  const token = isObject(params._meta) ? params._meta.progressToken : undefined;
  return {
    ...facts,
    token,
    stop: new AbortController(),
    isGivenUp: false,
    deliver(notification) {
      onNotification?.(notification);
      const { method, params } = notification;
      if (method === "notifications/progress" && params.progressToken === token && isProgress(params)) {
        onProgress?.(params);
      }
    },
  };
}

function toOutcome(id: Id, received: Awaited<ReturnType<Channel["send"]>>): Outcome {
  const { message, status, headers } = received;
  if (!message) {
    throw new McpError(0, `Cannot read the response: ${describeResponse(received)}`, undefined, { status: status });
  }
  const { error, result } = message;
  if (error) throw new McpError(error.code, error.message, error.data, { status });
  if (message.id !== id) throw new Error(`Cannot use the response to ${message.id}: the request was ${id}`);
  if (!isObject(result)) {
    throw new McpError(0, `Cannot read the result: ${JSON.stringify(result)}`, undefined, { status: status });
  }
  return { result, status, headers };
}

function isProgress(params: Params): params is Params & Progress {
  const { progress, total, message } = params;
  return typeof progress === "number" && (total === undefined || typeof total === "number") &&
    (message === undefined || typeof message === "string");
}

// Tests whether a notification may belong to a request. If all messages share one channel, only progress notifications
// name their request, and all other notifications may belong to any running request.
function mayBelong({ method, params }: Notification, { id, token }: Running): boolean {
  const meta = isObject(params._meta) ? params._meta : {};
  if (SUBSCRIPTION in meta) return meta[SUBSCRIPTION] === id;
  return method === "notifications/progress" ? params.progressToken === token : true;
}
