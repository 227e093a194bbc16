/**
 * Writes the events of a session's streams to logs in the store, so that other instances can send the events.
 */
import { systemClock } from "../core/timers.ts";
import type { HandlerCall } from "../server/call/handler_call.ts";
import { isReads } from "../server/call/reads.ts";
import type { FoundStream, SharedStreams, WrittenStream } from "../server/engine/store.ts";
import { deadline } from "../core/kit/deadline.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import { toBytes } from "../core/protocol/weight.ts";
import { type InstanceState, type SessionRecordInfo, toSealedBytes } from "./instance_state.ts";
import type { LogCharge } from "./log_charge.ts";
import { Repeated } from "./repeated.ts";

/** A log entry with consecutive events. The first event has the number `first`. */
interface Batch {
  readonly first: number;
  readonly texts: readonly string[];
  readonly isOwn: boolean;
  readonly isOver: boolean;
  /** The calls whose replies the stream carries, or `undefined` if they are too large, or the entry has no events. */
  readonly calls?: readonly HandlerCall[];
  /** Hash of the only caller to whom the events may be sent, if any. */
  readonly callerHash?: string;
  /** Lease id of the process that writes the stream. */
  readonly writer?: string;
  /** Whether the process that writes the stream has ended. */
  readonly isDead?: boolean;
}

/** A stream that this process writes, and the state of its log. */
interface Writing {
  readonly charge: LogCharge;
  /** Number of the last event that was written to the log. Missing until the first write. */
  written?: number;
  /** Whether the end of the stream was written. */
  isOver?: boolean;
  isWriting?: boolean;
  /** Ends the wait for further events before the next write. */
  wake?: () => void;
  /** Releases the lease. */
  release?: () => void;
}

/** Writes and reads the logs of one session's streams. */
// Bound: `connections.streamsPerClient`, and `calls.running` for streams that respond to calls.
export class StreamLog implements SharedStreams {
  readonly #instances: InstanceState;
  readonly #session: SessionRecordInfo;
  readonly #logs = new WeakMap<WrittenStream, Writing>();
  /** The streams that have not ended, and for which the process holds the lease. */
  readonly #leased = new Set<Writing>();
  readonly #followed = new Set<() => void>();

  constructor(instances: InstanceState, session: SessionRecordInfo) {
    this.#instances = instances;
    this.#session = session;
  }

  /** Writes new events in the background. Events that arrive during a write are written together in the next write. */
  write(stream: WrittenStream): void {
    const log = this.#toWriting(stream);
    if (stream.isOver) log.wake?.();
    if (log.isWriting) return;
    log.isWriting = true;
    this.#instances.queue(`stream ${stream.name}`, () => this.#writeAll(stream, log));
  }

  /** Writes an empty entry, so that the log of the stream does not expire. */
  renew(stream: WrittenStream): void {
    const { isWriting, written, charge } = this.#toWriting(stream);
    if (isWriting || written === undefined) return;
    // Repeat the calls, because a log with too many entries loses its oldest entries.
    const calls = this.#toStored(stream);
    const hasRoom = calls && charge.isOpen && charge.add(toSealedBytes(calls));
    if (!charge.isOpen) return;
    const { isOwn, last } = stream;
    const batch = { first: last + 1, texts: [], isOwn, isOver: false, calls: hasRoom ? calls : undefined };
    void this.#append(stream, charge, batch);
  }

  /**
   * Finds the stored events after the event `after`. Returns `undefined` if the first of these events is no longer
   * stored.
   */
  async find(name: string, after: number): Promise<FoundStream | undefined> {
    return await this.#instances.attempt("read", () => this.#find(name, after));
  }

