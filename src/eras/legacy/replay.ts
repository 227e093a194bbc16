/**
 * Resumable streams: events get ids and are kept for a while, so that a client can resume after a lost connection.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */
import { INVALID_REQUEST, McpError } from "../../protocol/errors.ts";
import { toBytes } from "../../protocol/weight.ts";
import type { Account, Holding } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { EventFields, Link } from "../../core/call/link.ts";
import type { SharedSession, WrittenStream } from "../../core/store.ts";
import { createNotifier } from "../../core/watching.ts";

/** Delay in milliseconds before a client should reconnect. */
const RETRY_MS = 1000;

const ENDED = "Cannot open the stream: the session has ended";

function toUnknown(): McpError {
  return new McpError(
    INVALID_REQUEST,
    "Cannot resume the stream: events after Last-Event-ID are no longer kept, or the instance that sent them has ended",
  );
}

interface Event {
  readonly text: string;
  readonly at: number;
}

/** Options of a stream. */
interface StreamOptions {
  readonly isOwn?: boolean;
  /** Name of a stream that another instance writes, and the number of the last event that the client has. */
  readonly foreign?: { readonly name: string; readonly after: number };
}

/** One stream: its events in order, and its current connection. */
export class Stream implements WrittenStream {
  readonly name: string;
  /** Whether it carries notifications outside of any request. */
  readonly isOwn: boolean;
  /** Whether another instance writes its events. */
  readonly isForeign: boolean;
  readonly #owner: Streams;
  /** Kept events. The first has the number `first`. */
  readonly events: Event[];
  first: number;
  /** Number of the last event that was written to any connection. */
  written: number;
  /** Whether the stream has ended. */
  isOver: boolean;
  /** The current connection of the stream. */
  reader?: Link;
  /** Settles the promise of the current connection. */
  #onDisconnect?: () => void;
  /** Settles when a slow connection has room. */
  #room?: Promise<void>;

  constructor(owner: Streams, { isOwn = false, foreign }: StreamOptions = {}) {
    this.#owner = owner;
    this.name = foreign?.name ?? crypto.randomUUID().slice(0, STREAM_NAME_LENGTH);
    this.isOwn = isOwn;
    this.isForeign = !!foreign;
    this.events = [];
    this.first = (foreign?.after ?? 0) + 1;
    this.written = foreign?.after ?? 0;
    this.isOver = false;
  }

  get last(): number {
    return this.first + this.events.length - 1;
  }

  /** Whether the reply that ends the stream is still to come. */
  get isReplying(): boolean {
    return !this.isOver && !this.isOwn && !this.isForeign;
  }

  /** Returns the texts of the events after a place. */
  textsAfter(place: number): string[] {
    return this.events.slice(Math.max(0, place + 1 - this.first)).map(({ text }) => text);
  }

  /** Returns the fields of the first event of a connection that continues after `place`. */
  toOpening(place: number): EventFields | undefined {
    return this.#owner.hasPriming ? { id: toEventId(this.name, place), retry: RETRY_MS } : undefined;
  }

  /** Keeps a text as an event. Sends it if the connection is up to date. */
  write(text: string): Promise<void> | undefined {
    const place = this.last + 1;
    this.#owner.keep(this, text);
    if (!this.reader) return;
    if (this.written !== place - 1) return this.#room;
    this.written = place;
    return this.reader.send(text, { id: toEventId(this.name, place) });
  }

