/**
 * Messages over HTTP: every message is a request of its own, and its answer is JSON or a stream.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */
import { startBackgroundTimer } from "../runtime.ts";
import { readText } from "./body.ts";
import type { Answer, Channel, SendOptions, Trace, Visit } from "./channel.ts";
import { readEvents, type StreamEvent } from "./events.ts";
import { type Message, readMessages } from "./message.ts";
import { pause } from "./pause.ts";
import { reach, RedirectError } from "./redirects.ts";
import { RpcError } from "./rpc_error.ts";

/** Where requests go, and how. */
export interface HttpChannelOptions {
  readonly url: string;
  readonly fetch: (request: Request) => Promise<Response>;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether every stream is read to its end, and has to end with the answer: a test must not miss what follows. */
  readonly isStrict?: boolean;
  readonly trace?: Trace;
  /** Ends what ends with the connection. */
  readonly stop?: () => Promise<void>;
}

const BOTH = "application/json, text/event-stream";
/** Milliseconds before a stream is taken up again, if the server names none. */
const RETRY_MS = 1000;
/** A server that says `retry: 0` and ends each stream at once would keep the client busy without a pause. */
const LEAST_RETRY_MS = 100;
const MOST_RETRY_MS = 30_000;
/** How often in a row a stream that owes an answer may fail to be taken up again. */
const MOST_FAILURES = 5;
/** Milliseconds that a stream gets to end after its answer; a connection that is closed earlier cannot be used again. */
const LINGER_MS = 1000;