  /** Stops following streams, and releases the leases. */
  stop(): void {
    for (const stop of [...this.#followed]) stop();
    for (const log of this.#leased) this.#release(log);
  }

  async #writeAll(stream: WrittenStream, log: Writing): Promise<void> {
    const { charge } = log;
    await this.#hold(stream, log);
    for (let batch = this.#toBatch(stream, log); batch; batch = this.#toBatch(stream, log)) {
      const { first, texts, calls } = batch;
      const isEmpty = !texts.length && !calls;
      const hasRoom = isEmpty && charge.isOpen || charge.add(toSealedBytes([texts, calls]));
      // If there is no room, or the write fails, write an empty entry, so that readers notice the gap even if no
      // further events follow. Do not create a log that is not charged, because a client can open many streams.
      if (!(hasRoom && await this.#append(stream, charge, batch)) && charge.isOpen) {
        await this.#append(stream, charge, { ...batch, first: first + texts.length, texts: [], calls: undefined });
      }
      if (!stream.isOver) await this.#linger(log);
    }
    log.isWriting = false;
    if (stream.isOver) this.#release(log);
  }

  // Waits for further events, so that events in quick succession are written together. The delay does little harm,
  // because clients rarely need events from the store. The delay paces the store, so it takes real time: the server's
  // clock may be a clock of a test, and closing the server waits for this write.
  async #linger(log: Writing): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    log.wake = resolve;
    await deadline(promise, { ms: LINGER_MS, onTimeout: () => {}, clock: systemClock });
  }

  // Hold the lease before writing the stream, because an instance that finds the stream must also find this process's
  // lease.
  async #hold(stream: WrittenStream, log: Writing): Promise<void> {
    if (log.release || stream.isOver) return;
    log.release = await this.#instances.attempt("set", () => this.#session.store.lease.hold());
    if (log.release) this.#leased.add(log);
  }

  #release(log: Writing): void {
    log.release?.();
    log.release = undefined;
    this.#leased.delete(log);
  }

  #toWriting(stream: WrittenStream): Writing {
    const log = this.#logs.get(stream) ??
      { charge: this.#instances.chargeLog(this.#session.account, { ttlMs: this.#ttlMs, max: this.#max }) };
    this.#logs.set(stream, log);
    return log;
  }

