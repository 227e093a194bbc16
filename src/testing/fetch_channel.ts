/**
 * Messages over HTTP: every message is a request of its own, and its answer is JSON or a stream.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */
import type { Answer, Channel, SendOptions, Visit } from "./channel.ts";
import { readEvents } from "./events.ts";
import { type Message, readMessages } from "./message.ts";
import { RpcError } from "./rpc_error.ts";
import type { Transcript } from "./transcript.ts";

/** Where requests go, and what ends with the connection. */
export interface FetchChannelOptions {
  readonly url: string;
  readonly fetch: (request: Request) => Promise<Response>;
  readonly transcript: Transcript;
  readonly stop?: () => Promise<void>;
}

const HEADERS = { accept: "application/json, text/event-stream" };

/** A channel over `fetch`, be it the runtime's or a server's own. */
export function fetchChannel({ url, fetch, transcript, stop }: FetchChannelOptions): Channel {
  async function open(method: string, { headers = {}, signal }: SendOptions, message?: Message): Promise<Response> {
    const all = new Headers(HEADERS);
    if (message) all.set("content-type", "application/json");
    for (const [name, value] of Object.entries(headers)) {
      if (value === null) all.delete(name);
      else all.set(name, value);
    }
    transcript.request(method, all);
    if (message) transcript.sent(message);
    const request = new Request(url, { method, headers: all, body: message && JSON.stringify(message), signal });
    const response = await orAborted(fetch(request), signal);
    transcript.response(response);
    return response;
  }

  async function send(message: Message, options: SendOptions = {}): Promise<Answer> {
    const response = await open("POST", options, message);
    const { status, headers } = response;
    if (isStream(response)) return { status, headers, message: await follow(response, message, options) };
    const text = await response.text();
    if (!headers.get("content-type")?.startsWith("application/json")) {
      transcript.other(text);
      return { status, headers, text };
    }
    const [answer] = readMessages(text);
    transcript.heard(answer);
    return { status, headers, message: answer };
  }

  // A stream that ends before its answer can be read on, if its events have ids.
  async function follow(response: Response, { id }: Message, options: SendOptions): Promise<Message> {
    let answer: Message | undefined;
    let place: string | undefined;
    let retryMs = 0;
    while (true) {
      for await (const event of readEvents(response, options.signal)) {
        place = event.id ?? place;
        retryMs = event.retry ?? retryMs;
        for (const message of event.data === undefined ? [] : readMessages(event.data)) {
          transcript.heard(message);
          if (answer) throw new Error(`Cannot read on: after the answer came ${event.data}`);
          if (message.method === undefined && message.id === id) answer = message;
          else options.hear?.(message);
        }
      }
      if (answer) return answer;
      if (!place || options.resumes?.() === false) throw new Error("Cannot get the answer: the stream ended before it");
      await orAborted(new Promise((resolve) => setTimeout(resolve, retryMs)), options.signal);
      response = await open("GET", { ...options, headers: { ...options.headers, "last-event-id": place } });
      if (!isStream(response)) throw await toError(response);
    }
  }

  async function visit(options: SendOptions): Promise<Visit> {
    const response = await open("GET", options);
    if (!isStream(response)) throw await toError(response);
    return { status: response.status, ended: listen(response, options).catch(() => {}) };
  }

  async function listen(response: Response, { signal, hear }: SendOptions): Promise<void> {
    for await (const { data } of readEvents(response, signal)) {
      for (const message of data === undefined ? [] : readMessages(data)) {
        transcript.heard(message);
        hear?.(message);
      }
    }
  }

  async function leave(options: SendOptions): Promise<number> {
    const response = await open("DELETE", options);
    transcript.other(await response.text());
    return response.status;
  }

  return { send, visit, leave, close: async () => await stop?.() };
}

function isStream({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}

async function toError(response: Response): Promise<RpcError> {
  const text = await response.text();
  const [error] = /^\{/.test(text) ? readMessages(text).map(({ error }) => error) : [];
  return new RpcError(error?.code ?? 0, error?.message ?? text, error?.data, response.status);
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
