/**
 * The streams of one session, kept for a while so that a client whose connection broke can read on.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */
import { INVALID_REQUEST, McpError } from "../../protocol/errors.ts";
import type { EventFields, Journal, Link } from "../../core/call.ts";
import type { Core } from "../../core/core.ts";
import { newsTeller } from "../../core/changes.ts";

/** When a client whose stream ended should come back, in milliseconds. */
const RETRY_MS = 1000;

interface Event {
  readonly text: string;
  readonly at: number;
}

/** What all sessions of a server keep together, in characters. */
export interface Kept {
  size: number;
}

/** One stream: its events in order, and the connection that reads it now. */
class Stream implements Journal {
  readonly #owner: Streams;
  #name?: string;
  /** What can be read again; the first has the number `first`. */
  events: Event[] = [];
  first = 1;
  /** Number of the last event that was written to some connection. */
  written = 0;
  /** Whether nothing more will come. */
  isOver = false;
  link?: Link;
  /** Ends the connection. */
  leave?: () => void;

  constructor(owner: Streams) {
    this.#owner = owner;
  }

  /** Made when it is asked for: most answers are no stream, and need none. */
  get name(): string {
    return this.#name ??= crypto.randomUUID().slice(0, 13);
  }

  get last(): number {
    return this.first + this.events.length - 1;
  }

  open(link: Link): EventFields | undefined {
    this.#owner.add(this);
    this.#read(link, () => link.release());
    return this.#owner.primes ? { id: this.toId(0), retry: RETRY_MS } : undefined;
  }

  write(text: string): Promise<void> | undefined {
    const place = this.last + 1;
    this.#owner.keep(this, text);
    if (!this.link) return;
    this.written = place;
    return this.link.send(text, { id: this.toId(place) });
  }

  end(): void {
    this.isOver = true;
    this.leave?.();
    this.#owner.tidy(this);
  }

  toId(place: number): string {
    return `${this.name}_${place}`;
  }

  /** Writes what comes after an event to a new connection, which stays until the stream is over. */
  take(link: Link, after: number): Promise<void> | undefined {
    // No message goes to two connections: the one that read until now may be lost, and not known to be.
    this.leave?.();
    this.events.slice(after + 1 - this.first).forEach(({ text }, i) => {
      link.send(text, { id: this.toId(after + 1 + i) });
    });
    this.written = this.last;
    if (this.isOver) return;
    return new Promise((resolve) => this.#read(link, resolve));
  }

  #read(link: Link, end: () => void): void {
    this.link = link;
    this.leave = link.onClose = () => {
      if (this.link === link) this.link = this.leave = undefined;
      end();
    };
  }
}

/** All streams of one session. */
export class Streams {
  /** Whether a stream opens with an event of its own. */
  readonly primes: boolean;
  /** Tells something that belongs to no request; nobody hears it if no client ever listened. */
  readonly tell: (text: string) => void = newsTeller((text) => this.#own?.write(text));
  readonly #core: Core;
  readonly #streams = new Map<string, Stream>();
  /** What this session keeps, and what all keep. */
  readonly #all: Kept;
  #events = 0;
  #size = 0;
  #isOver = false;
  /** The stream for what belongs to no request. */
  #own?: Stream;

  /** No streams yet. */
  constructor(core: Core, primes: boolean, all: Kept) {
    this.#core = core;
    this.primes = primes;
    this.#all = all;
  }

  /** Whether a connection is open that no request holds. */
  get isOpen(): boolean {
    return [...this.#streams.values()].some(({ link }) => link);
  }

  /** The journal for the answer to one request. */
  create(): Journal {
    return new Stream(this);
  }

  add(stream: Stream): void {
    this.#streams.set(stream.name, stream);
  }

  /**
   * Keeps an event; the session's oldest make room. A session may hold as much as is free: so there is always room for
   * others, the more of them the less for each, and nobody's events are lost to somebody else's flood.
   */
  keep(stream: Stream, text: string): void {
    if (this.#isOver) return;
    const { limits, ticker } = this.#core;
    stream.events.push({ text, at: ticker.clock.now() });
    this.#events++;
    this.#count(text.length);
    for (const each of this.#streams.values()) {
      while (
        each.events.length && (this.#events > limits.replayEvents || this.#size > limits.replayBytes - this.#all.size)
      ) {
        this.#drop(each);
      }
    }
  }

  /** Serves a GET: reads an old stream on, or opens the session's own; settles when the connection should end. */
  attach(link: Link, lastEvent: string | null): Promise<void> | undefined {
    link.quick = true;
    if (lastEvent !== null) return this.#resume(link, lastEvent);
    if (this.#own?.link) {
      throw new McpError(INVALID_REQUEST, "Cannot open the stream: this session has one already");
    }
    const own = this.#own ??= new Stream(this);
    link.open();
    this.add(own);
    const after = Math.max(own.written, own.first - 1);
    if (this.primes) link.send("", { id: own.toId(after), retry: RETRY_MS });
    return own.take(link, after);
  }

  /** Forgets what is too old. */
  sweep(now: number): void {
    for (const stream of this.#streams.values()) {
      while (stream.events.length && now - stream.events[0].at > this.#core.limits.replayMs) this.#drop(stream);
    }
  }

  /** Forgets a stream that holds nothing and gets nothing. */
  tidy(stream: Stream): void {
    if (!stream.events.length && stream.isOver) this.#streams.delete(stream.name);
  }

  /** Ends the connection that no request asked for. */
  leave(): void {
    this.#own?.leave?.();
  }

  /** Ends every connection, and forgets everything. */
  end(): void {
    this.#isOver = true;
    for (const { leave } of this.#streams.values()) leave?.();
    this.#streams.clear();
    this.#own = undefined;
    this.#count(-this.#size);
  }

  #resume(link: Link, lastEvent: string): Promise<void> | undefined {
    const [, name = "", place = ""] = /^([0-9a-f-]{13})_(\d{1,15})$/.exec(lastEvent) ?? [];
    const stream = this.#streams.get(name);
    const after = Number(place);
    if (!stream || after > stream.last || after + 1 < stream.first) {
      throw new McpError(INVALID_REQUEST, "Cannot resume the stream: what follows Last-Event-ID is no longer kept");
    }
    link.open();
    // Clients forget where they were with every connection: one that is lost before an event would never come back.
    if (this.primes) link.send("", { id: lastEvent, retry: RETRY_MS });
    return stream.take(link, after);
  }

  #drop(stream: Stream): void {
    const [{ text }] = stream.events.splice(0, 1);
    stream.first++;
    this.#events--;
    this.#count(-text.length);
    this.tidy(stream);
  }

  #count(characters: number): void {
    this.#size += characters;
    this.#all.size += characters;
  }
}