  #toStored({ calls }: WrittenStream): Batch["calls"] {
    const isStored = calls && toBytes(JSON.stringify(calls)) <= this.#instances.limits.replay.callsBytes;
    return isStored ? calls : undefined;
  }

  /** Returns the next events to write, or `undefined` if all events are written. */
  #toBatch(stream: WrittenStream, log: Writing): Batch | undefined {
    const { events, last, isOver, isOwn } = stream;
    const first = Math.max((log.written ?? 0) + 1, stream.first);
    const texts: string[] = [];
    let bytes = 0;
    for (let place = first; place <= last && (bytes < BATCH_BYTES || !texts.length); place++) {
      const { text } = events[place - stream.first];
      bytes += toBytes(text);
      if (texts.length && bytes > BATCH_BYTES) break;
      texts.push(text);
    }
    const isDone = first + texts.length > last;
    if (!texts.length && log.written !== undefined && !(isOver && !log.isOver)) return;
    log.written = first + texts.length - 1;
    log.isOver ||= isOver && isDone;
    return { first, texts, isOwn, isOver: isOver && isDone, calls: this.#toStored(stream) };
  }

  /**
   * Appends an entry, and counts it. Removes entries after their time to live, which the log of a long stream would
   * otherwise keep until it has too many entries. Resolves to whether the entry was appended.
   */
  async #append({ name, callerPrint }: WrittenStream, charge: LogCharge, batch: Batch): Promise<boolean> {
    const { store } = this.#session;
    const log = await this.#toLog(name);
    // Each entry contains the hash of the caller, because a log with too many entries loses its oldest entries.
    const callerHash = callerPrint === undefined ? undefined : await sha256(callerPrint);
    const entry = { ...batch, writer: store.lease.id, callerHash };
    const id = await this.#instances.attempt("append", () => this.#appendTo(log, entry));
    if (id === undefined) return false;
    const before = charge.countAppended(id);
    if (before !== undefined && await this.#instances.succeeds("trim", () => store.trim(log, before))) {
      charge.release(before);
    }
    return true;
  }

  async #appendTo(log: string, batch: Batch): Promise<number> {
    const { first, texts, isOwn, isOver, writer, isDead, calls, callerHash } = batch;
    const options = { ttlMs: this.#ttlMs, max: this.#max };
    return await this.#session.store.append(
      log,
      [first, texts, isOwn, isOver, writer, isDead === true, calls, callerHash],
      options,
    );
  }

  get #max(): number {
    return Math.max(1, Math.min(this.#instances.limits.replay.events, MAX_ENTRIES));
  }

  get #ttlMs(): number {
    return Math.max(this.#instances.limits.replay.ms, ALIVE_MS);
  }

  async #find(name: string, after: number): Promise<FoundStream | undefined> {
    const { replay } = this.#instances.limits;
    const store = this.#instances.by(this.#session.account);
    const log = await this.#toLog(name);
    const texts: string[] = [];
    let [cursor, written, bytes, isOver] = [0, 0, 0, false];
    let known: string | undefined;
    let newest: Batch | undefined;
    let calls: Batch["calls"];
    let callerHash: string | undefined;
    while (true) {
      const { entries, last, epoch } = await store.read(log, { after: cursor, limit: PAGE_ENTRIES });
      // The log was lost, and may have been created again.
      if (!last || known !== undefined && epoch !== known) return;
      known = epoch;
      for (const { id, value } of entries) {
        cursor = id;
        const batch = toBatch(value);
        if (!batch) continue;
        newest = batch;
        // An entry with events has all calls, unless they are too large to be stored.
        calls = batch.texts.length ? batch.calls : batch.calls ?? calls;
        callerHash = batch.callerHash ?? callerHash;
        isOver ||= batch.isOver;
        written = batch.first + batch.texts.length - 1;
        const expected = after + texts.length + 1;
        if (batch.first > expected) return;
        for (const text of batch.texts.slice(expected - batch.first)) {
          bytes += toBytes(text);
          texts.push(text);
        }
        if (bytes > replay.bytes) return;
      }
      if (!entries.length || cursor >= last) break;
    }
    const { isOwn = false, isDead = false, writer } = newest ?? {};
    // If the stream has ended, the log contains all of its events, so no client can have received a later event. Before
    // the end, the client may have received events that are not in the log yet.
    if (isOver && after > written) return;
    // No events will follow, because the process that wrote the stream ended before the stream did.
    if (isDead && !isOver && !texts.length) return;
    const place = { cursor, epoch: known, last: after + texts.length, isOwn, writer, calls };
    const follow: FoundStream["follow"] = (onEvent, onEnd) => this.#follow(log, place, onEvent, onEnd);
    return { isOwn, calls, callerHash, isOver: isOver || isDead, texts, follow };
  }

  #follow(
    log: string,
    place: Place,
    onEvent: (text: string, place: number) => void,
    onEnd: () => void,
  ): () => void {
    let isOver = false;
    let stopFollowing = () => {};
    let { last } = place;
    const calls = JSON.stringify(place.calls);
    const stop = () => {
      isOver = true;
      this.#followed.delete(stop);
      stopWatching();
      stopFollowing();
    };
    const end = () => {
      if (isOver) return;
      stop();
      onEnd();
    };
    const take = (value: unknown) => {
      const batch = toBatch(value);
      if (!batch || isOver) return;
      // End the stream at a gap, because the client could not tell that events are missing.
      if (batch.first > last + 1) return end();
      // A handler has read a resource. End the stream, so that the client resumes it and its rights are checked again.
      if (batch.texts.length && JSON.stringify(batch.calls) !== calls) return end();
      for (const text of batch.texts.slice(last + 1 - batch.first)) onEvent(text, ++last);
      if (batch.isOver || batch.isDead) end();
    };
    const stopWatching = this.#watch(place.writer, () => {
      const { isOwn, writer } = place;
      const batch = { first: last + 1, texts: [], isOwn, isOver: false, writer, isDead: true };
      // Mark the stream as dead, so that every instance rejects the next request to resume the stream. Otherwise the
      // client would retry forever.
      this.#instances.attempt("append", () => this.#appendTo(log, batch));
      end();
    });
    this.#followed.add(stop);
    const { cursor: after, epoch } = place;
    this.#instances.attempt("subscribe", () => this.#session.store.follow(log, take, { after, epoch, onGap: end }))
      .then(
        (stop) => {
          if (!stop) return end();
          stopFollowing = stop;
          if (isOver) stop();
        },
        // The client follows too many streams.
        end,
      );
    return stop;
  }

  /**
   * Checks the lease of the process that writes a stream. Calls `onDead` when the lease has expired. Returns a function
   * that stops the checks.
   */
  #watch(writer: string | undefined, onDead: () => void): () => void {
    if (writer === undefined) return () => {};
    const { lease } = this.#session.store;
    const checks = new Repeated(this.#instances.clock, async () => {
      const isHeld = await this.#instances.attempt("get", async () => await lease.isHeld(writer));
      if (isHeld === false && !checks.isClosed) onDead();
      return isHeld === false;
    }, { retryMs: lease.ms * CHECKS_PER_LEASE });
    // Check immediately, because another instance may have followed the stream before, and may have ended before it
    // found the writer's lease expired.
    checks.run();
    return () => void checks.close();
  }

  #toLog(name: string): Promise<string> {
    return this.#instances.hash("stream", `${this.#session.key} ${name}`);
  }
}