  /** Ends the stream. */
  end(): void {
    this.isOver = true;
    if (this.written >= this.last) this.disconnect();
    if (this.#owner.isShared) this.#owner.share(this);
    this.#owner.tidy(this);
  }

  /** Closes the current connection of the stream. */
  disconnect(): void {
    const onDisconnect = this.#onDisconnect;
    this.reader = this.#onDisconnect = undefined;
    onDisconnect?.();
  }

  /** Connects the stream. `onDisconnect` is called when the connection no longer reads it. */
  connect(link: Link, onDisconnect: () => void): void {
    // A message must not go to two connections. The previous one may be lost without the server knowing.
    this.disconnect();
    this.reader = link;
    this.#onDisconnect = onDisconnect;
  }

  /** Writes the events after `after` to a new connection, as fast as it reads. Settles when it should close. */
  async replay(link: Link, after: number): Promise<void> {
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    this.connect(link, resolve);
    this.written = after;
    while (this.reader === link && this.written < this.last) {
      const place = Math.max(this.written + 1, this.first);
      // All events were dropped before the client could read them, so it must start again.
      if (place > this.last) return this.disconnect();
      this.written = place;
      this.#room = link.send(this.events[place - this.first].text, { id: toEventId(this.name, place) });
      await this.#room;
    }
    if (this.isOver && this.reader === link) this.disconnect();
    await disconnected;
  }
}

/** The streams of one session. */
export class Streams {
  /** Whether each stream starts with an empty event, which has an id. */
  readonly hasPriming: boolean;
  /** Sends a notification outside of any request. It is lost if the client has never opened a stream. */
  readonly notify: (text: string, key?: string) => void = createNotifier((text) => this.#own?.write(text));
  readonly #core: Core;
  readonly #streams = new Map<string, Stream>();
  readonly #account: Account;
  /** The bytes of the kept events. */
  #held?: Holding;
  readonly #shared?: SharedSession;
  /** Whether other instances can send the events. */
  readonly isShared: boolean;
  #events = 0;
  #isOver = false;
  /** The stream for notifications outside of any request. */
  #own?: Stream;

  /** Creates an empty set of streams. */
  constructor(core: Core, hasPriming: boolean, account: Account, shared?: SharedSession) {
    this.#core = core;
    this.hasPriming = hasPriming;
    this.#account = account;
    this.#shared = shared;
    this.isShared = !!shared;
  }

  /** Whether a connection is open. */
  get isOpen(): boolean {
    return [...this.#streams.values()].some(({ reader }) => reader);
  }

  /** Creates a resumable stream. */
  create(options?: StreamOptions): Stream {
    const stream = new Stream(this, options);
    this.#streams.set(stream.name, stream);
    // A stream can be resumed before its first event.
    if (this.#shared) this.share(stream);
    return stream;
  }

  /**
   * Keeps an event. Beyond `replay.events`, the session drops its oldest events. Beyond `replay.bytes`, the client that
   * keeps most drops its oldest events, so one busy session cannot evict those of another client.
   */
  keep(stream: Stream, text: string): void {
    // The connection of a stream that was dropped may still be open.
    if (!this.#streams.has(stream.name)) return;
    const { limits: { replay }, observer, ticker } = this.#core;
    const isKept = this.#hold(toBytes(text));
    // No event can be resumed from across a gap.
    while (!isKept && stream.events.length) this.#drop(stream);
    stream.events.push({ text, at: ticker.clock.now() });
    this.#events++;
    if (this.#shared) this.share(stream);
    if (!isKept) this.#removeFirst(stream);
    if (this.#events <= replay.events) return;
    observer.limit?.({ limit: "replay.events" });
    while (this.#events > replay.events && this.#dropOldest());
  }

  /** Writes the events of a stream to the store, so that other instances can send them. */
  share(stream: Stream): void {
    if (!stream.isForeign) this.#shared?.write(stream);
  }

  /** Closes the connection of a stream, or of the session's own, because another instance writes to the client. */
  yield(name: string | undefined): void {
    if (name !== undefined) return this.#streams.get(name)?.disconnect();
    this.#own?.end();
    this.#own?.disconnect();
    this.#own = undefined;
  }

  /** Serves a GET request: resumes a stream, or opens the session's own. Settles when the connection should close. */
  attach(link: Link, lastEvent: string | null): Promise<void> {
    if (this.#isOver) throw new McpError(INVALID_REQUEST, ENDED);
    if (lastEvent !== null) return this.#resume(link, lastEvent);
    const own = this.#toOwn();
    return this.#open(own, link, Math.max(own.written, own.first - 1));
  }

  #toOwn(): Stream {
    this.#shared?.claim();
    return this.#own ??= this.create({ isOwn: true });
  }

  /** Drops expired events. */
  sweep(now: number): void {
    const before = this.#events;
    for (const stream of this.#streams.values()) {
      while (stream.events.length && now - stream.events[0].at > this.#core.limits.replay.ms) this.#drop(stream);
      if (!stream.isOver && !stream.isForeign) this.#shared?.renew(stream);
    }
    if (this.#events < before) this.#core.observing?.reach("replay.ms");
  }

  /** Removes a stream that has ended and keeps no events, or whose session has ended. */
  tidy(stream: Stream): void {
    if (!stream.isOver || stream.events.length && !this.#isOver) return;
    this.#streams.delete(stream.name);
    if (!this.#isOver) return;
    stream.disconnect();
    if (!this.#streams.size) this.#held?.end();
  }

  /** Closes the connection of the session's own stream. */
  disconnect(): void {
    this.#own?.disconnect();
  }

  /** Closes all connections and drops all events. The stream of a call ends with the reply of the call. */
  end(): void {
    this.#isOver = true;
    this.#own = undefined;
    for (const stream of [...this.#streams.values()]) if (!stream.isReplying) stream.end();
    if (!this.#streams.size) this.#held?.end();
  }

  #resume(link: Link, lastEvent: string): Promise<void> {
    const id = readEventId(lastEvent);
    if (!id) throw toUnknown();
    const { name, place: after } = id;
    const stream = this.#streams.get(name);
    if (!stream && this.#shared) return this.#resumeForeign(link, { name, after });
    if (!stream || after > stream.last || after + 1 < stream.first) throw toUnknown();
    if (stream.isOwn && stream.isOver) return this.#takeOver(link, { name, after }, stream.textsAfter(after));
    if (this.#shared) this.#claim(stream);
    return this.#open(stream, link, after);
  }

  // Resumes a stream of another instance. The session's own stream goes on in this process. Other streams are still
  // written by the instance that runs their call.
  async #resumeForeign(link: Link, foreign: { readonly name: string; readonly after: number }): Promise<void> {
    const found = await this.#shared?.findStream(foreign.name, foreign.after);
    if (!found || this.#isOver) throw toUnknown();
    const known = this.#streams.get(foreign.name);
    if (known) return this.#resume(link, toEventId(known.name, foreign.after));
    if (found.isOwn) return this.#takeOver(link, foreign, found.texts);
    const stream = this.create({ foreign });
    for (const text of found.texts) stream.write(text);
    const end = () => {
      stream.end();
      // The stream is written to its end, so later requests find it in the store.
      this.#streams.delete(stream.name);
    };
    if (found.isOver) stream.end();
    else found.follow((text) => void stream.write(text), end);
    this.#shared?.claim(stream.name);
    return this.#open(stream, link, foreign.after);
  }

  // Clients forget their position with each connection. Without a first event, a client that loses the new connection
  // early could not resume.
  #open(stream: Stream, link: Link, after: number): Promise<void> {
    link.wait({ lost: () => stream.reader === link && stream.disconnect() });
    link.open();
    const opening = stream.toOpening(after);
    if (opening) link.send("", opening);
    return stream.replay(link, after);
  }

  async #takeOver(
    link: Link,
    { name, after }: { readonly name: string; readonly after: number },
    texts: readonly string[],
  ): Promise<void> {
    const own = this.#toOwn();
    link.wait({ lost: () => own.reader === link && own.disconnect() });
    link.open();
    if (this.hasPriming) link.send("", { id: toEventId(name, after), retry: RETRY_MS });
    for (const [index, text] of texts.entries()) {
      await link.send(text, { id: toEventId(name, after + index + 1) });
    }
    return await own.replay(link, Math.max(own.written, own.first - 1));
  }

  #claim(stream: Stream): void {
    this.#shared?.claim(stream.isOwn ? undefined : stream.name);
  }

  // The holding ends with the last event, also while there is made room for another one.
  #hold(bytes: number): boolean {
    this.#held?.touch();
    if (this.#held?.grow(bytes)) return true;
    if (this.#held) return false;
    const { bytes: total } = this.#core.limits.replay;
    const pot = this.#account.pot({ name: "replay.bytes", total, isCache: true, losesLargest: true });
    this.#held = pot.keep(this.#account, bytes, () => this.#dropOldest());
    return !!this.#held;
  }

  // Drops the oldest event of the stream that was created first.
  #dropOldest(): boolean {
    for (const stream of this.#streams.values()) {
      if (!stream.events.length) continue;
      this.#drop(stream);
      return true;
    }
    return false;
  }

  #drop(stream: Stream): void {
    this.#held?.add(-toBytes(this.#removeFirst(stream)));
    if (this.#events) return;
    this.#held?.end();
    this.#held = undefined;
  }

  #removeFirst(stream: Stream): string {
    const [{ text }] = stream.events.splice(0, 1);
    stream.first++;
    this.#events--;
    this.tidy(stream);
    return text;
  }
}

/** An event in a stream. */
interface EventPlace {
  /** Name of the stream. It tells streams of one session apart. */
  readonly name: string;
  /** Number of the event. The first has 1, and 0 is the place before it. */
  readonly place: number;
}

/** Number of characters in the name of a stream: the start of a UUID. */
const STREAM_NAME_LENGTH = 13;

/** Returns the id of an event. */
export function toEventId(name: string, place: number): string {
  return `${name}_${place}`;
}

/** Reads the id of an event. Returns `undefined` for a text that is none. */
function readEventId(id: string): EventPlace | undefined {
  const [, name, digits] = EVENT_ID.exec(id) ?? [];
  return name === undefined ? undefined : { name, place: Number(digits) };
}

const EVENT_ID = new RegExp(`^([0-9a-f-]{${STREAM_NAME_LENGTH}})_(\\d{1,15})$`);
