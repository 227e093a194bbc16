/**
 * JSON-RPC over a channel: request ids, requests in flight, timeouts, cancellation and notifications.
 */
import { INTERNAL_ERROR, isMcpError, McpError } from "../core/protocol/errors.ts";
import { type Id, isId, isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { INTERNALS } from "../core/internals.ts";
import type { KnownOptions } from "../core/known_options.ts";
import {
  ANSWER,
  type AnswerOptions,
  type OriginatingRequest,
  type RequestHandler,
  type ServerRequest,
} from "./answer_options.ts";
import { type ClientMiddleware, type ClientRequest, hookAnswer, runMiddleware } from "./request_middleware.ts";
import { withDeadline } from "./deadline.ts";
import type { Channel, SendResult } from "./channel.ts";
import { AnswerBudget, type Asked, MAX_ANSWERS } from "./answer_budget.ts";
import { Slots } from "./slots.ts";
import type { Message, Notification } from "./message.ts";
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { deadline, delay } from "../core/kit/deadline.ts";
import { withFailure } from "../core/kit/failure.ts";
import { startResponseTimer } from "../core/kit/timer.ts";
import { describeResponse } from "./response_text.ts";
import type { ClientCapabilities } from "../core/protocol/types.ts";
import type { Held } from "./subscription.ts";
import { toShown } from "./shown.ts";

/** A progress report for a request. */
export interface Progress {
  /** A value that increases with every report. */
  readonly progress: number;
  /** The value that `progress` will have at the end of the work, if this value is known. */
  readonly total?: number;
  /** A message to show to the user. */
  readonly message?: string;
}

/**
 * Options of a request. `onElicit`, `onElicitUrl`, `onSample` and `roots` replace the callbacks of `connect` while the
 * server processes this request. In a session, the server knows only the capabilities that the client declared when the
 * session began.
 */
export interface RequestOptions extends AnswerOptions {
  /** Called with each progress report. Without this option, the client does not request progress. */
  readonly onProgress?: (progress: Progress) => void;
  /** Called with each notification that belongs, or may belong, to this request. */
  readonly onNotification?: (notification: Notification) => void;
  /** Cancels the request. */
  readonly signal?: AbortSignal;
  /**
   * Timeout of the request in milliseconds. The timeout includes the time for which the client waits for the server,
   * for a user who answers an elicitation, and for an extension that finishes the result. If this process was
   * blocked when the timeout expired, it waits up to this time once more. Defaults to `timeoutMs` of `connect`.
   */
  readonly timeoutMs?: number;
  /** Additional HTTP headers. A header replaces a header with the same name, and `null` removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Additional fields for `_meta` of the request. */
  readonly meta?: Params;
  /**
   * Whether extensions convert the results that they define to final results. Defaults to `true`. With `false`,
   * `request` returns such a result unchanged, for example the task that the server has created.
   */
  readonly finish?: boolean;
  /**
   * Whether the client answers input requests and sends the request again with the answers. Defaults to `true`. With
   * `false`, `request` returns the first result unchanged, even if its `resultType` is `input_required` or belongs to
   * an extension. In a session, the client still answers elicitation, sampling and roots requests, because the server
   * sends them as separate requests.
   */
  readonly rounds?: boolean;
  /**
   * A result, such as a task, that an earlier request with `finish: false` returned, possibly in another process. The
   * client does not send the request. Instead, the extension finishes this result.
   */
  readonly resume?: Result;
}

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
};

/** Options of a request that a client of the test kit sends. */
export interface TestRequestOptions extends RequestOptions {
  /** The id of the request. Defaults to the next number. */
  readonly id?: Id;
}

/** Options of a part of a larger request, such as a page. The key is a symbol, so that only this library can set it. */
export interface CountedOptions extends RequestOptions {
  /** Counts the server's requests. Defaults to a new count. */
  readonly [INTERNALS]?: Asked;
}

/** Options of a request that the client passes to its protocol. */
export interface SentRequestOptions extends TestRequestOptions {
  /** Answers requests from the server that belong to this request. Defaults to the connection's function. */
  readonly answer?: RequestHandler;
  /**
   * Capabilities that this request declares in addition to the connection's capabilities. Has no effect in a session.
   */
  readonly capabilities?: ClientCapabilities;
  /** Counts the server's requests that the program's request causes. Defaults to a new count. */
  readonly asked?: Asked;
  /**
   * Called with the result if the result arrives after the client has cancelled the request. The client remembers this
   * function only for a limited number of requests.
   */
  readonly onLate?: (result: Result) => void;
}