/** A channel over `fetch`, be it the runtime's or a server's own. */
export function httpChannel(options: HttpChannelOptions): Channel {
  const { url, trace, isStrict = false } = options;
  const lingering = new Map<AbortController, Promise<void>>();

  async function open(method: string, { headers = {}, signal }: SendOptions, message?: Message): Promise<Response> {
    const all = new Headers({ accept: BOTH, ...options.headers });
    if (message) all.set("content-type", "application/json");
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) all.delete(name);
      else all.set(name, value);
    }
    trace?.request(method, all);
    if (message) trace?.sent(message);
    const sending = { url, method, headers: all, body: message && JSON.stringify(message), signal };
    const response = await orAborted(reach(options.fetch, sending), signal);
    trace?.response(response);
    return response;
  }

  async function send(message: Message, options: SendOptions = {}): Promise<Answer> {
    const response = await open("POST", options, message);
    const { status, headers } = response;
    if (isStream(response)) return { status, headers, message: await follow(response, message, options) };
    const text = await readText(response);
    const answer = readBody(response, text);
    if (answer) trace?.heard(answer);
    else trace?.other(text);
    return answer ? { status, headers, message: answer } : { status, headers, text };
  }

  // A stream that ends before its answer can be read on, if its events have ids.
  async function follow(first: Response, { id }: Message, options: SendOptions): Promise<Message> {
    const place: Place = { retryMs: RETRY_MS, failures: 0 };
    const isAnswer = (message: Message) => message.method === undefined && message.id === id;
    for (let response: Response | undefined = first;;) {
      const answer = response && await seek(response, isAnswer, place, options);
      if (answer) return answer;
      if (!place.id || options.resumes?.() === false || place.failures > MOST_FAILURES) throw new Error(ENDED);
      response = await reopen(place, options);
      if (response && !isStream(response)) throw await toError(response);
    }
  }

  // The answer in a stream; nothing if the stream ends or breaks before it.
  async function seek(
    response: Response,
    isAnswer: (message: Message) => boolean,
    place: Place,
    options: SendOptions,
  ): Promise<Message | undefined> {
    const linger = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, linger.signal]) : linger.signal;
    const events = readEvents(response, signal);
    const next = () =>
      events.next().catch((error) => {
        // A connection that breaks is a stream that ends.
        if (isStrict || options.signal?.aborted || error instanceof RangeError) throw error;
        return { done: true } as const;
      });
    for (let event = await next(); !event.done; event = await next()) {
      for (const message of readEvent(event.value, place)) {
        if (!isAnswer(message)) options.hear?.(message);
        else if (isStrict) return await expectEnd(events, message);
        else {
          lingering.set(linger, letEnd(events, linger));
          return message;
        }
      }
    }
  }

  function readEvent(event: StreamEvent, place: Place): readonly Message[] {
    place.id = event.id ?? place.id;
    place.retryMs = event.retry ?? place.retryMs;
    const messages = event.data === undefined ? [] : readMessages(event.data);
    for (const message of messages) trace?.heard(message);
    return messages;
  }

  async function expectEnd(events: AsyncGenerator<StreamEvent>, answer: Message): Promise<Message> {
    for await (const { data } of events) {
      if (data !== undefined) throw new Error(`Cannot read on: after the answer came ${data}`);
    }
    return answer;
  }

  async function letEnd(events: AsyncGenerator<StreamEvent>, linger: AbortController): Promise<void> {
    // The answer is there: nobody waits for the rest.
    const stopTimer = startBackgroundTimer(() => linger.abort(), LINGER_MS);
    try {
      while (!(await events.next()).done);
    } catch {
      // It was not waited for any longer, or broke: the answer is there.
    }
    stopTimer();
    lingering.delete(linger);
  }

  // Waits as long as the server wishes, and longer after each failure; nothing if the server could not be reached.
  async function reopen(place: Place, options: SendOptions): Promise<Response | undefined> {
    const retryMs = Math.max(place.retryMs, LEAST_RETRY_MS);
    const waitMs = Math.min(retryMs * 2 ** place.failures, MOST_RETRY_MS);
    await pause(Math.max(waitMs, retryMs), options.signal);
    const headers = place.id ? { ...options.headers, "last-event-id": place.id } : options.headers;
    try {
      const response = await open("GET", { ...options, headers });
      place.failures = 0;
      return response;
    } catch (error) {
      if (options.signal?.aborted || error instanceof RedirectError) throw error;
      place.failures++;
    }
  }

  async function visit(options: SendOptions): Promise<Visit> {
    const response = await open("GET", options);
    if (!isStream(response)) throw await toError(response);
    return { status: response.status, ended: listen(response, options) };
  }

  async function listen(first: Response, options: SendOptions): Promise<number> {
    const place: Place = { retryMs: RETRY_MS, failures: 0 };
    let { status } = first;
    try {
      for (let response: Response | undefined = first;;) {
        if (response && isStream(response)) await seek(response, () => false, place, options);
        else if (response) {
          status = response.status;
          await response.body?.cancel();
          // What followed the place may be gone, but not the stream.
          if (!place.id || status === 404) return status;
          place.id = undefined;
        }
        if (options.resumes?.() === false) return status;
        response = await reopen(place, options);
      }
    } catch {
      return status;
    }
  }

  async function leave(options: SendOptions): Promise<number> {
    const response = await open("DELETE", options);
    trace?.other(await readText(response));
    return response.status;
  }

  async function close(): Promise<void> {
    for (const linger of lingering.keys()) linger.abort();
    await Promise.all(lingering.values());
    await options.stop?.();
  }

  return { send, visit, leave, close };
}

/** How far a stream was read. */
interface Place {
  id?: string;
  /** Milliseconds before it is to be read on. */
  retryMs: number;
  /** How often in a row the server could not be reached. */
  failures: number;
}

const ENDED = "Cannot get the answer: the stream ended before it";

/** Whether a response is a stream of events. */
export function isStream({ ok, headers }: Response): boolean {
  return ok && (headers.get("content-type")?.startsWith("text/event-stream") ?? false);
}

/** What a response that should have been a stream came to. */
export async function toError(response: Response): Promise<RpcError> {
  const text = await readText(response);
  const { error } = readBody(response, text) ?? {};
  const message = error?.message ?? `Cannot open the stream: got ${response.status} ${text.slice(0, 500)}`.trim();
  return new RpcError(error?.code ?? 0, message, error?.data, response.status);
}

function readBody({ ok, headers }: Response, text: string): Message | undefined {
  if (!headers.get("content-type")?.startsWith("application/json")) return;
  try {
    return readMessages(text)[0];
  } catch (error) {
    // What stands in front of a server answers with JSON of its own.
    if (ok) throw error;
  }
}

// A server in the same process does not hear of an aborted request: it hears that its answer is not wanted.
function orAborted<T>(coming: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return coming;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const onAbort = () => {
    reject(signal.reason);
    coming.then((late) => late instanceof Response ? late.body?.cancel() : undefined).catch(() => {});
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  coming.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return promise;
}
