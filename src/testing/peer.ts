/**
 * The client's end of a connection, whatever it speaks and however it travels: ids, what is in flight, what was heard.
 *
 * @module
 */
import { METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { type Id, isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { Channel } from "./channel.ts";
import type { Message } from "./message.ts";
import { RpcError } from "./rpc_error.ts";
import type { Filter, Notification, Subscription } from "./subscription.ts";

/** What goes along with one request. */
export interface RequestOptions {
  /** Told of each notification that belongs to this request, or that cannot be told apart from one that does. */
  readonly onNotification?: (notification: Notification) => void;
  /** Cancels the request, in the way of its era and transport. */
  readonly signal?: AbortSignal;
  /** Milliseconds after which the request is cancelled; 10,000 if nothing is said. */
  readonly timeoutMs?: number;
  /** HTTP headers beside, or in place of, those that belong to the request; `null` takes one away. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Fields of `_meta` beside those that belong to the request, such as `progressToken`. */
  readonly meta?: Params;
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

/** Answers the server's questions with a result, or throws an `RpcError`. */
export type AnswerServer = (request: ServerRequest) => unknown;

/** What a revision adds to messages. */
export interface Speech {
  toParams(params: Params): Params;
  toHeaders(message: Message): Readonly<Record<string, string>>;
  /** Whether a request with a stream of its own is cancelled by a message all the same. */
  readonly saysCancelled: boolean;
}

/** The result of a request, with what came along. */
export interface Outcome {
  readonly result: Result;
  readonly status?: number;
  readonly headers?: Headers;
}

/** The client's end of a connection. */
export interface Peer {
  readonly channel: Channel;
  readonly received: readonly Notification[];
  /** Told of every notification. */
  readonly listeners: Set<(notification: Notification) => void>;
  request(method: string, params: Params, options?: RequestOptions): Promise<Outcome>;
  notify(method: string, params?: Params): Promise<void>;
  /** Takes up a message that answers nothing. */
  hear(message: Message): void;
  /** Gives up everything in flight. */
  abort(): void;
}

/** A client of one era at its end of a connection. */
export interface Client {
  /** What the handshake gave, where there is one. */
  readonly handshake?: Result;
  readonly sessionId?: string;
  request(method: string, params: Params, options?: RequestOptions): Promise<Outcome>;
  subscribe(filter: Filter): Promise<Subscription>;
  close(): Promise<void>;
}

interface Running {
  readonly id: Id;
  readonly token: unknown;
  readonly tell?: (notification: Notification) => void;
  readonly stop: AbortController;
}

/** Field of `_meta` that names the subscription a notification belongs to. */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** A connection's end over a channel. */
export function createPeer(
  speech: Speech,
  options: { readonly answer?: AnswerServer; open(hear: (message: Message) => void): Channel },
): Peer {
  const running = new Set<Running>();
  const received: Notification[] = [];
  const listeners = new Set<(notification: Notification) => void>();
  const channel = options.open(hear);
  let lastId = 0;

  function hear(message: Message, from?: Running): void {
    const { id, method, params = {} } = message;
    // An answer that nobody waits for is late: its request was cancelled.
    if (method === undefined) return;
    if (id !== undefined && id !== null) return void answer(id, { method, params });
    const notification = { method, params };
    received.push(notification);
    for (const listener of [...listeners]) listener(notification);
    for (const each of from ? [from] : [...running]) {
      if (from || mayBelong(notification, each)) each.tell?.(notification);
    }
  }

  async function answer(id: Id, request: ServerRequest): Promise<void> {
    const message = { jsonrpc: "2.0" as const, id, ...await toAnswer(request) };
    // The server may be gone, or may not wait any longer; whoever made the request then hears of that.
    await channel.send(message, { headers: speech.toHeaders(message) }).catch(() => {});
  }

  async function toAnswer(request: ServerRequest): Promise<Pick<Message, "result" | "error">> {
    try {
      if (!options.answer) {
        throw new RpcError(METHOD_NOT_FOUND, `Cannot answer ${request.method}: connect has no \`answer\``);
      }
      return { result: await options.answer(request) };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      const { code, message, data } = error;
      return { error: { code, message, data } };
    }
  }

  async function request(method: string, given: Params, options: RequestOptions = {}): Promise<Outcome> {
    const { id = ++lastId, signal, timeoutMs = 10_000, headers, meta, onNotification: tell } = options;
    const own = isObject(given._meta) ? given._meta : undefined;
    const params = speech.toParams(own || meta ? { ...given, _meta: { ...own, ...meta } } : given);
    const message = { jsonrpc: "2.0" as const, id, method, params };
    const stop = new AbortController();
    const { promise: gaveUp, reject } = Promise.withResolvers<never>();
    let isGivenUp = false;

    function giveUp(reason: unknown): void {
      isGivenUp = true;
      reject(reason);
      if (channel.visit && !speech.saysCancelled) return stop.abort(reason);
      const why = reason instanceof Error ? reason.message : String(reason);
      // The exchange stays open: if the server answers all the same, the transcript shows it.
      notify("notifications/cancelled", { requestId: id, reason: why }).catch(() => {}).finally(() => {
        if (!channel.visit) stop.abort(reason);
      });
    }

    signal?.throwIfAborted();
    const onAbort = () => giveUp(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    const late = () =>
      giveUp(new DOMException(`Cannot finish ${method}: no answer in ${timeoutMs} ms`, "TimeoutError"));
    const timer = timeoutMs === Infinity ? undefined : setTimeout(late, timeoutMs);
    const exchange: Running = {
      id,
      token: isObject(params._meta) ? params._meta.progressToken : undefined,
      tell,
      stop,
    };
    running.add(exchange);
    const sending = channel.send(message, {
      headers: { ...speech.toHeaders(message), ...headers },
      signal: stop.signal,
      hear: (message) => hear(message, exchange),
      resumes: () => !isGivenUp,
    });
    sending.catch(() => {}).finally(() => running.delete(exchange));
    try {
      return toOutcome(id, await Promise.race([sending, gaveUp]));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async function notify(method: string, params?: Params): Promise<void> {
    const message = { jsonrpc: "2.0" as const, method, params };
    const answer = await channel.send(message, { headers: speech.toHeaders(message) });
    const { status, text, message: { error } = {} } = answer;
    if (status === undefined || (status === 202 && !text && !error)) return;
    throw new RpcError(error?.code ?? 0, error?.message ?? `Cannot notify: got ${status} ${text}`, error?.data, status);
  }

  function abort(): void {
    const reason = new DOMException("Cannot go on: the connection was closed", "AbortError");
    for (const { stop } of [...running]) stop.abort(reason);
  }

  return { channel, received, listeners, request, notify, hear, abort };
}

function toOutcome(id: Id, { message, status, headers, text }: Awaited<ReturnType<Channel["send"]>>): Outcome {
  if (!message) throw new RpcError(0, `Cannot read the answer: got ${status} ${text}`, undefined, status);
  const { error, result } = message;
  if (error) throw new RpcError(error.code, error.message, error.data, status);
  if (message.id !== id) throw new Error(`Cannot take the answer to ${message.id}: the request was ${id}`);
  if (!isObject(result)) throw new RpcError(0, `Cannot read the result: ${JSON.stringify(result)}`, undefined, status);
  return { result, status, headers };
}

// Where all messages share one channel, some say what they belong to; the rest may belong to anything that runs.
function mayBelong({ method, params }: Notification, { id, token }: Running): boolean {
  const meta = isObject(params._meta) ? params._meta : {};
  if (SUBSCRIPTION in meta) return meta[SUBSCRIPTION] === id;
  return method === "notifications/progress" ? params.progressToken === token : true;
}