/** Adds to messages the parameters and headers that a protocol revision requires. */
export interface Codec {
  toParams(params: Params): Params;
  toHeaders(message: Message): Readonly<Record<string, string>>;
  /**
   * Whether the protocol has sessions. In a session, the server can send requests, the client can resume streams, and
   * the client cancels a request with a notification even if the request has its own stream.
   */
  readonly hasSession: boolean;
}

/** The result of a request, and the status and headers of the HTTP response. */
export interface Outcome {
  readonly result: Result;
  readonly status?: number;
  readonly headers?: Headers;
  /** Whether the result depends on answers, or on a state, of earlier results of the request. */
  readonly isRetried?: boolean;
  /** Answers the questions in the result, if middleware wants to see them. */
  readonly answer?: RequestHandler;
}

export interface AnswerQuestionOptions {
  readonly signal: AbortSignal;
  /** Defaults to the connection's function. */
  readonly answer?: RequestHandler;
}

export interface RpcOptions {
  readonly codec: Codec;
  readonly answer: RequestHandler;
  readonly timeoutMs: number;
  /** Maximum number of server requests that are answered at the same time. Defaults to {@linkcode MAX_ANSWERING}. */
  readonly answering?: number;
  /** Maximum number of answers for one request of the program. Defaults to {@linkcode MAX_ANSWERS}. */
  readonly maxAnswers?: number;
  /** The first function is the outermost. */
  readonly use?: readonly ClientMiddleware[];
  open(onMessage: (message: Message) => void): Channel;
  /** Called with errors that belong to no request. */
  readonly onError: (error: unknown) => void;
  /** Called with an error response that has no id, such as for a message that was too large. Defaults to `onError`. */
  readonly onUnidentified?: (error: unknown) => void;
  /** Whether to retry sending an answer if the server rejects it with status 429 or 5xx. Defaults to `false`. */
  readonly repeatsAnswers?: boolean;
}

interface Running {
  readonly id: Id;
  readonly request: OriginatingRequest;
  readonly asked: Asked;
  /**
   * Answers requests from the server that belong to this request. `undefined` if the connection's function answers
   * them.
   */
  readonly answer?: RequestHandler;
  readonly token: unknown;
  readonly deliver: (notification: Notification) => void;
  readonly stop: AbortController;
  /** Whether the request was sent in a session. */
  readonly hasSession: boolean;
  /** Whether the client no longer waits for the response. */
  isGivenUp: boolean;
  /**
   * Stops the timer that limits how long the client waits for the result after the server has cancelled the request.
   */
  stopTimer?: () => void;
}

/** The `_meta` field in which a notification contains the id of its subscription. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

const ENDED = "Cannot get the response: the server cancelled the request";
const CALL_ENDED = "Cannot answer: the request that needed the answer has ended";
/**
 * Milliseconds for which the client waits until notifications have been sent, before it closes the connection, and until
 * a cancellation has been sent, before it aborts the cancelled request.
 */
const SETTLE_MS = 1000;
/** Milliseconds to wait for the result of a request that the server has cancelled. */
const RESULT_MS = 200;
/** Maximum number of server requests that are answered at the same time, because each may involve a user or a model. */
const MAX_ANSWERING = 8;
/** Maximum number of server requests that wait to be answered, in addition to {@linkcode MAX_ANSWERING}. */
const MAX_WAITING = 100;
/**
 * Maximum number of characters in the parameters of all open server requests together. A single request may be longer.
 */
const MAX_QUESTION_CHARACTERS = 16 * 1024 * 1024;
/** Milliseconds before a rejected answer is sent again. Doubles with each retry. */
const ANSWER_RETRY_MS = 250;
const ANSWER_RETRIES = 5;

/** The assumed outcome of a message that could not be sent. */
const FAILED: SendResult = { status: 503 };

/** Maximum number of immediate replies, such as to pings, that are sent at once. Further replies are dropped. */
const MAX_REPLYING = 100;

/** Maximum number of cancelled requests whose late results the client still receives. */
const MAX_LATE = 100;

/** A request from the server that the client is answering, or that waits to be answered. */
interface Question {
  readonly id: Id;
  readonly stop: AbortController;
  /**
   * The running requests that may need the answer. When the last of these requests ends, the client stops answering.
   */
  readonly calls: Set<Running>;
  /** Whether all running requests that may need the answer have ended. */
  hasEnded?: boolean;
}