/**
 * Milliseconds between two writes of a stream, so that a stream causes at most four writes per second. When a stream
 * ends, its last events are written without this delay.
 */
const LINGER_MS = 250;
/**
 * Size in bytes at which an entry is full. After sealing, such an entry is still far below the maximum size of a value
 * in stores.
 */
const BATCH_BYTES = 131_072;
/** Maximum number of entries per read, which is low because entries can be large. */
const PAGE_ENTRIES = 10;
const MAX_ENTRIES = 10_000;

/**
 * Interval between two checks of a lease, as a fraction of its time to live. The second check without a lease must be
 * late enough to count. By default, other instances notice the end of a process within 10 seconds: the time to live of 5
 * seconds, and two intervals of 2.1 seconds.
 */
const CHECKS_PER_LEASE = 0.42;

/** The position from which a stream is followed. */
interface Place {
  /** Id of the last entry that was read. */
  readonly cursor: number;
  readonly epoch?: string;
  /** Number of the last event that was read. */
  readonly last: number;
  readonly isOwn: boolean;
  readonly writer?: string;
  /** The calls for which the rights of the reading caller were checked. */
  readonly calls?: readonly HandlerCall[];
}

/** Milliseconds without a write after which a stream counts as lost. */
const ALIVE_MS = 180_000;

function toBatch(value: unknown): Batch | undefined {
  if (!Array.isArray(value)) return;
  const [first, texts, isOwn, isOver, writer, isDead, calls, hash] = value;
  if (typeof first !== "number" || !Array.isArray(texts) || !texts.every((text) => typeof text === "string")) return;
  if (typeof writer !== "string") return;
  const flags = { isOwn: isOwn === true, isOver: isOver === true, isDead: isDead === true };
  const callerHash = typeof hash === "string" ? hash : undefined;
  return { first, texts, ...flags, writer, calls: isCalls(calls) ? calls : undefined, callerHash };
}

function isCalls(value: unknown): value is readonly HandlerCall[] {
  const isCall = (call: unknown) =>
    isObject(call) && typeof call.method === "string" && isObject(call.params) &&
    (call.reads === undefined || isReads(call.reads));
  return Array.isArray(value) && value.every(isCall);
}
