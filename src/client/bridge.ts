/**
 * Forwards the messages of one client to a server over HTTP, for clients that do not support HTTP or cannot sign in.
 */
import { deadline, delay } from "../core/kit/deadline.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";
import { toMessage } from "../core/kit/error_state.ts";
import { HEADER_MISMATCH, INTERNAL_ERROR, isMcpError, isRemoteError, McpError } from "../core/protocol/errors.ts";
import { type Id, isId, isObject } from "../core/protocol/jsonrpc.ts";
import { AnswerBudget, type Asked, MAX_ANSWERS } from "./answer_budget.ts";
import { ForwardedQuestions } from "./bridge_questions.ts";
import { BridgeSession } from "./bridge_session.ts";
import type { Channel, SendResult } from "./channel.ts";
import { createSender, type HttpSender } from "./client_auth.ts";
import { HttpChannel, type HttpChannelOptions } from "./http_channel.ts";
import { lineChannel } from "./line_channel.ts";
import { notifyLocks } from "./lock.ts";
import { readList } from "./lock_file.ts";
import { type Message, readForwarded } from "./message.ts";
import { ModernCodec } from "./modern.ts";
import { type ClientMiddleware, type ClientRequest, runMiddleware } from "./request_middleware.ts";
import { describeResponse } from "./response_text.ts";
import { sseTransport } from "./sse_transport.ts";
import { explain, toShown } from "./shown.ts";
import type { TargetOptions } from "./target.ts";

export interface BridgeOptions extends Pick<TargetOptions, "auth" | "headers" | "fetch"> {
  readonly url: string;
  /** Sends a message to the client. Resolves when the client is ready for the next message, and never rejects. */
  readonly write: (message: Message) => Promise<void>;
  /** Called with problems that are not reported to the client. */
  readonly onWarning: (text: string) => void;
  /** Middleware around requests, such as a lock. It sees no questions and no notifications. */
  readonly use?: readonly ClientMiddleware[];
}

/**
 * Maximum number of open requests from the client. The bridge rejects further requests instead of pausing the input,
 * because the next message may be an answer that an open request waits for. The maximum is below 256, because Bun sends
 * at most 256 HTTP requests at the same time.
 */
const MAX_PENDING = 200;

const NOBODY = { name: "bridge", version: "0" };
const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

/** Maximum milliseconds to wait until the server has received a notification, before the next message. */
const NOTIFY_MS = 1000;
/** Milliseconds that ending the session may take. */
const END_MS = 1000;
/** Milliseconds before the bridge reopens a lost stream. The delay doubles with each consecutive failure. */
const REOPEN_MS = 1000;
const MAX_REOPEN_MS = 30_000;

interface Pending {
  readonly stop: AbortController;
  readonly asked: Asked;
}

