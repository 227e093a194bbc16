/**
 * Sends each message as an HTTP request. The HTTP response is JSON or an event stream.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 */
import { McpError } from "../core/protocol/errors.ts";
import { startBackgroundTimer } from "../core/runtime.ts";
import { isOneWay, OneWayPosts } from "./one_way.ts";
import { describeResponse, isStream, readStart, readText } from "./response_text.ts";
import type { Channel, SendOptions, SendResult, ServerStream, Tokens, Trace } from "./channel.ts";
import { deadline, delay } from "../core/kit/deadline.ts";
import { readEvents, readMessageEvent, type StreamEvent } from "../core/kit/event_stream.ts";
import { type Message, type ReadMessages, readMessages } from "./message.ts";
import type { HttpSender } from "./client_auth.ts";
import { RedirectError } from "./redirects.ts";

export interface HttpChannelOptions {
  readonly url: string;
  readonly sender: HttpSender;
  readonly headers?: Readonly<Record<string, string>>;
  /** Parses the messages of the server. Defaults to {@linkcode readMessages}. */
  readonly read?: ReadMessages;
  /** Whether to throw if a stream breaks, or if the server sends messages after the response. For tests. */
  readonly isStrict?: boolean;
  readonly trace?: Trace;
  /** Called when a request's stream is lost and the first attempt to resume it fails. Further attempts follow. */
  readonly onLost?: (error: unknown) => void;
  /** Called when the channel is closed. */
  readonly stop?: () => Promise<void>;
}

const BOTH = "application/json, text/event-stream";
/** Milliseconds before the channel resumes a stream, if the server does not set `retry`. */
const RETRY_MS = 1000;
/** Minimum milliseconds before a stream is resumed, because a server could keep the client busy with `retry: 0`. */
const LEAST_RETRY_MS = 100;
const MAX_RETRY_MS = 30_000;
/** Maximum number of consecutive failed attempts to resume the stream of a request. */
const MAX_FAILURES = 5;
/** Milliseconds that a stream may take to end after the response, so that the connection can be reused. */
const DRAIN_MS = 1000;

export class HttpChannel implements Channel {
  readonly #options: HttpChannelOptions;
  readonly #isStrict: boolean;
  readonly #trace: Trace | undefined;
  readonly #read: ReadMessages;
  /** Streams that have delivered the response, but have not ended yet. */
  readonly #draining = new Map<AbortController, Promise<void>>();
  readonly #posts = new OneWayPosts();
  readonly #closed = new AbortController();

  constructor(options: HttpChannelOptions) {
    this.#options = options;
    this.#isStrict = options.isStrict ?? false;
    this.#trace = options.trace;
    this.#read = options.read ?? readMessages;
  }

