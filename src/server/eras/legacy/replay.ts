/**
 * Resumable streams. Each event has an id and is stored for a limited time, so that a client can resume the stream
 * after a lost connection.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 */
import { INVALID_REQUEST, McpError } from "../../../core/protocol/errors.ts";
import { toBytes } from "../../../core/protocol/weight.ts";
import type { Account, Holding } from "../../capacity/account.ts";
import { toCallerPrint } from "../../call/caller_print.ts";
import type { Principal } from "../../call/context.ts";
import type { Core } from "../../engine/core.ts";
import type { EventFields, Link } from "../../call/link.ts";
import type { HandlerCall } from "../../call/handler_call.ts";
import type { SharedSession, WrittenStream } from "../../engine/store.ts";
import { createNotifier } from "../../engine/watching.ts";
import { sha256 } from "../../../core/kit/sha256.ts";
import { dependOnCaller } from "./handler_calls.ts";

/** Milliseconds that a client should wait before it reconnects. */
const RETRY_MS = 1000;

const ENDED = "Cannot open the stream: the session has ended";

function toUnknown(): McpError {
  return new McpError(
    INVALID_REQUEST,
    "Cannot resume the stream: the events after Last-Event-ID are no longer kept, or the instance that sent the stream has ended",
  );
}

interface Event {
  readonly text: string;
  readonly at: number;
}

interface StreamOptions {
  readonly isOwn?: boolean;
  readonly calls?: readonly HandlerCall[];
  readonly principal?: Principal;
  /** Where the client resumes a stream of another instance: its name, and the number of the last received event. */
  readonly foreign?: { readonly name: string; readonly after: number };
}

/** The position at which a client resumes a stream, its caller, and the check of its rights to the stream. */
interface Resumed {
  readonly name: string;
  readonly after: number;
  readonly mayUse: MayUse;
  readonly principal?: Principal;
}

/** Tests whether the caller may make these calls. Rejects with the error for the client if the caller lacks a scope. */
type MayUse = (calls: readonly HandlerCall[]) => Promise<boolean>;

export class Stream implements WrittenStream {
  readonly name: string;
  /** Whether this is a standalone stream, which carries notifications outside of any request. */
  readonly isOwn: boolean;
  calls?: readonly HandlerCall[];
  /**
   * The text of the only caller to whom the events may be sent. `undefined` if each caller with the rights to `calls`
   * may read them, or if the caller cannot be compared.
   */
  readonly callerPrint?: string;
  /** The principal of the latest connection of a standalone stream, which decides what the stream carries. */
  principal?: Principal;
  /** Sends a notification. Set only for a standalone stream. */
  readonly notify?: (text: string, key?: string) => void;
  /** Size of `calls` and `callerPrint` in bytes. */
  weight: number;
  /** Whether another instance writes the events of this stream. */
  readonly isForeign: boolean;
  readonly #owner: Streams;
  /** The principal of the caller that has opened the stream. */
  readonly #opener?: Principal;
  /** The kept events, numbered consecutively from `first`. */
  readonly events: Event[];
  first: number;
  /** Number of the last event that was written to a connection. */
  written: number;
  isOver: boolean;
  reader?: Link;
  /** Resolves the promise for which the current connection waits before it closes. */
  #onDisconnect?: () => void;
  /** Backpressure: settles when a slow client has read enough for the next event. */
  #room?: Promise<void>;

  constructor(owner: Streams, { isOwn = false, calls, principal, foreign }: StreamOptions = {}) {
    this.#owner = owner;
    this.#opener = principal;
    this.name = foreign?.name ?? crypto.randomUUID().slice(0, STREAM_NAME_LENGTH);
    this.isOwn = isOwn;
    this.calls = calls;
    this.notify = isOwn ? createNotifier((text) => this.write(text)) : undefined;
    this.callerPrint = isOwn || calls && dependOnCaller(calls) ? toCallerPrint(principal) : undefined;
    this.weight = toWeight(this);
    this.isForeign = !!foreign;
    this.events = [];
    this.first = (foreign?.after ?? 0) + 1;
    this.written = foreign?.after ?? 0;
    this.isOver = false;
  }