export class Rpc {
  readonly channel: Channel;
  /** The default timeout of a request in milliseconds. */
  readonly timeoutMs: number;
  /** Replaced when the era is known. */
  codec: Codec;
  /** Called with every notification. */
  readonly listeners = new Set<(notification: Notification) => void>();
  /** Counts the characters of unread notifications in all subscriptions of the connection. */
  readonly held: Held = { characters: 0 };
  /** Limits the answers for each request of the program. */
  readonly budget: AnswerBudget;
  readonly #answer: RequestHandler;
  readonly #use: readonly ClientMiddleware[];
  readonly #onError: (error: unknown) => void;
  readonly #onUnidentified: (error: unknown) => void;
  readonly #repeatsAnswers: boolean;
  readonly #running = new Set<Running>();
  readonly #late = new BoundedMap<Id, (result: Result) => void>({ full: "evict", max: MAX_LATE });
  readonly #questions = new Set<Question>();
  #slots: Slots;
  #isShared = false;
  /** The turns of requests with their own callbacks, if all messages share one stream. */
  readonly #turns = new Slots(1);
  /** Number of questions that callbacks are answering. */
  #answering = 0;
  #questionCharacters = 0;
  #replying = 0;
  /** The notifications and cancellations that are being sent. */
  readonly #sending = new Set<Promise<void>>();
  readonly #aborted = new AbortController();
  #lastId = 0;

  constructor(options: RpcOptions) {
    const { codec, answer, timeoutMs, maxAnswers = MAX_ANSWERS, use = [], open, onError, repeatsAnswers = false } =
      options;
    this.#slots = new Slots(options.answering ?? MAX_ANSWERING);
    this.budget = new AnswerBudget(maxAnswers);
    this.codec = codec;
    this.timeoutMs = timeoutMs;
    this.#answer = answer;
    this.#use = use;
    this.#onError = onError;
    this.#onUnidentified = options.onUnidentified ?? onError;
    this.#repeatsAnswers = repeatsAnswers;
    this.channel = open((message) => this.receive(message));
  }

  /**
   * Begins to treat requests as requests of different users. A message that does not say to which request it belongs then
   * belongs to no request, and users who do not answer cannot block other users.
   */
  share(): void {
    this.#isShared = true;
    this.#slots = new Slots(Infinity);
  }

  /** Returns the total milliseconds for which requests have waited for a user. Timeouts do not include this time. */
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

  async #requestWithin(request: ClientRequest, options: SentRequestOptions): Promise<Outcome> {
    let last: Outcome | undefined;
    const result = await runMiddleware(this.#use, request, async ({ headers, signal, ...changed }, hooks) => {
      const answer = hookAnswer(hooks, options.answer ?? this.#answer);
      const observed = {
        ...answer && { answer },
        ...hooks.length && {
          onNotification: (notification: Notification) => {
            for (const { onNotification } of [...hooks, options]) onNotification?.(notification);
          },
        },
      };
      last = { ...await this.#exchange(changed, { ...options, headers, signal, ...observed }), answer };
      return last.result;
    });
    return { ...last, result };
  }

