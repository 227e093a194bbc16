/**
 * The client's end of a connection, whatever it speaks and however it travels: ids, what is in flight, what was heard.
 *
 * @module
 */
import { INTERNAL_ERROR } from "../protocol/errors.ts";
import { type Id, isId, isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { Channel } from "./channel.ts";
import type { Message, Notification } from "./message.ts";
import { checkTimeout, startTimer } from "./delay.ts";
import { RpcError } from "./rpc_error.ts";

/** How far a request has come. */
export interface Progress {
  /** Grows with every report. */
  readonly progress: number;
  /** What `progress` grows to, if that is known. */
  readonly total?: number;
  /** For people. */
  readonly message?: string;
}

/** What goes along with one request. */
export interface RequestOptions {
  /** Told of progress; without it the server is not asked to report any. */
  readonly onProgress?: (progress: Progress) => void;
  /** Told of each notification that belongs to this request, or that cannot be told apart from one that does. */
  readonly onNotification?: (notification: Notification) => void;
  /** Cancels the request, in the way of its era and transport. */
  readonly signal?: AbortSignal;
  /** Milliseconds after which the request is cancelled; what the connection was given if nothing is said. */
  readonly timeoutMs?: number;
  /** HTTP headers beside, or in place of, those that belong to the request; `null` takes one away. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Fields of `_meta` beside those that belong to the request. */
  readonly meta?: Params;
}

/** What only a test says of a request. */
export interface TestRequestOptions extends RequestOptions {
  /** The request's id; the next number if nothing is said. */
  readonly id?: Id;
  /** Whether questions are answered and the request is sent again; if `false`, the first result is the result. */
  readonly rounds?: boolean;
}

/** A question of the server: elicitation, sampling or roots. */
export interface ServerRequest {
  /** Such as `elicitation/create`. */
  readonly method: string;
  /** What the server wants to know. */
  readonly params: Params;
}

/** Answers the server's questions with a result, or throws an `RpcError`. Aborted when no answer is wanted any more. */
export type RequestHandler = (request: ServerRequest, signal: AbortSignal) => unknown;

/** What a revision adds to messages. */
export interface Codec {
  toParams(params: Params): Params;
  toHeaders(message: Message): Readonly<Record<string, string>>;
  /**
   * Whether the two sides keep a session: then the server may ask, a stream may be read on, and a request is cancelled
   * by a message even if it has a stream of its own.
   */
  readonly hasSession: boolean;
}

/** The result of a request, with what came along. */
export interface Outcome {
  readonly result: Result;
  readonly status?: number;
  readonly headers?: Headers;
}

/** The client's end of a connection. */
export interface Rpc {
  readonly channel: Channel;
  /** How long a request may take if it does not say. */
  readonly timeoutMs: number;
  /** What is spoken; set when that is known. */
  codec: Codec;
  /** Told of every notification. */
  readonly listeners: Set<(notification: Notification) => void>;
  request(method: string, params: Params, options?: TestRequestOptions): Promise<Outcome>;
  notify(method: string, params?: Params): Promise<void>;
  /** Takes up a message that answers nothing. */
  receive(message: Message): void;
  /** Gives up everything in flight. */
  abort(reason?: unknown): void;
  /** Settles when the server knows what was cancelled; it is not waited for long. */
  settle(): Promise<void>;
}

/** What a rpc is made of. */
export interface RpcOptions {
  readonly codec: Codec;
  readonly answer: RequestHandler;
  readonly timeoutMs: number;
  open(onMessage: (message: Message) => void): Channel;
  /** Told of what goes wrong where nobody waits for it. */
  readonly onError: (error: unknown) => void;
}

interface Running {
  readonly id: Id;
  readonly token: unknown;
  readonly deliver: (notification: Notification) => void;
  readonly stop: AbortController;
  /** Set while the result of a request that the server has cancelled is waited for. */
  stopTimer?: () => void;
}

/** Field of `_meta` that names the subscription a notification belongs to. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

const ENDED = "Cannot get the answer: the server cancelled the request";
/** Milliseconds for a server to be told what is cancelled, when the connection ends. */
const SETTLE_MS = 1000;
/** Milliseconds for the result of a request that the server has cancelled. */
const RESULT_MS = 200;

/** A connection's end over a channel. */
export function createRpc({ codec, answer, timeoutMs: usualMs, open, onError }: RpcOptions): Rpc {
  const running = new Set<Running>();
  const listeners = new Set<(notification: Notification) => void>();
  const questions = new Map<Id, AbortController>();
  const cancelling = new Set<Promise<void>>();
  const channel = open(receive);
  const rpc: Rpc = { channel, timeoutMs: usualMs, codec, listeners, request, notify, receive, abort, settle };
  let lastId = 0;

  function receive(message: Message, from?: Running): void {
    const { id, method, params = {} } = message;
    // An answer that nobody waits for is late: its request was cancelled.
    if (method === undefined) return;
    if (isId(id)) return void respond(id, { method, params }).catch(onError);
    const notification = { method, params };
    if (method === "notifications/cancelled") receiveCancelled(params.requestId);
    const belongs = from ? [from] : [...running].filter((each) => mayBelong(notification, each));
    for (const deliver of [...listeners, ...belongs.map(({ deliver }) => deliver)]) {
      try {
        deliver(notification);
      } catch (error) {
        onError(error);
      }
    }
  }

  // In a session the server takes back a question; without one it ends a subscription, the result of which may follow.
  function receiveCancelled(id: unknown): void {
    if (rpc.codec.hasSession) return isId(id) ? questions.get(id)?.abort() : undefined;
    for (const exchange of running) {
      if (exchange.id !== id) continue;
      exchange.stopTimer = startTimer(RESULT_MS, () => exchange.stop.abort(new DOMException(ENDED, "AbortError")));
    }
  }

  async function respond(id: Id, request: ServerRequest): Promise<void> {
    if (!rpc.codec.hasSession) {
      throw new Error(`Cannot answer ${request.method}: this revision has no requests from the server`);
    }
    const stop = new AbortController();
    questions.set(id, stop);
    const message = { jsonrpc: "2.0" as const, id, ...await toAnswer(request, stop.signal) };
    questions.delete(id);
    if (stop.signal.aborted) return;
    // The server may be gone, or may not wait any longer; whoever made the request then hears of that.
    await channel.send(message, { headers: rpc.codec.toHeaders(message) }).catch(() => {});
  }

  async function toAnswer(request: ServerRequest, signal: AbortSignal): Promise<Pick<Message, "result" | "error">> {
    try {
      return { result: await answer(request, signal) };
    } catch (error) {
      if (error instanceof RpcError) return { error: { code: error.code, message: error.message, data: error.data } };
      if (!signal.aborted) onError(error);
      return { error: { code: INTERNAL_ERROR, message: `Cannot answer ${request.method}` } };
    }
  }

  async function request(method: string, given: Params, options: TestRequestOptions = {}): Promise<Outcome> {
    const { id = ++lastId, signal, timeoutMs = usualMs, headers, onProgress } = options;
    const own = isObject(given._meta) ? given._meta : undefined;
    const meta = onProgress ? { progressToken: id, ...options.meta } : options.meta;
    const { codec } = rpc;
    const params = codec.toParams(own || meta ? { ...given, _meta: { ...own, ...meta } } : given);
    const message = { jsonrpc: "2.0" as const, id, method, params };
    const token = isObject(params._meta) ? params._meta.progressToken : undefined;
    const stop = new AbortController();
    const { promise: gaveUp, reject } = Promise.withResolvers<never>();
    let isGivenUp = false;

    function giveUp(reason: unknown): void {
      isGivenUp = true;
      reject(reason);
      // A handshake must not be cancelled, and where a request has a stream of its own, closing that says it all.
      if (method === "initialize" || (channel.openStream && !codec.hasSession)) return stop.abort(reason);
      const why = reason instanceof Error ? reason.message : String(reason);
      const notifying = notify("notifications/cancelled", { requestId: id, reason: why }).catch(() => {}).finally(
        () => {
          cancelling.delete(notifying);
          stop.abort(reason);
        },
      );
      cancelling.add(notifying);
    }

    function deliver(notification: Notification): void {
      options.onNotification?.(notification);
      const { method, params } = notification;
      if (method === "notifications/progress" && params.progressToken === token && isProgress(params)) {
        onProgress?.(params);
      }
    }

    checkTimeout(timeoutMs, "timeoutMs");
    signal?.throwIfAborted();
    const onAbort = () => giveUp(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    const late = () =>
      giveUp(new DOMException(`Cannot finish ${method}: no answer in ${timeoutMs} ms`, "TimeoutError"));
    const stopTimer = startTimer(timeoutMs, late);
    const exchange: Running = { id, token, deliver, stop };
    running.add(exchange);
    const sending = channel.send(message, {
      headers: { ...codec.toHeaders(message), ...headers },
      signal: stop.signal,
      onMessage: (message) => receive(message, exchange),
      resumes: () => codec.hasSession && !isGivenUp,
    });
    sending.catch(() => {}).finally(() => {
      exchange.stopTimer?.();
      running.delete(exchange);
    });
    try {
      return toOutcome(id, await Promise.race([sending, gaveUp]));
    } finally {
      stopTimer();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async function notify(method: string, params?: Params): Promise<void> {
    const message = { jsonrpc: "2.0" as const, method, params };
    const answer = await channel.send(message, { headers: rpc.codec.toHeaders(message) });
    const { status, text, message: { error } = {} } = answer;
    if (status === undefined || (status >= 200 && status < 300 && !error)) return;
    throw new RpcError(error?.code ?? 0, error?.message ?? `Cannot notify: got ${status} ${text}`, error?.data, status);
  }

  function abort(reason: unknown = new DOMException("Cannot go on: the connection was closed", "AbortError")): void {
    for (const { stop } of [...running]) stop.abort(reason);
    for (const stop of questions.values()) stop.abort(reason);
  }

  async function settle(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const stopTimer = startTimer(SETTLE_MS, late.resolve);
    await Promise.race([Promise.all(cancelling), late.promise]);
    stopTimer();
  }

  return rpc;
}

function toOutcome(id: Id, { message, status, headers, text }: Awaited<ReturnType<Channel["send"]>>): Outcome {
  if (!message) {
    throw new RpcError(0, `Cannot read the answer: got ${status} ${text?.slice(0, 500)}`.trim(), undefined, status);
  }
  const { error, result } = message;
  if (error) throw new RpcError(error.code, error.message, error.data, status);
  if (message.id !== id) throw new Error(`Cannot take the answer to ${message.id}: the request was ${id}`);
  if (!isObject(result)) throw new RpcError(0, `Cannot read the result: ${JSON.stringify(result)}`, undefined, status);
  return { result, status, headers };
}

function isProgress(params: Params): params is Params & Progress {
  const { progress, total, message } = params;
  return typeof progress === "number" && (total === undefined || typeof total === "number") &&
    (message === undefined || typeof message === "string");
}

// Where all messages share one channel, some say what they belong to; the rest may belong to anything that runs.
function mayBelong({ method, params }: Notification, { id, token }: Running): boolean {
  const meta = isObject(params._meta) ? params._meta : {};
  if (SUBSCRIPTION in meta) return meta[SUBSCRIPTION] === id;
  return method === "notifications/progress" ? params.progressToken === token : true;
}
