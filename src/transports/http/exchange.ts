/**
 * One HTTP request with its response, which is the link of the messages in the request.
 *
 * @module
 */
import { INTERNAL_ERROR } from "../../protocol/errors.ts";
import type { Account } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { Principal } from "../../core/call/context.ts";
import { InFlight } from "../../core/call/in_flight.ts";
import {
  type EventFields,
  type HeaderReader,
  type Link,
  type LinkEvents,
  type Reply,
  RETRY_AFTER,
  type SeenRequest,
} from "../../core/call/link.ts";
import type { Aging } from "../../core/capacity/aging.ts";
import type { Accepts } from "./accept.ts";
import { Caller } from "./caller.ts";
import type { Receiver } from "./request_body.ts";
import { COMMENT, type EventStream, type EventStreams, toEvent } from "./event_stream.ts";
import { JSON_HEADERS, type Refusal, refuse, toRefusal } from "./refusals.ts";

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** Heartbeat of a JSON body. */
const SPACE = "\n";

/**
 * Maximum characters of a response that the runtime receives whole, and buffers until it is read. The kernel takes that
 * much from the runtime even if the client reads nothing, so a stream would hold more: a list of 77 KB that is not read
 * takes 31 KiB on Deno and 2 KiB on Bun as one string, 167 and 6 KiB as a stream. It also takes a third of the CPU time.
 */
const LARGE = 131_072;

/**
 * Number of microtasks to wait before opening a stream. Messages that a handler sends without waiting for I/O then
 * leave together with its result.
 */
const TURNS = 64;

const NO_REQUEST = { headers: new Headers() } as Request; // Nothing else is read.

/** Parts that all exchanges of a server share. */
export interface ExchangeParts {
  readonly core: Core;
  readonly streams: EventStreams;
  /** Exchanges with a running call. */
  readonly waiting: Aging<Exchange>;
  /** Returns the account of the client. */
  account(caller: Caller): Account;
}

/** Facts about a request before its body is read. */
export interface Head {
  readonly caller: Caller;
  readonly accepts: Accepts;
  /** Sends the response. It is called once. */
  readonly respond: (response: Response) => void;
}

/** One HTTP request and its response. */
export class Exchange implements Link, Receiver {
  // Keeps the hidden class of exchanges in memory, as in `Call`.
  static readonly #model: Exchange = new Exchange(
    { caller: new Caller(NO_REQUEST, undefined), accepts: { json: true, stream: true }, respond() {} },
    {} as ExchangeParts, // Not read.
  );
  readonly transport = "http";
  readonly http: Pick<SeenRequest, "request" | "toRecheck">;
  readonly headers: HeaderReader;
  readonly version: string | null;
  readonly principal?: Principal;
  readonly streams: boolean;
  readonly inFlight: InFlight;
  /** Whether the response has started. */
  hasResponded: boolean;
  readonly #caller: Caller;
  readonly #acceptsJson: boolean;
  readonly #respond: Head["respond"];
  readonly #parts: ExchangeParts;
  #events?: LinkEvents;
  /**
   * Messages sent before the response started. Often they are followed by the result at once, so that no stream is
   * needed.
   */
  #buffered?: string;
  /** Number of those messages, including the opening event. */
  #texts: number;
  #stream?: EventStream;

  /** Creates an exchange for a request. */
  constructor({ caller, accepts, respond }: Head, parts: ExchangeParts) {
    this.#caller = caller;
    this.#acceptsJson = accepts.json;
    this.#respond = respond;
    this.#parts = parts;
    this.#texts = 1;
    this.hasResponded = false;
    this.inFlight = new InFlight();
    this.http = caller.seen ?? caller;
    this.headers = (caller.seen ?? caller).headers;
    this.version = caller.headers.get("mcp-protocol-version");
    this.principal = caller.principal;
    this.streams = accepts.stream;
  }

  get account(): Account {
    return this.#parts.account(this.#caller);
  }

  /** Rejects a request whose body is no longer awaited. */
  abort(refusal: Refusal): void {
    this.hasResponded = true;
    this.#respond(refuse(this.#parts.core, refusal, this));
  }

  send(text: string, event?: EventFields): Promise<void> | undefined {
    if (!this.streams) return;
    if (text) this.#parts.core.observing?.message("out", this, text);
    if (this.#stream) return this.#stream.write(text, event);
    const buffered = (this.#buffered ?? this.#begin()) + toEvent(text, event);
    this.#buffered = buffered;
    const { waitingCharacters, waitingTexts } = this.#parts.streams.limits;
    if (++this.#texts >= waitingTexts || buffered.length >= waitingCharacters) this.open();
  }

  wait(events?: LinkEvents): void {
    if (events) this.#events = events;
    if (this.#buffered === undefined && !this.#stream && !this.hasResponded) this.#parts.waiting.add(this);
  }

  // For a client that does not accept events, the heartbeat is white space before the JSON.
  open(): void {
    if (this.#stream || this.hasResponded) return;
    this.#parts.waiting.delete(this);
    const buffered = this.#buffered ?? this.#toOpening();
    const stream = this.#stream = this.#parts.streams.create({
      account: () => this.account,
      transport: this.transport,
      onLost: () => {
        this.inFlight.cancelAll();
        this.#events?.lost?.();
      },
      comment: this.streams ? undefined : SPACE,
    });
    stream.push(buffered, this.#texts);
    this.hasResponded = true;
    const headers = this.streams ? STREAM_HEADERS : JSON_HEADERS;
    this.#respond(new Response(stream.toBody(), { headers }));
  }

  release(event?: EventFields): void {
    this.open();
    if (event) this.#stream?.write("", event);
    this.#stream?.end();
  }

  /** Collects messages for some microtasks, because the result may follow within them. */
  #begin(): string {
    this.#parts.waiting.delete(this);
    this.#openLater();
    return this.#toOpening();
  }

  async #openLater(): Promise<void> {
    for (let turns = TURNS; turns && !this.hasResponded; turns--) await undefined;
    if (!this.hasResponded) this.open();
  }

  #toOpening(): string {
    if (!this.streams) return SPACE;
    const opening = this.#events?.opened?.();
    return opening ? toEvent("", opening) : COMMENT;
  }

  /** Sends the reply, as the response or as the last event of the stream. */
  finish({ text, status, headers, event }: Reply): void {
    this.#parts.waiting.delete(this);
    if (text) this.#parts.core.observing?.message("out", this, text);
    if (this.#stream) return this.#endStream(this.#stream, text, event);
    this.hasResponded = true;
    const isEvent = text !== undefined && !status && !this.#acceptsJson;
    if (this.#buffered || isEvent) {
      const buffered = this.#buffered ?? this.#toOpening();
      const body = text === undefined ? buffered : buffered + toEvent(text, event);
      return this.#respond(this.#toResponse(body, { headers: STREAM_HEADERS }));
    }
    if (text === undefined) return this.#respond(new Response(null, { status: status ?? 202, headers }));
    this.#respond(
      this.#toResponse(text, { status, headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS }),
    );
  }

  #endStream(stream: EventStream, text: string | undefined, event: EventFields | undefined): void {
    if (text !== undefined) this.streams ? stream.write(text, event) : stream.push(text);
    stream.end();
  }

  // A runtime buffers a whole body until the client reads it, so a large body is sent in slices.
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
    return toRefusal({ status: 503, message, headers: RETRY_AFTER, code: INTERNAL_ERROR });
  }
}