  /**
   * Sends a request without middleware. If the server's questions do not say to which request they belong, requests with
   * callbacks of their own run one after another. A request that is sent while a callback runs does not wait, because the
   * callback may wait for this request.
   */
  async #exchange(request: OriginatingRequest, options: SentRequestOptions): Promise<Outcome> {
    const isAlone = options.answer && !this.#isShared && this.codec.hasSession && !this.channel.openStream &&
      canAsk(request);
    const send = () => this.#sendNow(request, options);
    return isAlone && !this.#answering
      ? await this.#turns.run(send, options.signal ?? this.#aborted.signal)
      : await send();
  }

  /** Cancels the request when its signal aborts. */
  async #sendNow({ method, params: given }: OriginatingRequest, options: SentRequestOptions): Promise<Outcome> {
    const { id = ++this.#lastId, signal, answer, asked = { count: 0 }, onLate } = options;
    const params = this.#toParams(id, given, options);
    signal?.throwIfAborted();
    const request = { method, params: given };
    const running = toRunning({ id, request, asked, answer, params, hasSession: this.codec.hasSession }, options);
    const onAbort = () => this.#giveUp(running, method, signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const outcome = toOutcome(id, await this.#send({ jsonrpc: "2.0", id, method, params }, running, options));
      if (running.isGivenUp) onLate?.(outcome.result);
      return outcome;
    } catch (error) {
      // No late result can arrive on the aborted stream of a single request.
      if (running.isGivenUp && onLate && !this.channel.openStream) this.#late.set(id, onLate);
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  notify(method: string, params?: Params): Promise<void> {
    return this.#track(this.#notify({ jsonrpc: "2.0", method, params }));
  }

  async #notify(message: Message): Promise<void> {
    const options = { headers: this.codec.toHeaders(message), signal: this.#aborted.signal };
    const outcome = await this.channel.send(message, options);
    const { status, message: { error } = {} } = outcome;
    const isAccepted = status === undefined || (status >= 200 && status < 300);
    // Report an error in the body instead of throwing, because a notification has no reply. Some servers respond to
    // notifications with the error for an unknown method, and work otherwise.
    if (isAccepted && error) {
      const sent = `Cannot notify: the server responded to ${message.method} with`;
      this.#onError(toRejection(error, sent, status));
    }
    if (isAccepted) return;
    throw new McpError(
      error?.code ?? 0,
      error?.message ?? `Cannot notify: ${describeResponse(outcome)}`,
      error?.data,
      { status },
    );
  }

  /** Makes {@linkcode flush} wait for `sending`. */
  #track(sending: Promise<void>): Promise<void> {
    const settled: Promise<void> = sending.catch(() => {}).finally(() => this.#sending.delete(settled));
    this.#sending.add(settled);
    return sending;
  }

  receive(message: Message, from?: Running): void {
    const { id, method, params = {} } = message;
    if (method === undefined) return this.#receiveLate(message);
    if (isId(id)) return void this.#respond(id, { method, params }, from).catch(this.#onError);
    const notification = { method, params };
    if (method === "notifications/cancelled") this.#receiveCancelled(params.requestId);
    const belongs = from
      ? [from]
      : [...this.#running].filter((each) => mayBelong(notification, each) ?? !this.#isShared);
    for (const deliver of [...this.listeners, ...belongs.map(({ deliver }) => deliver)]) {
      try {
        deliver(notification);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  /** The late response to a cancelled request, or the error response to a notification, which has no id. */
  #receiveLate({ id, result, error }: Message): void {
    if (error && !isId(id)) {
      return this.#onUnidentified(toRejection(error, "Cannot identify the rejected message: it got"));
    }
    const onLate = isId(id) ? this.#late.get(id) : undefined;
    if (!onLate || !isId(id)) return;
    this.#late.delete(id);
    if (isObject(result)) onLate(result);
  }

  /** Aborts all requests, and stops answering the server. Messages that expect no reply can no longer be sent. */
  abort(
    reason: unknown = new DOMException("Cannot continue the request: the connection was closed", "AbortError"),
  ): void {
    for (const { stop } of [...this.#running]) stop.abort(reason);
    for (const { stop } of [...this.#questions]) stop.abort(reason);
    this.#aborted.abort(reason);
  }

  /** If the client is already answering the maximum number of requests, waits for a slot. */
  answer(question: ServerRequest, { signal, answer = this.#answer }: AnswerQuestionOptions): Promise<unknown> {
    return this.#slots.run(async () => await answer(question, signal), signal);
  }

  /** Resolves when all notifications and cancellations have been sent, but at the latest after a second. */
  async flush(): Promise<void> {
    await deadline(Promise.all(this.#sending), { ms: SETTLE_MS, onTimeout: () => {} });
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

  /** Stops answering server requests whose answer only the ended request may need. */
  #stopQuestions(running: Running): void {
    for (const question of [...this.#questions]) {
      if (!question.calls.delete(running) || question.calls.size) continue;
      question.hasEnded = true;
      question.stop.abort(new DOMException(CALL_ENDED, "AbortError"));
    }
  }

  #giveUp(running: Running, method: string, reason: unknown): void {
    const { id, stop, hasSession } = running;
    running.isGivenUp = true;
    this.#stopQuestions(running);
    // Abort without notifying the server, because a handshake must not be cancelled, and a request with its own stream
    // is cancelled by closing the stream.
    if (method === "initialize" || (this.channel.openStream && !hasSession)) return stop.abort(reason);
    const why = reason instanceof Error ? reason.message : String(reason);
    const notifying = this.#notify({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: id, reason: why },
    }).catch(() => {});
    // Abort the request even if the server does not respond to the notification, because the server could otherwise
    // keep the request open forever.
    this.#track(
      deadline(notifying, { ms: SETTLE_MS, onTimeout: () => {} }).finally(() => stop.abort(reason)),
    );
  }

  /**
   * Handles a cancellation from the server. In a session, the server cancels one of its own requests. Without a
   * session, the server ends a subscription, and may still send the subscription's result.
   */
  #receiveCancelled(id: unknown): void {
    if (this.codec.hasSession) {
      for (const question of [...this.#questions]) if (question.id === id) question.stop.abort();
      return;
    }
    for (const running of this.#running) {
      if (running.id !== id) continue;
      running.stopTimer = startResponseTimer(
        RESULT_MS,
        () => running.stop.abort(new DOMException(ENDED, "AbortError")),
      );
    }
  }

  async #respond(id: Id, request: ServerRequest, from?: Running): Promise<void> {
    if (!this.codec.hasSession) {
      throw new Error(
        `Cannot answer ${toShown(request.method)}: in this protocol revision, servers must not send requests`,
      );
    }
    const stop = new AbortController();
    // Answer a ping without waiting for a slot, because a ping tests whether the connection works.
    if (request.method === "ping") return await this.#reply(id, await this.#toAnswer(request, stop.signal, from));
    if (!this.budget.chargeAny((from ? [from] : [...this.#running]).map(({ asked }) => asked))) {
      const message = `Cannot answer ${toShown(request.method)}: ${this.budget.explain()}`;
      return await this.#reply(id, { error: { code: INTERNAL_ERROR, message } });
    }
    const characters = JSON.stringify(request.params).length;
    const isHeavy = this.#questions.size > 0 && this.#questionCharacters + characters > MAX_QUESTION_CHARACTERS;
    if (isHeavy || this.#slots.waiting >= MAX_WAITING) {
      const message = `Cannot answer ${
        toShown(request.method)
      }: too many requests are waiting for an answer; send fewer requests at the same time`;
      return await this.#reply(id, { error: { code: INTERNAL_ERROR, message } });
    }
    const question: Question = { id, stop, calls: this.#findCalls(request, from) };
    this.#questions.add(question);
    this.#questionCharacters += characters;
    try {
      await this.#slots.run(() => this.#answerQuestion(question, request, from), stop.signal);
    } catch {
      // The client stopped answering while the request waited for a slot.
    } finally {
      this.#questions.delete(question);
      this.#questionCharacters -= characters;
    }
    // Reply even though all requests that may need the answer have ended. If all messages share one channel, the client
    // only guesses these requests, and a handler that still needs the answer would wait forever.
    if (question.hasEnded && !from) await this.#reply(id, { error: { code: INTERNAL_ERROR, message: CALL_ENDED } });
  }

  async #answerQuestion({ id, stop: { signal } }: Question, asked: ServerRequest, from?: Running): Promise<void> {
    const answer = await this.#toAnswer({ ...asked, key: String(id) }, signal, from);
    const message = { jsonrpc: "2.0" as const, id, ...answer };
    if (signal.aborted) return;
    // Ignore network errors, because the running requests also fail if the server is gone.
    for (let retry = 0; !signal.aborted; retry++) {
      const options = { headers: this.codec.toHeaders(message), signal };
      const { status = 200 } = await this.channel.send(message, options).catch(() => FAILED);
      // Retry after status 429 and 5xx, because a handler on the server waits for the answer. Another instance may
      // accept the answer, or the same instance may accept the answer after a delay.
      const isRefused = status >= 500 || status === 429;
      if (!isRefused || !this.#repeatsAnswers || retry === ANSWER_RETRIES) return;
      await delay(ANSWER_RETRY_MS * 2 ** retry, { signal }).catch(() => {});
    }
  }

  /**
   * Returns the running requests that may need the answer to a server request. Returns none for a roots request that
   * did not arrive on the stream of a request, because the server may need roots without a request.
   */
  #findCalls({ method }: ServerRequest, from?: Running): Set<Running> {
    return new Set(from ? [from] : method === "roots/list" ? [] : this.#running);
  }

  /** Sends a reply, unless {@linkcode MAX_REPLYING} replies are already being sent. */
  async #reply(id: Id, reply: Pick<Message, "result" | "error">): Promise<void> {
    if (this.#replying >= MAX_REPLYING) return;
    const message = { jsonrpc: "2.0" as const, id, ...reply };
    const options = { headers: this.codec.toHeaders(message), signal: this.#aborted.signal };
    this.#replying++;
    await this.channel.send(message, options).catch(() => {});
    this.#replying--;
  }

  async #toAnswer(
    asked: ServerRequest,
    signal: AbortSignal,
    from?: Running,
  ): Promise<Pick<Message, "result" | "error">> {
    try {
      const { request, answer = this.#answer } = this.#findAsking(asked, from) ?? {};
      this.#answering++;
      try {
        return { result: await answer({ ...asked, request }, signal) };
      } finally {
        this.#answering--;
      }
    } catch (error) {
      if (isMcpError(error)) return { error: { code: error.code, message: error.message, data: error.data } };
      if (!signal.aborted) this.#onError(error);
      return { error: { code: INTERNAL_ERROR, message: `Cannot answer ${toShown(asked.method)}` } };
    }
  }

  /**
   * Finds the running request to which a server request belongs. Returns `undefined` if several requests are running.
   * Throws if at least one of them has its own callbacks, because the client could call the callbacks of the wrong
   * request.
   */
  #findAsking({ method }: ServerRequest, from?: Running): Running | undefined {
    if (from || method === "ping") return from;
    if (this.#isShared) {
      throw McpError.internalError(
        `Cannot answer ${
          toShown(method)
        }: it is not on the stream of a request, and several users share the connection; ` +
          'set share: "caller" of the proxy, or send it on the stream of the request',
      );
    }
    const running = [...this.#running];
    const able = running.filter(({ request }) => canAsk(request));
    const [first, ...others] = able.length ? able : running;
    if (!others.length) return first;
    if (![first, ...others].some(({ answer }) => answer)) return;
    const state = `${
      others.length + 1
    } requests are running, some with callbacks of their own, and any of these requests may need the answer`;
    throw McpError.internalError(
      `Cannot answer ${toShown(method)}: ${state}; send one request at a time, or open a connection for each request`,
    );
  }
}

/** Methods of the protocol that involve no handler, or a handler that cannot ask the user. */
const NOT_ASKING =
  /^(?:initialize|ping|logging\/setLevel|completion\/complete|(?:tools|prompts|resources(?:\/templates)?)\/list|resources\/(?:un)?subscribe)$/;

function canAsk({ method }: OriginatingRequest): boolean {
  return !NOT_ASKING.test(method);
}

function toRunning(
  { params, ...facts }: Pick<Running, "id" | "request" | "asked" | "answer" | "hasSession"> & {
    readonly params: Params;
  },
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

/** Returns the error to report for an error response that no request waits for. `start` begins the message. */
function toRejection({ code, message, data }: NonNullable<Message["error"]>, start: string, status?: number): McpError {
  return new McpError(code, `${start} the error ${toShown(message)} (${code})`, data, { status });
}

function toOutcome(id: Id, received: Awaited<ReturnType<Channel["send"]>>): Outcome {
  const { message, status, headers } = received;
  if (!message) {
    const state = describeResponse(received);
    const error = new McpError(0, `Cannot read the response: ${state}`, undefined, { status });
    throw withFailure(error, { kind: "unreadable", state });
  }
  const { error, result } = message;
  if (error) throw new McpError(error.code, error.message, error.data, { status });
  if (message.id !== id) {
    throw new Error(`Cannot use the response: its id is ${toShown(message.id)}, but the id of the request is ${id}`);
  }
  if (!isObject(result)) {
    throw new McpError(0, `Cannot read the result: ${JSON.stringify(result)} is not an object`, undefined, {
      status: status,
    });
  }
  return { result, status, headers };
}

function isProgress(params: Params): params is Params & Progress {
  const { progress, total, message } = params;
  return typeof progress === "number" && (total === undefined || typeof total === "number") &&
    (message === undefined || typeof message === "string");
}

// Tests whether a notification may belong to a request. If all messages share one channel, only progress notifications
// identify their request. Returns `undefined` for all other notifications, which may belong to any running request.
function mayBelong({ method, params }: Notification, { id, token }: Running): boolean | undefined {
  const meta = isObject(params._meta) ? params._meta : {};
  if (SUBSCRIPTION in meta) return meta[SUBSCRIPTION] === id;
  return method === "notifications/progress" ? params.progressToken === token : undefined;
}
