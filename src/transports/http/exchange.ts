/**
 * One HTTP request and its response: the link of the messages that the request carries.
 *
 * @module
 */
import { toFailure } from "../../protocol/jsonrpc.ts";
import { INTERNAL_ERROR } from "../../protocol/errors.ts";
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import { InFlight } from "../../core/in_flight.ts";
import { type EventFields, LATER, type Link, type LinkEvents, type Reply } from "../../core/link.ts";
import type { Aging } from "../../core/timers.ts";
import type { Accepts } from "./accept.ts";
import type { EventStream, EventStreams } from "./event_stream.ts";

export const JSON_HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** Characters up to which an answer is handed to the runtime whole, which then holds it until it is read. */
const LARGE = 16_384;

/** What a handler sends without waiting for anything outside of itself is written, with its result, after some turns. */
const TURNS = 64;

/** What all exchanges of a server share. */
export interface ExchangeParts {
  readonly streams: EventStreams;
  /** Exchanges whose answer takes a while. */
  readonly waiting: Aging<Exchange>;
  /** The account of a request's client. */
  account(request: Request, info: unknown, principal: Principal | undefined): Account;
}

/** What is known of a request before its body is read. */
export interface Head {
  readonly request: Request;
  readonly headers: Headers;
  /** What the runtime or a router handed over with the request. */
  readonly info: unknown;
  readonly principal?: Principal;
  readonly accepts: Accepts;
}

/** One HTTP request and its response. */
export class Exchange implements Link {
  readonly inFlight: InFlight = new InFlight();
  readonly #head: Head;
  readonly #parts: ExchangeParts;
  #events?: LinkEvents;
  #stream?: EventStream;
  /** Gives the stream as the response. */
  #opened?: PromiseWithResolvers<Response>;
  #isGiven = false;
  #version?: string | null;

  /** An exchange that has just begun. */
  constructor(head: Head, parts: ExchangeParts) {
    this.#head = head;
    this.#parts = parts;
  }

  get http(): Request {
    return this.#head.request;
  }

  get headers(): Headers {
    return this.#head.headers;
  }

  get principal(): Principal | undefined {
    return this.#head.principal;
  }

  get streams(): boolean {
    return this.#head.accepts.stream;
  }

  get account(): Account {
    const { request, info, principal } = this.#head;
    return this.#parts.account(request, info, principal);
  }

  // Kept, because both eras ask for it, and a header is found by a search.
  get version(): string | null {
    if (this.#version === undefined) this.#version = this.headers.get("mcp-protocol-version");
    return this.#version;
  }

  /** The response: the reply, or a stream that ends with it if one is opened before. */
  respond(reply: Reply | Promise<Reply>): Response | Promise<Response> {
    if (!(reply instanceof Promise)) return this.#finish(reply);
    const finished = reply.then((reply) => this.#finish(reply));
    return Promise.race([finished, (this.#opened ??= Promise.withResolvers()).promise]);
  }

  send(text: string, event?: EventFields): Promise<void> | undefined {
    if (!this.streams) return;
    this.#open(TURNS);
    return this.#stream?.write(text, event);
  }

  wait(events?: LinkEvents): void {
    if (events) this.#events = events;
    if (!this.#stream && !this.#isGiven) this.#parts.waiting.add(this);
  }

  open(): void {
    this.#open(0);
  }

  release(event?: EventFields): void {
    this.open();
    if (event) this.#stream?.write("", event);
    this.#stream?.end();
  }

  #open(turns: number): void {
    if (!this.#stream && !this.#isGiven) this.#give(this.#start(), turns);
  }

  // For a client that takes no events, what keeps the stream alive is white space before the JSON.
  #start(): EventStream {
    this.#parts.waiting.delete(this);
    const { streams } = this;
    const stream = this.#stream = this.#parts.streams.create({
      account: () => this.account,
      onLost: () => {
        this.inFlight.cancelAll();
        this.#events?.lost?.();
      },
      comment: streams ? undefined : "\n",
    });
    const opening = streams ? this.#events?.opened?.() : undefined;
    if (opening) stream.write("", opening);
    else stream.comment();
    return stream;
  }

  /** Gives the stream as the response after so many turns of the microtasks, or when all is written. */
  async #give(stream: EventStream, turns: number): Promise<void> {
    const opened = this.#opened ??= Promise.withResolvers();
    while (turns-- && !stream.isEnded) await undefined;
    if (!this.#isGiven) opened.resolve(this.#toStreamed(stream));
  }

  /** The reply as the response, or as the last event of the stream. */
  #finish({ text, status, headers, event }: Reply): Response {
    this.#parts.waiting.delete(this);
    const takesEvents = !this.#head.accepts.json && text !== undefined && !status;
    const stream = this.#stream ?? (takesEvents ? this.#start() : undefined);
    if (stream) {
      if (text !== undefined) this.streams ? stream.write(text, event) : stream.push(text);
      stream.end();
      // Given already: this one is for nobody.
      return this.#isGiven ? Response.error() : this.#toStreamed(stream);
    }
    this.#isGiven = true;
    if (text === undefined) return new Response(null, { status: status ?? 202, headers });
    const init = { status, headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS };
    return text.length > LARGE ? this.#toSliced(text, init) : new Response(text, init);
  }

  #toStreamed(stream: EventStream): Response {
    this.#isGiven = true;
    return new Response(stream.toBody(), { headers: this.streams ? STREAM_HEADERS : JSON_HEADERS });
  }

  // A runtime takes a body that is handed over whole, and holds it for as long as the client does not read.
  #toSliced(text: string, init: ResponseInit): Response {
    let isRefused = false;
    const onLost = () => {
      isRefused = true;
    };
    const body = this.#parts.streams.create({ account: () => this.account, onLost });
    body.push(text);
    body.end();
    if (!isRefused) return new Response(body.toBody(), init);
    const message = "Cannot send the result: too much waits to be read (clientBytes, totalBytes)";
    const failure = toFailure(undefined, { code: INTERNAL_ERROR, message });
    return new Response(failure, { status: 503, headers: { ...JSON_HEADERS, ...LATER } });
  }
}