  async send(message: Message, given: SendOptions = {}): Promise<SendResult> {
    const options = this.#untilClosed(given);
    if (isOneWay(message)) return await this.#sendOneWay(message, options);
    const response = await this.#open({ method: "POST", message }, options);
    const { status, headers } = response;
    if (isStream(response)) return { status, headers, message: await this.#readResponse(response, message, options) };
    const text = await readText(response);
    const reply = readBody(response, text, this.#read);
    if (reply) this.#trace?.received?.(reply);
    else this.#trace?.other?.(text);
    return reply ? { status, headers, message: reply } : { status, headers, text };
  }

  async #sendOneWay(message: Message, options: Scoped): Promise<SendResult> {
    const { response, text } = await this.#posts.send(
      (signal) => this.#open({ method: "POST", message, isInteractive: false }, { ...options, signal }),
      options.signal,
    );
    const { status, headers } = response;
    const reply = readError(response, text, this.#read);
    if (reply) this.#trace?.received?.(reply);
    else this.#trace?.other?.(text);
    return reply ? { status, headers, message: reply } : { status, headers, text };
  }

  get tokens(): Tokens | undefined {
    return this.#options.sender.tokens;
  }

  waitedMs(): number {
    return this.#options.sender.waitedMs();
  }

  async openStream(given: SendOptions): Promise<ServerStream> {
    const options = this.#untilClosed(given);
    const response = await this.#open({ method: "GET" }, options);
    if (!isStream(response)) throw await toError(response);
    return { status: response.status, ended: this.#listen(response, options) };
  }

  async endSession(given: SendOptions): Promise<number> {
    const options = this.#untilClosed(given);
    const response = await this.#open({ method: "DELETE", isInteractive: false }, options);
    this.#trace?.other?.(await readStart(response, options.signal));
    return response.status;
  }

  async close(): Promise<void> {
    // Abort everything that is still open, because a server could otherwise keep the connections, the tokens and the
    // timers of a closed client in use.
    this.#closed.abort(new DOMException("Cannot send the message: the connection was closed", "AbortError"));
    for (const stop of this.#draining.keys()) stop.abort();
    await Promise.all(this.#draining.values());
    await this.#options.stop?.();
  }

  #untilClosed(options: SendOptions): Scoped {
    const { signal } = this.#closed;
    return { ...options, signal: options.signal ? AbortSignal.any([options.signal, signal]) : signal };
  }

  async #open({ method, message, isInteractive }: Opened, { headers = {}, signal }: Scoped): Promise<Response> {
    // Do not ask for a token after the end of the request.
    signal.throwIfAborted();
    const all = new Headers({ accept: BOTH, ...this.#options.headers });
    if (message) all.set("content-type", "application/json");
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) all.delete(name);
      else all.set(name, value);
    }
    this.#trace?.request?.(method, all);
    if (message) this.#trace?.sent?.(message);
    const { url, sender } = this.#options;
    const sending = { url, method, headers: all, body: message && JSON.stringify(message), signal };
    const response = await raceAbort(sender.send(sending, { isInteractive }), signal);
    this.#trace?.response?.(response);
    return response;
  }

  /** If the stream ends before the response, resumes the stream, provided that the events have ids. */
  async #readResponse(first: Response, { id }: Message, options: Scoped): Promise<Message> {
    const position: Position = { retryMs: RETRY_MS, failures: 0, onLost: this.#options.onLost };
    const isResponse = (message: Message) => message.method === undefined && message.id === id;
    for (let response: Response | undefined = first;;) {
      const reply = response && await this.#readStream(response, isResponse, position, options);
      if (reply) return reply;
      if (!position.id || options.resumes?.() === false || position.failures > MAX_FAILURES) throw new Error(ENDED);
      response = await this.#reopen(position, options);
      if (response && !isStream(response)) throw await toError(response);
    }
  }

  /** Reads a stream up to the response. Returns `undefined` if the stream ends or breaks before the response. */
  async #readStream(
    response: Response,
    isResponse: (message: Message) => boolean,
    position: Position,
    options: Scoped,
  ): Promise<Message | undefined> {
    const stop = new AbortController();
    const signal = AbortSignal.any([options.signal, stop.signal]);
    const events = readEvents(response, signal);
    const next = () =>
      events.next().catch((error) => {
        // Treat a broken connection like a stream that has ended.
        if (this.#isStrict || options.signal.aborted || error instanceof RangeError) throw error;
        return { done: true } as const;
      });
    for (let event = await next(); !event.done; event = await next()) {
      for (const message of this.#readEvent(event.value, position)) {
        if (!isResponse(message)) {
          const passed = options.onMessage?.(message);
          if (passed) await passed;
        } else if (this.#isStrict) return await expectEnd(events, message);
        else {
          this.#draining.set(stop, this.#drain(events, stop));
          return message;
        }
      }
    }
  }

  #readEvent(event: StreamEvent, position: Position): readonly Message[] {
    position.id = event.id ?? position.id;
    position.retryMs = event.retry ?? position.retryMs;
    const data = readMessageEvent(event);
    const messages = data === undefined ? [] : this.#read(data);
    for (const message of messages) this.#trace?.received?.(message);
    return messages;
  }

  async #drain(events: AsyncGenerator<StreamEvent>, stop: AbortController): Promise<void> {
    // Return the response without waiting for the end of the stream.
    const stopTimer = startBackgroundTimer(() => stop.abort(), DRAIN_MS);
    try {
      while (!(await events.next()).done);
    } catch {
      // Ignore the error: the stream was aborted or broke after the response had been read.
    }
    stopTimer();
    this.#draining.delete(stop);
  }

  /** The delay that the server has set grows with each failure. Returns `undefined` if the server cannot be reached. */
  async #reopen(position: Position, options: Scoped): Promise<Response | undefined> {
    const retryMs = Math.max(position.retryMs, LEAST_RETRY_MS);
    const waitMs = Math.min(retryMs * 2 ** position.failures, MAX_RETRY_MS);
    await delay(Math.max(waitMs, retryMs), { signal: options.signal });
    const headers = position.id ? { ...options.headers, "last-event-id": position.id } : options.headers;
    try {
      const response = await this.#open({ method: "GET" }, { ...options, headers });
      position.failures = 0;
      return response;
    } catch (error) {
      if (options.signal.aborted || error instanceof RedirectError) throw error;
      if (!position.failures++) position.onLost?.(error);
    }
  }