export class Bridge {
  readonly #options: BridgeOptions;
  readonly #http: HttpChannelOptions & { readonly sender: HttpSender };
  #channel: Channel;
  /** Used only to compute headers, because the bridge forwards messages unchanged. */
  readonly #codec = new ModernCodec("", { info: NOBODY, capabilities: {} });
  readonly #pending = new Map<Id, Pending>();
  readonly #budget = new AnswerBudget(MAX_ANSWERS);
  readonly #questions = new ForwardedQuestions(this.#budget);
  #running = 0;
  readonly #closed = new AbortController();
  #session: BridgeSession | undefined;
  #renewing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: BridgeOptions) {
    const { url, auth, headers, fetch = (request) => globalThis.fetch(request) } = options;
    this.#options = options;
    this.#http = { url, sender: createSender(url, fetch, auth), headers, read: readForwarded };
    this.#channel = new HttpChannel(this.#http);
  }

  /** Resolves when the bridge is ready for the next line. */
  async receive(line: string): Promise<void> {
    if (!line.trim()) return;
    let messages: readonly Message[];
    try {
      messages = readForwarded(line);
    } catch {
      const error = {
        code: -32700,
        message: "Cannot read the message: the line is not a JSON-RPC 2.0 message; send each message in one line",
      };
      return await this.#options.write({ jsonrpc: "2.0", id: null, error });
    }
    for (const message of messages) await this.#receive(message);
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#closed.abort(new DOMException("The client has closed the connection", "AbortError"));
    const session = this.#session;
    if (session?.id !== undefined) {
      const signal = AbortSignal.timeout(END_MS);
      await this.#channel.endSession?.({ headers: session.headers, signal }).catch(() => {});
    }
    await this.#channel.close();
  }

  async #receive(message: Message): Promise<void> {
    if (message.method === undefined || message.id === undefined) {
      // Wait until a notification has been sent, so that notifications arrive in order. Limit the time, because a
      // server that does not respond must not block later messages.
      return await deadline(this.#notify(message), { ms: NOTIFY_MS, onTimeout: () => {} });
    }
    if (!isId(message.id)) return;
    if (this.#running >= MAX_PENDING) {
      const error = new Error(
        `Cannot forward ${message.method}: ${MAX_PENDING} requests are open; wait for their responses`,
      );
      return await this.#options.write(this.#toFailure(message.id, error));
    }
    // Do not await the request, because requests run concurrently.
    this.#request(message, message.id);
  }

  /** Forwards a notification, or the response to a request from the server. */
  async #notify(message: Message): Promise<void> {
    const { method, params } = message;
    const isOfSession = toRevision(message) === undefined && this.#session !== undefined;
    if (method === "notifications/cancelled" && isId(params?.requestId) && !isOfSession) {
      // Without a session, the bridge cancels a request by closing the request's stream.
      return this.#pending.get(params.requestId)?.stop.abort(
        new DOMException("The client has cancelled the request", "AbortError"),
      );
    }
    if (method === "notifications/initialized" && this.#session) this.#listen(this.#session);
    try {
      const received = await this.#channel.send(message, {
        headers: this.#toHeaders(message),
        signal: this.#closed.signal,
      });
      if (received.status !== undefined && received.status >= 400) throw new Error(describeResponse(received));
      // Stop waiting for the response, because the server need not respond to a cancelled request.
      if (method === "notifications/cancelled" && isId(params?.requestId)) {
        this.#pending.get(params.requestId)?.stop.abort();
      }
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#warn(`Cannot forward ${method ?? "a response"}`, error);
    }
  }

  async #request(message: Message, id: Id): Promise<void> {
    const stop = new AbortController();
    const pending: Pending = { stop, asked: { count: 0 } };
    this.#pending.set(id, pending);
    this.#budget.renew();
    this.#running++;
    const signal = AbortSignal.any([stop.signal, this.#closed.signal]);
    try {
      const reply = await this.#exchange(message, signal);
      await this.#options.write({ ...reply, id });
    } catch (error) {
      if (!signal.aborted) await this.#options.write(this.#toFailure(id, error));
    } finally {
      this.#running--;
      // Delete the entry only if it belongs to this request, because a faulty client may have sent another request with
      // the same id.
      if (this.#pending.get(id) === pending) this.#pending.delete(id);
    }
  }

  async #exchange(message: Message, signal: AbortSignal): Promise<Message> {
    const { use = [] } = this.#options;
    if (!use.length) return await this.#exchangeAny(message, signal);
    const { method = "", params = {}, id } = message;
    const send = async (sent: ClientRequest) => {
      const isOwn = sent.method !== method || sent.params !== params;
      const { error, result } = await (isOwn ? this.#ask(sent, signal) : this.#exchangeAny(message, signal));
      if (error) throw new McpError(error.code, error.message, error.data, {});
      return Object(result);
    };
    return { jsonrpc: "2.0", id, result: await runMiddleware(use, { method, params, headers: {}, signal }, send) };
  }

  /** Sends a request of the bridge itself. */
  async #ask({ method, params }: Pick<ClientRequest, "method" | "params">, signal: AbortSignal): Promise<Message> {
    const message: Message = { jsonrpc: "2.0", id: crypto.randomUUID(), method, params };
    return toRevision(message) === undefined
      ? await this.#exchangeInSession(message, signal)
      : this.#read(await this.#send(message, signal), message);
  }

  async #exchangeAny(message: Message, signal: AbortSignal): Promise<Message> {
    if (toRevision(message) !== undefined) return await this.#exchangeAlone(message, signal);
    if (message.method === "initialize") return await this.#initialize(message, signal);
    return await this.#exchangeInSession(message, signal);
  }

  /**
   * Sends a request of revision 2026-07-28 or later. If the server rejects a call because of missing headers, lists the
   * tools, and sends the call again with the headers for its arguments.
   */
  async #exchangeAlone(message: Message, signal: AbortSignal): Promise<Message> {
    return await this.#questions.forward(message, () => this.#exchangeOnce(message, signal));
  }

  async #exchangeOnce(message: Message, signal: AbortSignal): Promise<Message> {
    const reply = this.#read(await this.#send(message, signal), message);
    if (message.method === "tools/list") this.#learn(reply);
    if (message.method !== "tools/call" || reply.error?.code !== HEADER_MISMATCH) return reply;
    const before = JSON.stringify(this.#toHeaders(message));
    await this.#findTool(message, signal).catch((error) => {
      // The client gets the server's error if the list exceeds a limit.
      if (!(error instanceof RangeError)) throw error;
    });
    if (JSON.stringify(this.#toHeaders(message)) === before) return reply;
    return this.#read(await this.#send(message, signal), message);
  }

  async #findTool({ params }: Message, signal: AbortSignal): Promise<void> {
    const pages = readList("tools", async (method, page) => {
      const { error, result } = await this.#ask({ method, params: { ...page, _meta: params?._meta } }, signal);
      return error ? {} : Object(result);
    });
    for await (const page of pages) if (this.#learn({ jsonrpc: "2.0", result: page }).includes(params?.name)) return;
  }

  /** Remembers which arguments a call must repeat in headers. Returns the names of the listed tools. */
  #learn({ result }: Message): readonly unknown[] {
    const tools = isObject(result) && Array.isArray(result.tools) ? result.tools.filter(isObject) : [];
    for (const tool of tools) {
      try {
        this.#codec.learn(tool);
      } catch {
        // Ignore the tool: the client must not use a tool whose arguments cannot be repeated in headers.
      }
    }
    return tools.map(({ name }) => name);
  }

  async #initialize(message: Message, signal: AbortSignal): Promise<Message> {
    let received = await this.#send(message, signal);
    // Servers of revision 2024-11-05 have an event stream at this URL, and accept messages at another URL.
    if (!received.message && [400, 404, 405].includes(received.status ?? 0) && await this.#openLines(signal)) {
      received = await this.#send(message, signal);
    }
    const reply = this.#read(received, message);
    if (reply.error === undefined) this.#session = new BridgeSession(message, reply, received.headers);
    return reply;
  }

  /**
   * Switches to the transport of revision 2024-11-05. Returns `false` if the server does not support this transport.
   */
  async #openLines(signal: AbortSignal): Promise<boolean> {
    const open = await sseTransport({ ...this.#http, signal });
    if (!open) return false;
    const onMessage = (sent: Message) => this.#pass(sent);
    const onBroken = (error: unknown) => this.#warn("Cannot read a message", error);
    const lines = lineChannel({ open, onMessage, onBroken, read: readForwarded });
    const http = this.#channel;
    this.#channel = lines;
    lines.ended?.then(() => {
      // After the stream has ended, send the next `initialize` to the configured URL.
      if (this.#channel === lines) this.#channel = http;
      this.#session?.markLost();
    });
    return true;
  }

  /** If the server no longer knows the session, sends the request again in a new session. */
  async #exchangeInSession(message: Message, signal: AbortSignal): Promise<Message> {
    await this.#renewing;
    const session = this.#session;
    if (session?.isLost) await this.#renewOnce(session);
    let received = await this.#send(message, signal);
    if (session?.isLostBy(received)) {
      await this.#renewOnce(session);
      received = await this.#send(message, signal);
    }
    const reply = this.#read(received, message);
    this.#session?.remember(message, reply);
    return reply;
  }

  async #send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const pending = isId(message.id) ? this.#pending.get(message.id) : undefined;
    const onMessage = (sent: Message) => this.#pass(sent, pending);
    return await this.#channel.send(message, { headers: this.#toHeaders(message), signal, onMessage });
  }

  #read(received: SendResult, message: Message): Message {
    return readReply(received, message, this.#options.url);
  }

  /**
   * Forwards a request or notification from the server to the client. Drops responses. A response arrives here only if
   * its request was cancelled. `from` is the client's request on whose stream the message has arrived.
   */
  #pass(message: Message, from?: Pending): Promise<void> | undefined {
    const { id, method } = message;
    if (method === undefined) return;
    notifyLocks(this.#options.use, { method });
    if (id !== undefined && !isId(id)) {
      return void this.#options.onWarning(
        `Cannot forward ${toShown(method)}: its id is neither a string nor an integer`,
      );
    }
    const running = from ? [from] : [...this.#pending.values()];
    if (isId(id) && method !== "ping" && !this.#budget.chargeAny(running.map(({ asked }) => asked))) {
      return this.#reject(id, `Cannot forward ${toShown(method)}: ${this.#budget.explain()}`);
    }
    return method === "notifications/tasks" ? this.#passTask(message) : this.#options.write(message);
  }

  /** Forwards the new state of a task, unless the state has too many requests. */
  async #passTask(message: Message): Promise<void> {
    try {
      await this.#questions.countNotified(message);
    } catch (error) {
      return this.#options.onWarning(toMessage(error));
    }
    await this.#options.write(message);
  }

  /** Answers a request from the server with an error. The server waits for its next message until it has the answer. */
  async #reject(id: Id, message: string): Promise<void> {
    const reply: Message = { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message } };
    const sending = this.#channel.send(reply, { headers: this.#toHeaders(reply), signal: this.#closed.signal });
    await deadline(sending.catch(() => {}), { ms: NOTIFY_MS, onTimeout: () => {} });
  }

  /** Replaces `lost` with a new session, unless another request has already done so. */
  #renewOnce(lost: BridgeSession): Promise<void> {
    if (lost !== this.#session) return this.#renewing ?? Promise.resolve();
    return this.#renewing ??= this.#renew(lost, this.#closed.signal).finally(() => this.#renewing = undefined);
  }

  /**
   * Begins a new session without involving the client, restores the session's log level and subscriptions, and notifies
   * the client that all lists may have changed.
   */
  async #renew(lost: BridgeSession, signal: AbortSignal): Promise<void> {
    const reply = await this.#exchange(lost.initialize, signal);
    const session = this.#session;
    if (reply.error || !session) throw new Error(`Cannot begin a new session: ${reply.error?.message}`);
    await this.#notify({ jsonrpc: "2.0", method: "notifications/initialized" });
    for (const message of lost.settings) {
      const again = { ...message, id: crypto.randomUUID() };
      session.remember(message, this.#read(await this.#send(again, signal), again));
    }
    this.#options.onWarning("The server no longer knows the session, so the bridge has begun a new session.");
    for (const kind of session.changingLists) {
      this.#pass({ jsonrpc: "2.0", method: `notifications/${kind}/list_changed` });
    }
  }

  /**
   * Reads the server's standalone stream until the session ends. The stream carries messages that belong to no request.
   * Returns early if the server does not have this stream.
   */
  async #listen(session: BridgeSession): Promise<void> {
    const isOver = () => this.#closed.signal.aborted || this.#session !== session;
    for (let waitMs = REOPEN_MS; !isOver();) {
      try {
        if (session.isLost) return await this.#renewOnce(session);
        const onMessage = (sent: Message) => this.#pass(sent);
        const signal = AbortSignal.any([this.#closed.signal, session.over]);
        const stream = await this.#channel.openStream?.({ headers: session.headers, signal, onMessage });
        if (stream) waitMs = REOPEN_MS;
        const status = await stream?.ended;
        if (status === undefined || (!session.isLostBy({ status }) && isRefusal(status))) return;
      } catch (error) {
        const status = isObject(error) && typeof error.status === "number" ? error.status : 0;
        if (!session.isLostBy({ status }) && isRefusal(status)) return;
      }
      await delay(waitMs, { signal: this.#closed.signal }).catch(() => {});
      waitMs = Math.min(waitMs * 2, MAX_REOPEN_MS);
    }
  }

  #toHeaders(message: Message): Readonly<Record<string, string | null>> {
    const revision = toRevision(message);
    if (revision === undefined) return message.method === "initialize" ? {} : this.#session?.headers ?? {};
    this.#codec.version = revision;
    return this.#codec.toHeaders(message);
  }

  #toFailure(id: Id, error: unknown): Message {
    const reason = toMessage(error);
    // Errors of the server, and of middleware, are passed on.
    if ((isMcpError(error) || isRemoteError(error)) && error.code) {
      return { jsonrpc: "2.0", id, error: { code: error.code, message: reason, data: error.data } };
    }
    // The message of a runtime's error, such as the error for a broken connection, does not name the server.
    const isOfRuntime = error instanceof TypeError || hasErrorCode(error);
    const message = isOfRuntime ? `Cannot use ${this.#options.url}: ${reason}` : reason;
    return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message } };
  }

  #warn(action: string, error: unknown): void {
    this.#options.onWarning(explain(action, error));
  }
}

/** @throws {Error} if the server did not send a response to the request. */
function readReply(received: SendResult, { id, method }: Message, url: string): Message {
  const { message } = received;
  if (!message) throw new Error(`Cannot use ${url}: ${describeResponse(received)}`);
  // A server that could not read the request responds with an error without an id.
  const isOwn = message.id === id || (message.error !== undefined && (message.id ?? null) === null);
  if (message.method === undefined && isOwn) return message;
  throw new Error(
    `Cannot use ${url}: the server responded to ${method} with a message that is not a response to this request`,
  );
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

/** Messages of revisions before 2026-07-28 do not contain the revision. */
function toRevision({ params }: Message): string | undefined {
  const meta = params?._meta;
  const revision = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined;
  return typeof revision === "string" ? revision : undefined;
}
