/**
 * Streams whose events are numbered and kept for a while, so that a client whose connection broke can read on.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */
import { INVALID_REQUEST, McpError } from "../../protocol/errors.ts";
import { toBytes } from "../../protocol/weight.ts";
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import type { InFlight } from "../../core/in_flight.ts";
import type { EventFields, Link, LinkEvents, Reply } from "../../core/link.ts";
import { createNotifier } from "../../core/watching.ts";

/** When a client whose stream ended should reconnect, in milliseconds. */
const RETRY_MS = 1000;

interface Event {
  readonly text: string;
  readonly at: number;
}

/** What all sessions of a server keep together, in bytes. */
export interface Kept {
  bytes: number;
}

/** One stream: its events in order, and the connection that reads it now. */
class Stream {
  readonly name: string;
  readonly #owner: Streams;
  /** What can be read again; the first has the number `first`. */
  readonly events: Event[];
  first: number;
  /** Number of the last event that was written to some connection. */
  written: number;
  /** Whether nothing more will come. */
  isOver: boolean;
  /** The connection that reads the stream now. */
  reader?: Link;
  /** Ends the wait of whoever attached the reader. */
  #left?: () => void;
  /** Until when a reader that is behind has no room. */
  #room?: Promise<void>;

  constructor(owner: Streams) {
    this.#owner = owner;
    this.name = crypto.randomUUID().slice(0, 13);
    this.events = [];
    this.first = 1;
    this.written = 0;
    this.isOver = false;
  }

  get last(): number {
    return this.first + this.events.length - 1;
  }

  toId(place: number): string {
    return `${this.name}_${place}`;
  }

  /** The fields of the event that opens a connection behind an event. */
  toOpening(place: number): EventFields | undefined {
    return this.#owner.primes ? { id: this.toId(place), retry: RETRY_MS } : undefined;
  }

  /** Keeps a text, and sends it to the connection that has read everything before. */
  write(text: string): Promise<void> | undefined {
    const place = this.last + 1;
    this.#owner.keep(this, text);
    if (!this.reader) return;
    if (this.written !== place - 1) return this.#room;
    this.written = place;
    return this.reader.send(text, { id: this.toId(place) });
  }

  /** Nothing more will come. */
  end(): void {
    this.isOver = true;
    if (this.written >= this.last) this.leave();
    this.#owner.tidy(this);
  }

  /** Ends the connection that reads the stream. */
  leave(): void {
    const left = this.#left;
    this.reader = this.#left = undefined;
    left?.();
  }

  /** Reads the stream by a connection; `left` is called when it no longer does. */
  readBy(link: Link, left: () => void): void {
    // No message goes to two connections: the one that read until now may be lost without being known to be.
    this.leave();
    this.reader = link;
    this.#left = left;
  }

  /** Writes what comes after an event to a new connection, as fast as it reads. Settles when it should end. */
  async replay(link: Link, after: number): Promise<void> {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    this.readBy(link, resolve);
    this.written = after;
    while (this.reader === link && this.written < this.last) {
      const place = Math.max(this.written + 1, this.first);
      // Everything was dropped before this connection could read it: the client has to begin anew.
      if (place > this.last) return this.leave();
      this.written = place;
      this.#room = link.send(this.events[place - this.first].text, { id: this.toId(place) });
      await this.#room;
    }
    if (this.isOver && this.reader === link) this.leave();
    await left;
  }
}

