/**
 * Passes the messages of one client on to a server over HTTP, unchanged, for clients that have no HTTP or cannot sign in.
 *
 * @module
 */
import { INTERNAL_ERROR } from "../protocol/errors.ts";
import { type Id, isId, isObject } from "../protocol/jsonrpc.ts";
import { startTimer } from "../kit/timer.ts";
import { LineSplitter } from "../transports/stdio/line_splitter.ts";
import type { Channel, SendResult } from "./channel.ts";
import { type ClientAuth, createSender } from "./client_auth.ts";
import { clientExtension } from "./extension.ts";
import { httpChannel } from "./http_channel.ts";
import { type Message, readMessages } from "./message.ts";
import { ModernCodec } from "./modern.ts";
import { describeResponse } from "./response_text.ts";

/** How a bridge connects. */
export interface BridgeOptions {
  /** The URL of the server. */
  readonly url: string;
  readonly auth?: ClientAuth;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Sends a message to the client. Settles when it takes more. */
  readonly write: (message: Message) => Promise<unknown>;
  /** Called with what the client does not learn otherwise. */
  readonly onWarning: (text: string) => void;
}

/**
 * Requests that a client may have at once. The bridge cannot wait, because answers to questions may come next. Bun sends at
 * most 256 requests at once.
 */
const MAX_PENDING = 200;
/** Bytes of a line of the client. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

const NOBODY = { name: "bridge", version: "0" };

/** The methods of official extensions that name what they are about in a header. */
const SUBJECTS = clientExtension({
  id: "io.modelcontextprotocol/tasks",
  subjects: { "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" },
});

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

/** Milliseconds in which a server should accept a notification. */
const NOTIFY_MS = 1000;
/** Milliseconds to end a session. */
const END_MS = 1000;

/** A session of a revision before 2026-07-28. */
interface Session {
  readonly id?: string;
  /** The agreed revision. */
  readonly version: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** Where the lines of the client come from and go to. */
export interface BridgeLines {
  readonly input: ReadableStream<Uint8Array>;
  /** Writes bytes. Settles when it accepts more. */
  readonly output: (bytes: Uint8Array) => Promise<unknown>;
  /** Stops the bridge. */
  readonly signal: AbortSignal;
}

/** Bridges a client over lines until its input ends, or the signal aborts. */
export async function bridgeLines(
  { input, output, signal }: BridgeLines,
  options: Omit<BridgeOptions, "write">,
): Promise<void> {
  const encoder = new TextEncoder();
  let written: Promise<unknown> = Promise.resolve();
  const write = (message: Message) => {
    written = written.then(() => output(encoder.encode(`${JSON.stringify(message)}\n`)));
    // A client that reads no more has also ended its input.
    written.catch(() => {});
    return written;
  };
  const bridge = new Bridge({ ...options, write });
  const splitter = new LineSplitter(MAX_LINE_BYTES);
  const reader = input.getReader();
  const stop = () => {
    reader.cancel().catch(() => {});
    void bridge.close();
  };
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  for (let isDone = false; !isDone;) {
    const { done, value } = await reader.read();
    isDone = done;
    for (const line of done ? splitter.end() : splitter.push(value)) {
      await bridge.receive("text" in line ? line.text : "");
      if ("problem" in line) options.onWarning(`A line was left out: it is ${toProblem(line.problem)}.`);
    }
  }
  await bridge.close();
  await settleWithin(written.catch(() => {}), END_MS);
}

async function settleWithin(work: Promise<unknown>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const stopTimer = startTimer(ms, late.resolve);
  await Promise.race([work, late.promise]);
  stopTimer();
}

function toProblem(problem: "long" | "encoding"): string {
  return problem === "long" ? `longer than ${MAX_LINE_BYTES} bytes` : "not UTF-8";
}

/** The bridge of one client. */
class Bridge {
  readonly #options: BridgeOptions;
  readonly #channel: Channel;
  /** Only for the headers: the messages stay as they are. */
  readonly #codec = new ModernCodec("", { info: NOBODY, capabilities: {}, extensions: [SUBJECTS] });
  /** The requests of the client that have no response yet. */
  readonly #pending = new Map<Id, AbortController>();
  readonly #closed = new AbortController();
  #initialize: Message | undefined;
  #session: Session | undefined;
  #renewing: Promise<void> | undefined;
  #stopStream: AbortController | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: BridgeOptions) {
    const { url, auth, headers, fetch = (request) => globalThis.fetch(request) } = options;
    this.#options = options;
    this.#channel = httpChannel({ url, sender: createSender(url, fetch, auth), headers });
  }

