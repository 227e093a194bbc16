/**
 * One HTTP request and its response: the link of the messages that the request carries.
 *
 * @module
 */
import { toFailure } from "../../protocol/jsonrpc.ts";
import { INTERNAL_ERROR, INVALID_REQUEST } from "../../protocol/errors.ts";
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import { InFlight } from "../../core/in_flight.ts";
import { type EventFields, LATER, type Link, type LinkEvents, type Reply } from "../../core/link.ts";
import type { Aging } from "../../core/timers.ts";
import type { Accepts } from "./accept.ts";
import type { Receiver, Unread } from "./request_body.ts";
import { COMMENT, type EventStream, type EventStreams, toEvent } from "./event_stream.ts";

const JSON_HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** What is written on a silent body of JSON. */
const SPACE = "\n";

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
  /** Gives the response; called once. */
  readonly respond: (response: Response) => void;
}

/** One HTTP request and its response. */
export class Exchange implements Link, Receiver {
  readonly http: Request;
  readonly headers: Headers;
  readonly version: string | null;
  readonly principal?: Principal;
  readonly streams: boolean;
  readonly inFlight: InFlight;
  /** Whether the response was given. */
  isGiven: boolean;
  readonly #head: Head;
  readonly #parts: ExchangeParts;
  #events?: LinkEvents;
  /** What was sent before the response had to be given: often the whole answer, which then is no stream. */
  #early?: string;
  /** How many texts that is, with the one that opens the stream. */
  #texts: number;
  #stream?: EventStream;

  /** An exchange that has just begun. */
  constructor(head: Head, parts: ExchangeParts) {
    this.#head = head;
    this.#parts = parts;
    this.#texts = 1;
    this.isGiven = false;
    this.inFlight = new InFlight();
    this.http = head.request;
    this.headers = head.headers;
    this.version = head.headers.get("mcp-protocol-version");
    this.principal = head.principal;
    this.streams = head.accepts.stream;
  }

  get account(): Account {
    const { request, info, principal } = this.#head;
    return this.#parts.account(request, info, principal);
  }

  /** Refuses a body that is not waited for. */
  giveUp(unread: Unread): void {
    this.isGiven = true;
    this.#head.respond(toRefusal(unread));
  }

  send(text: string, event?: EventFields): Promise<void> | undefined {
    if (!this.streams) return;
    if (this.#stream) return this.#stream.write(text, event);
    const early = (this.#early ?? this.#begin()) + toEvent(text, event);
    this.#early = early;
    const { waitingCharacters, waitingTexts } = this.#parts.streams.limits;
    if (++this.#texts >= waitingTexts || early.length >= waitingCharacters) this.open();
  }

  wait(events?: LinkEvents): void {
    if (events) this.#events = events;
    if (this.#early === undefined && !this.#stream && !this.isGiven) this.#parts.waiting.add(this);
  }

  // For a client that takes no events, what keeps the stream alive is white space before the JSON.
  open(): void {
    if (this.#stream || this.isGiven) return;
    this.#parts.waiting.delete(this);
    const early = this.#early ?? this.#toOpening();
    const stream = this.#stream = this.#parts.streams.create({
      account: () => this.account,
      onLost: () => {
        this.inFlight.cancelAll();
        this.#events?.lost?.();
      },
      comment: this.streams ? undefined : SPACE,
    });
    stream.push(early, this.#texts);
    this.isGiven = true;
    const headers = this.streams ? STREAM_HEADERS : JSON_HEADERS;
    this.#head.respond(new Response(stream.toBody(), { headers }));
  }

  release(event?: EventFields): void {
    this.open();
    if (event) this.#stream?.write("", event);
    this.#stream?.end();
  }

  /** Keeps what is sent for some turns of the microtasks, in which the answer may be complete. */
  #begin(): string {
    this.#parts.waiting.delete(this);
    this.#openLater();
    return this.#toOpening();
  }

  async #openLater(): Promise<void> {
    for (let turns = TURNS; turns && !this.isGiven; turns--) await undefined;
    if (!this.isGiven) this.open();
  }

  #toOpening(): string {
    if (!this.streams) return SPACE;
    const opening = this.#events?.opened?.();
    return opening ? toEvent("", opening) : COMMENT;
  }

  /** Gives the reply: as the response, or as the last event of the stream. */
  finish({ text, status, headers, event }: Reply): void {
    this.#parts.waiting.delete(this);
    if (this.#stream) return this.#endStream(this.#stream, text, event);
    this.isGiven = true;
    const { respond, accepts } = this.#head;
    const isEvent = text !== undefined && !status && !accepts.json;
    if (this.#early || isEvent) {
      const early = this.#early ?? this.#toOpening();
      const body = text === undefined ? early : early + toEvent(text, event);
      return respond(this.#toResponse(body, { headers: STREAM_HEADERS }));
    }
    if (text === undefined) return respond(new Response(null, { status: status ?? 202, headers }));
    respond(this.#toResponse(text, { status, headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS }));
  }

  #endStream(stream: EventStream, text: string | undefined, event: EventFields | undefined): void {
    if (text !== undefined) this.streams ? stream.write(text, event) : stream.push(text);
    stream.end();
  }

  // A runtime takes a body that is handed over whole, and holds it for as long as the client does not read.
  #toResponse(body: string, init: ResponseInit): Response {
    if (body.length <= LARGE) return new Response(body, init);
    let isRefused = false;
    const onLost = () => {
      isRefused = true;
    };
    const sliced = this.#parts.streams.create({ account: () => this.account, onLost });
    sliced.push(body);
    sliced.end();
    if (!isRefused) return new Response(sliced.toBody(), init);
    const message = "Cannot send the result: too much is unread (memory.bytesPerClient, memory.bytes)";
    return toRefusal({ status: 503, message, headers: LATER }, INTERNAL_ERROR);
  }
}

/** The response to a request that is not served. */
export function toRefusal({ status, message, headers }: Unread, code: number = INVALID_REQUEST): Response {
  const text = toFailure(undefined, { code, message });
  return new Response(text, { status, headers: { ...JSON_HEADERS, ...headers } });
}