/** All streams of one session. */
export class Streams {
  /** Whether a stream opens with an event of its own. */
  readonly primes: boolean;
  /** Sends a notification that belongs to no request; it is lost if no client ever listened. */
  readonly notify: (text: string) => void = createNotifier((text) => this.#own?.write(text));
  readonly #core: Core;
  readonly #streams = new Map<string, Stream>();
  /** What this session keeps, and what all keep. */
  readonly #all: Kept;
  #events = 0;
  #bytes = 0;
  #isOver = false;
  /** The stream for what belongs to no request. */
  #own?: Stream;

  /** No streams yet. */
  constructor(core: Core, primes: boolean, all: Kept) {
    this.#core = core;
    this.primes = primes;
    this.#all = all;
  }

  /** Whether a connection is open. */
  get isOpen(): boolean {
    return [...this.#streams.values()].some(({ reader }) => reader);
  }

  /** A new stream that can be read again. */
  create(): Stream {
    const stream = new Stream(this);
    this.#streams.set(stream.name, stream);
    return stream;
  }

  /**
   * Keeps an event; the session's oldest make room. A session may hold as much as is free: so there is always room for
   * others, the more of them the less for each, and nobody's events are lost to somebody else's flood.
   */
  keep(stream: Stream, text: string): void {
    if (this.#isOver) return;
    const { limits: { replay }, ticker } = this.#core;
    stream.events.push({ text, at: ticker.clock.now() });
    this.#events++;
    this.#count(toBytes(text));
    const isTooMuch = () => this.#events > replay.events || this.#bytes > replay.bytes - this.#all.bytes;
    if (!isTooMuch()) return;
    for (const each of this.#streams.values()) {
      while (each.events.length && isTooMuch()) this.#drop(each);
      if (!isTooMuch()) return;
    }
  }

  /** Serves a GET: reads an old stream on, or opens the session's own. Settles when the connection should end. */
  attach(link: Link, lastEvent: string | null): Promise<void> {
    if (lastEvent !== null) return this.#resume(link, lastEvent);
    const own = this.#own ??= this.create();
    return this.#open(own, link, Math.max(own.written, own.first - 1));
  }

  /** Forgets what is too old. */
  sweep(now: number): void {
    for (const stream of this.#streams.values()) {
      while (stream.events.length && now - stream.events[0].at > this.#core.limits.replay.ms) this.#drop(stream);
    }
  }

  /** Forgets a stream that holds nothing and gets nothing. */
  tidy(stream: Stream): void {
    if (!stream.events.length && stream.isOver) this.#streams.delete(stream.name);
  }

  /** Ends the connection that no request asked for. */
  leave(): void {
    this.#own?.leave();
  }

  /** Ends every connection, and forgets everything. */
  end(): void {
    this.#isOver = true;
    for (const stream of this.#streams.values()) stream.leave();
    this.#streams.clear();
    this.#own = undefined;
    this.#count(-this.#bytes);
  }

  #resume(link: Link, lastEvent: string): Promise<void> {
    const [, name = "", digits = ""] = /^([0-9a-f-]{13})_(\d{1,15})$/.exec(lastEvent) ?? [];
    const stream = this.#streams.get(name);
    const after = Number(digits);
    if (!stream || after > stream.last || after + 1 < stream.first) {
      throw new McpError(INVALID_REQUEST, "Cannot resume the stream: what follows Last-Event-ID is no longer kept");
    }
    return this.#open(stream, link, after);
  }

  // Clients forget where they were with every connection: one that is lost before its first event would never resume.
  #open(stream: Stream, link: Link, after: number): Promise<void> {
    link.wait({ lost: () => stream.reader === link && stream.leave() });
    link.open();
    const opening = stream.toOpening(after);
    if (opening) link.send("", opening);
    return stream.replay(link, after);
  }

  #drop(stream: Stream): void {
    const [{ text }] = stream.events.splice(0, 1);
    stream.first++;
    this.#events--;
    this.#count(-toBytes(text));
    this.tidy(stream);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#all.bytes += bytes;
  }
}

/** The link of an answer that can be read again over another connection, if it becomes a stream. */
export class ReplayLink implements Link, LinkEvents {
  readonly inFlight: InFlight;
  readonly http?: Request;
  readonly headers?: Headers;
  readonly version?: string | null;
  readonly principal?: Principal;
  readonly streams: boolean;
  readonly #streams: Streams;
  readonly #session: Account;
  readonly #link: Link;
  #stream?: Stream;
  #events?: LinkEvents;
  #isWaiting?: boolean;
  /** Whether the connection ends by itself, so that it need not be ended when another one reads on. */
  #isEnding?: boolean;

  /** Wraps the link of a request of one session, which is the client if that is not known otherwise. */
  constructor({ streams, account }: { readonly streams: Streams; readonly account: Account }, link: Link) {
    this.#streams = streams;
    this.#session = account;
    this.#link = link;
    this.inFlight = link.inFlight;
    this.http = link.http;
    this.headers = link.headers;
    this.version = link.version;
    this.principal = link.principal;
    this.streams = link.streams;
  }

  get account(): Account {
    const { account } = this.#link;
    return account.key === undefined ? this.#session : account;
  }

  send(text: string): Promise<void> | undefined {
    if (!this.streams) return;
    this.wait();
    return this.#open().write(text);
  }

  wait(events?: LinkEvents): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#events = events;
    this.#link.wait(this);
  }

  // A stream that is opened only to carry the reply cannot be read again.
  opened(): EventFields | undefined {
    return this.#isEnding && !this.#stream ? undefined : this.#open().toOpening(0);
  }

  lost(): void {
    if (this.#stream?.reader === this.#link) this.#stream.leave();
    this.#events?.lost?.();
  }

  open(): void {
    this.wait();
    this.#link.open();
  }

  /** Ends the connection: the rest can be read over another one. */
  release(event?: EventFields): void {
    if (!this.streams) return;
    this.open();
    this.#isEnding = true;
    if (this.#stream?.reader === this.#link) this.#stream.leave();
    this.#link.release(event);
  }

  /** The reply as this connection gets it: with the number of its event, or without a text if another one reads on. */
  finish(reply: Reply): Reply {
    const stream = this.#stream;
    this.#isEnding = true;
    if (!stream) return reply;
    const { text } = reply;
    if (stream.reader !== this.#link) {
      if (text !== undefined) stream.write(text);
      stream.end();
      return {};
    }
    if (text !== undefined) {
      this.#streams.keep(stream, text);
      stream.written = stream.last;
    }
    const event = { id: stream.toId(stream.last) };
    stream.end();
    return { ...reply, event };
  }

  #open(): Stream {
    if (this.#stream) return this.#stream;
    const stream = this.#stream = this.#streams.create();
    stream.readBy(this.#link, () => this.#isEnding || this.#link.release());
    return stream;
  }
}