  get last(): number {
    return this.first + this.events.length - 1;
  }

  /** Whether the stream still waits for the reply of a call, which ends the stream. */
  get isReplying(): boolean {
    return !this.isOver && !this.isOwn && !this.isForeign;
  }

  textsAfter(place: number): string[] {
    return this.events.slice(Math.max(0, place + 1 - this.first)).map(({ text }) => text);
  }

  /** Returns the fields of the empty first event after event `place`. `undefined` for revisions without this event. */
  toOpening(place: number): EventFields | undefined {
    return this.#owner.hasPriming ? { id: toEventId(this.name, place), retry: RETRY_MS } : undefined;
  }

  /** Adds a text as an event, and sends it if all earlier events were sent. Otherwise `replay` sends the event. */
  write(text: string): Promise<void> | undefined {
    const place = this.last + 1;
    this.#owner.keep(this, text);
    if (!this.reader) return;
    if (this.written !== place - 1) return this.#room;
    this.written = place;
    return this.reader.send(text, { id: toEventId(this.name, place) });
  }

  /** Ends the stream. A connection stays open until all events are sent. */
  end(): void {
    this.isOver = true;
    if (this.written >= this.last) this.disconnect();
    if (this.#owner.isShared) this.#owner.share(this);
    this.#owner.tidy(this);
  }

  /**
   * Replaces the calls after a handler has begun to read a resource. A caller that has resumed the stream before must
   * resume it again, because this caller may lack the rights to the resource.
   */
  limit(calls: readonly HandlerCall[]): void {
    this.calls = calls;
    const before = this.weight;
    this.weight = toWeight(this);
    this.#owner.reweigh(this, this.weight - before);
    if (this.reader && !isSame(this.reader.principal, this.#opener)) this.disconnect();
  }

  disconnect(): void {
    const onDisconnect = this.#onDisconnect;
    this.reader = this.#onDisconnect = undefined;
    onDisconnect?.();
  }

  /** Calls `onDisconnect` when `link` should be closed. */
  connect(link: Link, onDisconnect: () => void): void {
    // Close the previous connection, because each message goes to one connection only. The server may not have noticed
    // yet that the previous connection is lost.
    this.disconnect();
    this.reader = link;
    this.#onDisconnect = onDisconnect;
  }

  /** Writes the events after event `after`, as fast as the client reads. Settles when the connection should close. */
  async replay(link: Link, after: number): Promise<void> {
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    this.connect(link, resolve);
    this.written = after;
    while (this.reader === link && this.written < this.last) {
      const place = Math.max(this.written + 1, this.first);
      // The session dropped all remaining events before the client could read them. Close the connection, so that the
      // client resumes again.
      if (place > this.last) return this.disconnect();
      this.written = place;
      this.#room = link.send(this.events[place - this.first].text, { id: toEventId(this.name, place) });
      await this.#room;
    }
    if (this.isOver && this.reader === link) this.disconnect();
    await disconnected;
  }
}

export class Streams {
  /**
   * Whether each stream starts with an empty event, whose id lets clients resume the stream before the first message.
   */
  readonly hasPriming: boolean;
  readonly #core: Core;
  // Bound: `replay.events`, and `connections.streamsPerClient` for streams without events.
  readonly #streams = new Map<string, Stream>();
  readonly #account: Account;
  /** The memory charged for the kept events. */
  #held?: Holding;
  readonly #shared?: SharedSession;
  /** Whether other instances can send the events of these streams. */
  readonly isShared: boolean;
  #events = 0;
  #isOver = false;
  /**
   * The standalone streams, for notifications outside of any request. The stream that was opened last comes last. The
   * client's share of `connections.streams` limits their number, because a new connection takes a stream without a
   * connection.
   */
  // Bound: `connections.streamsPerClient`.
  #own: Stream[] = [];

  constructor(core: Core, hasPriming: boolean, account: Account, shared?: SharedSession) {
    this.#core = core;
    this.hasPriming = hasPriming;
    this.#account = account;
    this.#shared = shared;
    this.isShared = !!shared;
  }

  /** Whether a client is connected to one of the streams. */
  get isOpen(): boolean {
    return [...this.#streams.values()].some(({ reader }) => reader);
  }

  /** The stream for the next notification. `undefined` if the client has never opened a standalone stream. */
  get listener(): Stream | undefined {
    // Each notification goes to one stream only. Choose the stream that was opened last, because the server may not
    // have noticed yet that an earlier connection is lost. Without a connection, the client can resume that stream later.
    return this.#own.findLast(({ reader }) => reader) ?? this.#own.at(-1);
  }

  create(options?: StreamOptions): Stream {
    const stream = new Stream(this, options);
    this.#streams.set(stream.name, stream);
    // Share the stream before its first event, because a client can resume the stream from its beginning.
    if (this.#shared) this.share(stream);
    return stream;
  }

  /**
   * Keeps an event. Above `replay.events`, the session drops its oldest events. Above `replay.bytes`, the client with
   * the most bytes loses its oldest events, so that a busy client cannot evict the events of other clients.
   */
  keep(stream: Stream, text: string): void {
    // Keep no event of a stream that was dropped while its connection was still open, because the client can no longer
    // resume this stream.
    if (!this.#streams.has(stream.name)) return;
    const { limits: { replay }, observer, ticker } = this.#core;
    const hadEvents = stream.events.length > 0;
    const isKept = this.#hold(toCharge(stream, text));
    // Making room may have dropped the stream's own events, and with them the charge for the stream's weight.
    if (isKept && hadEvents && !stream.events.length) this.#held?.add(stream.weight);
    // Drop all earlier events as well, because a client that resumes after an earlier event would miss the event that
    // cannot be kept.
    while (!isKept && stream.events.length) this.#drop(stream);
    stream.events.push({ text, at: ticker.clock.now() });
    this.#events++;
    if (this.#shared) this.share(stream);
    if (!isKept) this.#removeFirst(stream);
    if (this.#events <= replay.events) return;
    observer.limit?.({ limit: "replay.events" });
    while (this.#events > replay.events && this.#dropOldest());
  }

  /** Charges a change of a stream's weight, which is charged together with its events. */
  reweigh({ events }: Stream, bytes: number): void {
    if (events.length) this.#held?.add(bytes);
  }

  /** Writes the events of a stream to the store, so that other instances can resume the stream. */
  share(stream: Stream): void {
    if (!stream.isForeign) this.#shared?.streams.write(stream);
  }

  /**
   * Closes the connection of a stream, or of the standalone streams if `name` is `undefined`, because another instance
   * now writes to the client. Two instances with standalone streams would send each notification twice.
   */
  disconnectStream(name: string | undefined): void {
    if (name !== undefined) return this.#streams.get(name)?.disconnect();
    for (const stream of this.#own.splice(0)) {
      stream.end();
      stream.disconnect();
    }
  }

  /**
   * Serves a GET request. Resumes the stream of event `lastEvent` if the caller may use it, or opens a standalone stream
   * if `lastEvent` is `null`. Settles when the connection should close.
   */
  attach(link: Link, lastEvent: string | null, mayUse: MayUse): Promise<void> {
    if (this.#isOver) throw new McpError(INVALID_REQUEST, ENDED);
    if (lastEvent !== null) {
      const id = readEventId(lastEvent);
      if (!id) throw toUnknown();
      return this.#resume(link, { name: id.name, after: id.place, mayUse, principal: link.principal });
    }
    const own = this.#toOwn(link);
    return this.#open(own, link, Math.max(own.written, own.first - 1));
  }

  // Returns a standalone stream for a new connection. Do not close other connections, because a client may have several.
  // A stream without a connection waits for its own caller, because its events may be hidden from other callers. It ends
  // if another caller needs its place, but its caller can still resume it.
  #toOwn({ principal }: Link): Stream {
    this.#shared?.claim();
    const free = this.#own.filter(({ reader }) => !reader);
    const known = free.findLast((stream) => isCaller(stream, principal));
    if (!known) free[0]?.end();
    const own = known ?? this.create({ isOwn: true, principal });
    this.#prefer(own);
    own.principal = principal;
    return own;
  }

  #prefer(own: Stream): void {
    this.#own = [...this.#own.filter((stream) => stream !== own && !stream.isOver), own];
  }

  /** Drops events that are older than `replay.ms`. */
  sweep(now: number): void {
    const before = this.#events;
    for (const stream of this.#streams.values()) {
      while (stream.events.length && now - stream.events[0].at > this.#core.limits.replay.ms) this.#drop(stream);
      if (!stream.isOver && !stream.isForeign) this.#shared?.streams.renew(stream);
    }
    if (this.#events < before) this.#core.observing?.reach("replay.ms");
  }

  /** Removes `stream` if it has ended and keeps no events, or if both the stream and the session have ended. */
  tidy(stream: Stream): void {
    if (!stream.isOver || stream.events.length && !this.#isOver) return;
    this.#streams.delete(stream.name);
    if (!this.#isOver) return;
    stream.disconnect();
    if (!this.#streams.size) this.#held?.end();
  }

  /** Closes the connections of the standalone streams. */
  disconnect(): void {
    for (const stream of this.#own) stream.disconnect();
  }

  /** Ends all streams and drops their events. The stream of a running call ends with the call's reply instead. */
  end(): void {
    this.#isOver = true;
    this.#own = [];
    for (const stream of [...this.#streams.values()]) if (!stream.isReplying) stream.end();
    if (!this.#streams.size) this.#held?.end();
  }

  #resume(link: Link, resumed: Resumed): Promise<void> {
    const stream = this.#streams.get(resumed.name);
    if (!stream) return this.#resumeForeign(link, resumed);
    return stream.isOwn ? this.#reopen(link, stream, resumed) : this.#resumeCall(link, stream, resumed);
  }

  // Before the check, leave the connection of the stream open, because a refused caller must not close it.
  async #resumeCall(link: Link, stream: Stream, resumed: Resumed): Promise<void> {
    const { calls } = stream;
    await this.#check(stream, isCaller(stream, resumed.principal), resumed);
    // During the check, a handler may have begun to read a resource.
    if (stream.calls !== calls) return this.#resume(link, resumed);
    // During the check, the stream may have ended, and its events may have been dropped.
    const isKnown = this.#streams.get(stream.name) === stream;
    return isKnown ? this.#reopen(link, stream, resumed) : this.#resumeForeign(link, resumed);
  }

  #reopen(link: Link, stream: Stream, { name, after }: Resumed): Promise<void> {
    if (after > stream.last || after + 1 < stream.first) throw toUnknown();
    if (stream.isOwn && !isCaller(stream, link.principal)) return this.#takeOver(link, { name, after }, []);
    if (stream.isOwn) stream.principal = link.principal;
    if (stream.isOwn && stream.isOver) return this.#takeOver(link, { name, after }, stream.textsAfter(after));
    if (stream.isOwn) this.#prefer(stream);
    if (this.#shared) this.#claim(stream);
    return this.#open(stream, link, after);
  }

  // A caller who may not use the stream gets the same error as for an unknown stream. If the calls of a stream are not
  // stored, refuse every caller, because their rights cannot be checked. A list contains what its caller may see, so
  // only this caller can resume its stream.
  async #check({ calls }: Pick<Stream, "calls">, isCaller: boolean, { mayUse }: Resumed): Promise<void> {
    if (!calls || dependOnCaller(calls) && !isCaller || !await mayUse(calls)) throw toUnknown();
    if (this.#isOver) throw new McpError(INVALID_REQUEST, ENDED);
  }

  // Resume a stream that another instance created. A standalone stream moves to this process. A call's stream is still
  // written by the instance that runs the call.
  async #resumeForeign(link: Link, resumed: Resumed): Promise<void> {
    const { name, after, principal } = resumed;
    const found = await this.#shared?.streams.find(name, after);
    if (!found || this.#isOver) throw toUnknown();
    const print = toCallerPrint(principal);
    const isCaller = print !== undefined && found.callerHash === await sha256(print);
    if (!found.isOwn) await this.#check(found, isCaller, resumed);
    // Check the caller again, because the handlers may have read more resources than `found` lists.
    if (this.#streams.has(name)) return this.#resume(link, resumed);
    if (found.isOwn) return this.#takeOver(link, { name, after }, isCaller ? found.texts : []);
    const stream = this.create({ foreign: { name, after }, calls: found.calls, principal });
    for (const text of found.texts) stream.write(text);
    const end = () => {
      stream.end();
      // Remove the stream from memory, because later requests find all of its events in the store.
      this.#streams.delete(name);
    };
    if (found.isOver) stream.end();
    else found.follow((text) => void stream.write(text), end);
    this.#shared?.claim(name);
    return this.#open(stream, link, after);
  }

  // Send the position as the first event, because clients forget their position when they reconnect. Otherwise a client
  // that loses the new connection before the first event could not resume.
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
    const own = this.#toOwn(link);
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

  // The charge ends with the last kept event, even if that event is dropped to make room for a new event.
  #hold(bytes: number): boolean {
    this.#held?.touch();
    if (this.#held?.grow(bytes)) return true;
    if (this.#held) return false;
    const { bytes: total } = this.#core.limits.replay;
    const pot = this.#account.pot({ name: "replay.bytes", total, isCache: true, evictsLargest: true });
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
    const text = this.#removeFirst(stream);
    this.#held?.add(-toCharge(stream, text));
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

/** Returns the bytes to charge for an event of a stream without this event. The first event includes the calls. */
function toCharge({ events, weight }: Stream, text: string): number {
  return toBytes(text) + (events.length ? 0 : weight);
}

function toWeight({ calls, callerPrint = "" }: Pick<Stream, "calls" | "callerPrint">): number {
  return (calls ? toBytes(JSON.stringify(calls)) : 0) + toBytes(callerPrint);
}

function isSame(one: Principal | undefined, other: Principal | undefined): boolean {
  if (one === other) return true;
  const print = toCallerPrint(one);
  return print !== undefined && print === toCallerPrint(other);
}

function isCaller({ callerPrint }: Stream, principal: Principal | undefined): boolean {
  return callerPrint !== undefined && callerPrint === toCallerPrint(principal);
}

interface EventPlace {
  /** The stream's name, which is unique within the session. */
  readonly name: string;
  /** The event's number, which starts at 1. The number 0 stands for the position before the first event. */
  readonly place: number;
}

/** Length of a stream's name in characters. The name is the start of a UUID. */
const STREAM_NAME_LENGTH = 13;

/** Returns an event id, such as `1b9d6bcd-bbfd_3`. */
export function toEventId(name: string, place: number): string {
  return `${name}_${place}`;
}

/** Returns `undefined` if the text is not an event id. */
function readEventId(id: string): EventPlace | undefined {
  const [, name, digits] = EVENT_ID.exec(id) ?? [];
  return name === undefined ? undefined : { name, place: Number(digits) };
}

const EVENT_ID = new RegExp(`^([0-9a-f-]{${STREAM_NAME_LENGTH}})_(\\d{1,15})$`);