  /** Takes a line of the client. Settles when the next one may follow. */
  async receive(line: string): Promise<void> {
    if (!line.trim()) return;
    let messages: readonly Message[];
    try {
      messages = readMessages(line);
    } catch {
      const error = { code: -32700, message: "Cannot read the message: it is not JSON-RPC 2.0 in one line" };
      return void await this.#options.write({ jsonrpc: "2.0", id: null, error });
    }
    for (const message of messages) await this.#take(message);
  }

  /** Ends all requests and the session. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#closed.abort(new DOMException("The client has closed the connection", "AbortError"));
    if (this.#session?.id !== undefined) {
      const signal = AbortSignal.timeout(END_MS);
      await this.#channel.endSession?.({ headers: this.#toSessionHeaders(), signal }).catch(() => {});
    }
    await this.#channel.close();
  }

  async #take(message: Message): Promise<void> {
    if (message.method === undefined || message.id === undefined) {
      // In order, but a server that does not respond must not block what follows.
      return await settleWithin(this.#notify(message), NOTIFY_MS);
    }
    if (!isId(message.id)) return;
    if (this.#pending.size >= MAX_PENDING) {
      const error = new Error(`Cannot pass on ${message.method}: ${MAX_PENDING} requests are open; wait for responses`);
      return void await this.#options.write(toFailure(message.id, this.#options.url, error));
    }
    // Not awaited: requests run at the same time.
    this.#request(message, message.id);
  }

  /** Passes on a notification, or the answer to a request of the server. */
  async #notify(message: Message): Promise<void> {
    const { method, params } = message;
    const isOfSession = toRevision(message) === undefined && this.#session !== undefined;
    if (method === "notifications/cancelled" && isId(params?.requestId) && !isOfSession) {
      // Without a session, a request is cancelled by closing its stream.
      return this.#pending.get(params.requestId)?.abort(new DOMException("The client has cancelled it", "AbortError"));
    }
    if (method === "notifications/initialized") this.#listen();
    try {
      const headers = this.#toHeaders(message);
      const { status = 200, headers: received, text } = await this.#channel.send(message, {
        headers,
        signal: this.#closed.signal,
      });
      if (status >= 400) throw new Error(describeResponse({ status, headers: received, text }));
      // The server owes no response any more.
      if (method === "notifications/cancelled" && isId(params?.requestId)) this.#pending.get(params.requestId)?.abort();
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#warn(`Cannot pass on ${method ?? "an answer"}`, error);
    }
  }

  async #request(message: Message, id: Id): Promise<void> {
    const stop = new AbortController();
    this.#pending.set(id, stop);
    const signal = AbortSignal.any([stop.signal, this.#closed.signal]);
    try {
      const reply = await this.#exchange(message, signal);
      this.#learn(message, reply);
      await this.#options.write({ ...reply, id });
    } catch (error) {
      if (!signal.aborted) await this.#options.write(toFailure(id, this.#options.url, error));
    } finally {
      this.#pending.delete(id);
    }
  }

  /** Sends a request, and again if the server has forgotten the session. */
  async #exchange(message: Message, signal: AbortSignal): Promise<Message> {
    await this.#renewing;
    const isOfSession = message.method !== "initialize" && toRevision(message) === undefined;
    const session = this.#session;
    let received = await this.#send(message, signal);
    if (received.status === 404 && isOfSession && session?.id !== undefined) {
      if (session === this.#session) {
        this.#renewing ??= this.#renew(this.#closed.signal).finally(() => this.#renewing = undefined);
      }
      await this.#renewing;
      received = await this.#send(message, signal);
    }
    if (!received.message) throw new Error(describeResponse(received));
    if (message.method === "initialize" && received.message.error === undefined) this.#begin(message, received);
    return received.message;
  }

  async #send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const headers = this.#toHeaders(message);
    return await this.#channel.send(message, { headers, signal, onMessage: (sent) => void this.#pass(sent) });
  }

  /** Passes a message of the server on to the client. */
  #pass(message: Message): void {
    this.#options.write(message).catch(() => {});
  }

  #begin(message: Message, { headers, message: reply }: SendResult): Session {
    const { protocolVersion: version, capabilities } = isObject(reply?.result) ? reply.result : {};
    this.#initialize = message;
    return this.#session = {
      id: headers?.get("mcp-session-id") ?? undefined,
      version: typeof version === "string" ? version : "",
      capabilities: isObject(capabilities) ? capabilities : {},
    };
  }

  /** Begins a new session for a client that knows of none, and tells it that everything may have changed. */
  async #renew(signal: AbortSignal): Promise<void> {
    const initialize = this.#initialize;
    if (!initialize) return;
    const received = await this.#send(initialize, signal);
    if (!received.message || received.message.error) throw new Error(describeResponse(received));
    const { capabilities } = this.#begin(initialize, received);
    await this.#notify({ jsonrpc: "2.0", method: "notifications/initialized" });
    this.#options.onWarning("The server has forgotten the session, so the bridge has begun another one.");
    for (const kind of ["tools", "resources", "prompts"]) {
      const capability = capabilities[kind];
      if (isObject(capability) && capability.listChanged === true) {
        this.#pass({ jsonrpc: "2.0", method: `notifications/${kind}/list_changed` });
      }
    }
  }

  /** Opens the stream for messages that belong to no request. Not every server has one. */
  #listen(): void {
    this.#stopStream?.abort();
    const stop = this.#stopStream = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#closed.signal]);
    const options = { headers: this.#toSessionHeaders(), signal, onMessage: (sent: Message) => this.#pass(sent) };
    this.#channel.openStream?.(options).catch(() => {});
  }

  #toHeaders(message: Message): Readonly<Record<string, string | null>> {
    const revision = toRevision(message);
    if (revision === undefined) return message.method === "initialize" ? {} : this.#toSessionHeaders();
    this.#codec.version = revision;
    return this.#codec.toHeaders(message);
  }

  #toSessionHeaders(): Readonly<Record<string, string>> {
    const { id, version = "" } = this.#session ?? {};
    return {
      ...id === undefined ? {} : { "mcp-session-id": id },
      ...version >= "2025-06-18" ? { "mcp-protocol-version": version } : {},
    };
  }

  /** Learns from lists of tools which arguments of calls headers have to repeat. */
  #learn({ method }: Message, { result }: Message): void {
    const tools = method === "tools/list" && isObject(result) ? result.tools : undefined;
    for (const tool of Array.isArray(tools) ? tools : []) {
      try {
        if (isObject(tool)) this.#codec.learn(tool);
      } catch {
        // Its client has to leave out a tool whose arguments cannot be repeated.
      }
    }
  }

  #warn(action: string, error: unknown): void {
    this.#options.onWarning(`${action}: ${error instanceof Error ? error.message : error}`);
  }
}

/** The revision that a message of 2026-07-28 or later names. */
function toRevision({ params }: Message): string | undefined {
  const meta = params?._meta;
  const revision = isObject(meta) ? meta[PROTOCOL_VERSION] : undefined;
  return typeof revision === "string" ? revision : undefined;
}

function toFailure(id: Id, url: string, error: unknown): Message {
  const reason = error instanceof Error ? error.message : String(error);
  const message = reason.startsWith("Cannot ") ? reason : `Cannot use ${url}: ${reason}`;
  return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message } };
}