  /** Reads a standalone stream until it has ended and cannot be resumed. Returns the last HTTP status. */
  async #listen(first: Response, options: Scoped): Promise<number> {
    const position: Position = { retryMs: RETRY_MS, failures: 0 };
    let { status } = first;
    try {
      for (let response: Response | undefined = first;;) {
        if (response && isStream(response)) await this.#readStream(response, () => false, position, options);
        else if (response) {
          status = response.status;
          await response.body?.cancel();
          // Open the stream without a position, because the server may have dropped the events after the position, but
          // still offer the stream.
          if (!position.id || status === 404) return status;
          position.id = undefined;
        }
        if (options.resumes?.() === false) return status;
        response = await this.#reopen(position, options);
      }
    } catch {
      return status;
    }
  }
}

/** The signal also aborts when the channel is closed. */
type Scoped = SendOptions & { readonly signal: AbortSignal };

interface Opened {
  readonly method: string;
  readonly message?: Message;
  /** Whether the request may involve the user. Defaults to `true`. */
  readonly isInteractive?: boolean;
}

interface Position {
  id?: string;
  retryMs: number;
  /** Number of consecutive attempts in which the server could not be reached. */
  failures: number;
  /** Called with the error of the first failed attempt. */
  readonly onLost?: (error: unknown) => void;
}

const ENDED = "Cannot get the response: the stream ended before the response";

async function toError(response: Response): Promise<McpError> {
  return toStreamError(response, await readStart(response));
}

/** Returns the error for a response that should have been an event stream, or should have had a success status. */
export function toStreamError(response: Response, text: string): McpError {
  const { error } = readError(response, text, readMessages) ?? {};
  const { status, headers } = response;
  const message = error?.message ?? `Cannot open the stream: ${describeResponse({ status, headers, text })}`;
  return new McpError(error?.code ?? 0, message, error?.data, { status });
}

async function expectEnd(events: AsyncGenerator<StreamEvent>, reply: Message): Promise<Message> {
  for await (const event of events) {
    const data = readMessageEvent(event);
    if (data !== undefined) {
      throw new Error(
        `Cannot read the stream: the server sent ${JSON.stringify(data.slice(0, 200))} after the response`,
      );
    }
  }
  return reply;
}

/** Returns the message in the body of an error response, if the body is a complete JSON-RPC message. */
function readError({ headers }: Response, text: string, read: ReadMessages): Message | undefined {
  return readBody({ ok: false, headers }, text, read);
}

function readBody(
  { ok, headers }: Pick<Response, "ok" | "headers">,
  text: string,
  read: ReadMessages,
): Message | undefined {
  if (!headers.get("content-type")?.startsWith("application/json")) return;
  try {
    return read(text)[0];
  } catch (error) {
    // For an error status, ignore a body that is not a message, because a proxy may send its own JSON.
    if (ok) throw error;
  }
}

// Rejects when the signal aborts, and cancels the response body. A server in the same process does not notice that a
// request is aborted, but notices that the body is cancelled.
async function raceAbort<T>(coming: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await deadline(coming, { signal });
  } catch (error) {
    coming.then((late) => late instanceof Response ? late.body?.cancel() : undefined).catch(() => {});
    throw error;
  }
}
