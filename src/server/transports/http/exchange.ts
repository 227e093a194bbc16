/**
 * The link of a message in an HTTP request.
 */
import type { Account } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";
import type { Principal } from "../../call/context.ts";
import { InFlight } from "../../call/in_flight.ts";
import type { EventFields, HeaderReader, Link, LinkEvents, Reply, SeenRequest } from "../../call/link.ts";
import type { Aging } from "../../../core/aging.ts";
import { createResponse, type LightInit } from "../../../core/light_request.ts";
import type { Accepts } from "./accept.ts";
import { findSignal } from "./access.ts";
import { Caller } from "./caller.ts";
import { COMMENT, type EventStream, toEvent } from "./event_stream.ts";
import type { HttpParts } from "./upgrades.ts";

/** The heartbeat in a JSON body: white space, which JSON parsers ignore. */
const SPACE = "\n";

/**
 * Number of microtasks to wait before a stream opens. Messages that a handler sends without waiting for I/O are then
 * sent together with its result. Without this wait, a call with ten progress messages would take 2.5 times the CPU time
 * on Deno, and 1.6 times on Bun.
 */
const TURNS = 64;

export interface ExchangeParts extends HttpParts {
  readonly core: Core;
  /** Exchanges whose call is running and whose response has not started. */
  readonly waiting: Aging<Exchange>;
}

type OnOpen = (body: ReadableStream<Uint8Array>) => void;

/** The part of the response that is not sent yet when the reply is known. */
export interface Rest {
  /** The events of a short stream. `undefined` if no message was sent before the reply. */
  readonly events?: string;
  readonly reply: Reply;
}

export class Exchange implements Link {
  // Keeps the hidden class of exchanges in memory. Without this object, engines discard the hidden class together with
  // the last exchange, and must then compile the code again. In a measurement on Deno, `fetch` then took 7 % more CPU
  // time.
  static readonly #model: Exchange = new Exchange(
    new Caller({ headers: new Headers() } as Request, undefined), // The cast is safe, because only the headers are read.
    { json: true, stream: true },
    {} as ExchangeParts, // The cast is safe, because the constructor does not read the parts.
  );
  readonly transport = "http";
  readonly http: Pick<SeenRequest, "request" | "toChecks">;
  readonly headers: HeaderReader;
  readonly version: string | null;
  readonly principal?: Principal;
  readonly signal?: AbortSignal;
  readonly streams: boolean;
  readonly inFlight: InFlight;
  readonly #caller: Caller;
  readonly #acceptsJson: boolean;
  readonly #parts: ExchangeParts;
  #onOpen?: OnOpen;
  /** The response body, if the stream opened before `whenOpen` was called. */
  #opened?: ReadableStream<Uint8Array>;
  #isOver: boolean;
  #events?: LinkEvents;
  /** Messages before the response, as the text of events. The result often follows, and no stream is needed. */
  #buffered?: string;
  /** Number of events in the buffer, including the opening event. */
  #texts: number;
  #stream?: EventStream;

  constructor(caller: Caller, accepts: Accepts, parts: ExchangeParts) {
    this.#caller = caller;
    this.#acceptsJson = accepts.json;
    this.#parts = parts;
    this.#texts = 1;
    this.#isOver = false;
    this.inFlight = new InFlight();
    this.http = caller.seen ?? caller;
    this.headers = (caller.seen ?? caller).headers;
    this.version = caller.headers.get("mcp-protocol-version");
    this.principal = caller.principal;
    this.signal = findSignal(caller.request, caller.info);
    this.streams = accepts.stream;
  }

  get peer(): string | undefined {
    return this.#parts.peer(this.#caller);
  }

  get account(): Account {
    return this.#parts.account(this.#caller);
  }

  createResponse(body: string | null, init: LightInit): Response {
    return createResponse(this.#caller.request, body, init);
  }

  /** Calls a function when the server responds with a stream, or immediately if the stream is already open. */
  whenOpen(onOpen: OnOpen): void {
    if (this.#opened) onOpen(this.#opened);
    else this.#onOpen = onOpen;
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
    if (!this.#parts.core.streams) return;
    if (this.#buffered === undefined && !this.#stream && !this.#isOver) this.#parts.waiting.add(this);
  }

  // Starts the response. If the client does not accept event streams, the response is JSON, and white space before the
  // JSON serves as heartbeats.
  open(): void {
    if (this.#stream || this.#isOver || !this.#parts.core.streams) return;
    this.#parts.waiting.delete(this);
    const buffered = this.#buffered ?? this.#toOpening();
    const stream = this.#stream = this.#parts.streams.create({
      account: () => this.account,
      transport: this.transport,
      onLost: () => {
        this.inFlight.end();
        this.#events?.lost?.();
      },
      comment: this.streams ? undefined : SPACE,
      signal: this.signal,
    });
    stream.push(buffered, this.#texts);
    const body = stream.toBody();
    if (this.#onOpen) this.#onOpen(body);
    else this.#opened = body;
  }

  release(event?: EventFields): void {
    this.open();
    if (event) this.#stream?.write("", event);
    this.#stream?.end();
  }

  waitUntil(work: Promise<unknown>): void {
    const { info } = this.#caller;
    const { report } = this.#parts.core;
    if (typeof info?.waitUntil !== "function") return;
    // The call has a result, and keeps it if the platform refuses the work, as Workers do without `this`.
    try {
      const waiting: unknown = info.waitUntil(work);
      Promise.resolve(waiting).catch((error) => void report(error));
    } catch (error) {
      report(error);
    }
  }

  /** Collects messages for some microtasks, because the result may follow within this time. */
  #begin(): string {
    this.#parts.waiting.delete(this);
    this.#openLater();
    return this.#toOpening();
  }

  async #openLater(): Promise<void> {
    for (let turns = TURNS; turns && !this.#isOver; turns--) await undefined;
    this.open();
  }

  #toOpening(): string {
    if (!this.streams) return SPACE;
    const opening = this.#events?.opened?.();
    return opening ? toEvent("", opening) : COMMENT;
  }

  /** Returns the data that is not sent yet, or `undefined` if the stream sends the reply. */
  finish(reply: Reply): Rest | undefined {
    const { text, status, event } = reply;
    this.#parts.waiting.delete(this);
    if (text) this.#parts.core.observing?.message("out", this, text);
    this.#isOver = true;
    if (this.#stream) return this.#endStream(this.#stream, reply);
    const isEvent = text !== undefined && !status && !this.#acceptsJson;
    if (!this.#buffered && !isEvent) return { reply };
    const buffered = this.#buffered ?? this.#toOpening();
    return { reply, events: text === undefined ? buffered : buffered + toEvent(text, event) };
  }

  #endStream(stream: EventStream, { text, event }: Reply): undefined {
    if (text !== undefined) this.streams ? stream.write(text, event) : stream.push(text);
    stream.end();
  }
}
