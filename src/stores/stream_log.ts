/**
 * The events of a session's streams in logs, so that another instance can send them.
 *
 * @module
 */
import type { Account } from "../core/capacity/account.ts";
import type { FoundStream, WrittenStream } from "../core/store.ts";
import { toBytes } from "../protocol/weight.ts";
import type { InstanceState } from "./instance_state.ts";

/** An entry of a log: events in order, of which the first has the number `first`. */
interface Batch {
  readonly first: number;
  readonly texts: readonly string[];
  readonly isOwn: boolean;
  readonly isOver: boolean;
}

/** Writes and reads the logs of one session's streams. */
export class StreamLog {
  readonly #instances: InstanceState;
  readonly #session: string;
  readonly #account: Account;
  /** Number of the last written event of each stream that is being written. */
  readonly #written = new WeakMap<WrittenStream, number>();
  readonly #writing = new Set<WrittenStream>();
  readonly #followed = new Set<() => void>();

  constructor(instances: InstanceState, session: string, account: Account) {
    this.#instances = instances;
    this.#session = session;
    this.#account = account;
  }

  /** Writes new events. Events that arrive during a write are written together. */
  write(stream: WrittenStream): void {
    if (this.#writing.has(stream)) return;
    this.#writing.add(stream);
    this.#instances.queue(`stream ${stream.name}`, () => this.#writeAll(stream));
  }

  /** Writes an empty entry, so that the log does not expire. */
  renew(stream: WrittenStream): void {
    if (this.#writing.has(stream) || !this.#written.has(stream)) return;
    const { name, isOwn, last } = stream;
    this.#instances.attempt("append", () => this.#append(name, { first: last + 1, texts: [], isOwn, isOver: false }));
  }

  /** Finds the kept events of a stream after a place. Returns `undefined` if the next one is not kept. */
  async find(name: string, after: number): Promise<FoundStream | undefined> {
    return await this.#instances.attempt("read", () => this.#find(name, after));
  }

  /** Ends everything that follows a stream. */
  stop(): void {
    for (const stop of [...this.#followed]) stop();
  }

  async #writeAll(stream: WrittenStream): Promise<void> {
    for (let batch = this.#toBatch(stream); batch; batch = this.#toBatch(stream)) {
      const { first, texts } = batch;
      const append = (batch: Batch) => this.#instances.attempt("append", () => this.#append(stream.name, batch));
      const hasRoom = !texts.length || this.#instances.mayWrite(this.#account, texts, this.#ttlMs);
      // Without room and after a failure a gap remains. Readers notice it with the next entry, which may be the last one.
      if (hasRoom && await append(batch) !== undefined) continue;
      await append({ ...batch, first: first + texts.length, texts: [] });
    }
    this.#writing.delete(stream);
  }

  /** Returns the next events to write, or `undefined` if all are written. */
  #toBatch(stream: WrittenStream): Batch | undefined {
    const { events, last, isOver, isOwn } = stream;
    const first = Math.max((this.#written.get(stream) ?? 0) + 1, stream.first);
    const texts: string[] = [];
    let bytes = 0;
    for (let place = first; place <= last && (bytes < BATCH_BYTES || !texts.length); place++) {
      const { text } = events[place - stream.first];
      bytes += toBytes(text);
      if (texts.length && bytes > BATCH_BYTES) break;
      texts.push(text);
    }
    const isDone = first + texts.length > last;
    if (!texts.length && this.#written.has(stream) && !(isOver && !this.#over.has(stream))) return;
    this.#written.set(stream, first + texts.length - 1);
    if (isOver && isDone) this.#over.add(stream);
    return { first, texts, isOwn, isOver: isOver && isDone };
  }

  readonly #over = new WeakSet<WrittenStream>();

  async #append(name: string, { first, texts, isOwn, isOver }: Batch): Promise<number> {
    const { replay } = this.#instances.limits;
    const max = Math.max(1, Math.min(replay.events, MAX_ENTRIES));
    const options = { ttlMs: this.#ttlMs, max };
    return await this.#instances.append(await this.#toLog(name), [first, texts, isOwn, isOver], options);
  }

  get #ttlMs(): number {
    return Math.max(this.#instances.limits.replay.ms, ALIVE_MS);
  }

  async #find(name: string, after: number): Promise<FoundStream | undefined> {
    const { replay } = this.#instances.limits;
    const log = await this.#toLog(name);
    const texts: string[] = [];
    let [cursor, written, bytes, isOwn, isOver] = [0, 0, 0, false, false];
    while (true) {
      const { entries, last } = await this.#instances.read(log, { after: cursor, limit: PAGE_ENTRIES });
      if (!last) return;
      for (const { id, value } of entries) {
        cursor = id;
        const batch = toBatch(value);
        if (!batch) continue;
        ({ isOwn } = batch);
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
    // The client cannot have what was never written. A running call may be ahead of its log.
    if (isOver && after > written) return;
    const place = after + texts.length;
    const follow: FoundStream["follow"] = (onEvent, onEnd) => this.#follow(log, { cursor, place }, onEvent, onEnd);
    return { isOwn, isOver, texts, follow };
  }

  #follow(
    log: string,
    { cursor, place }: { readonly cursor: number; readonly place: number },
    onEvent: (text: string, place: number) => void,
    onEnd: () => void,
  ): () => void {
    let isOver = false;
    let stopFollowing = () => {};
    const stop = () => {
      isOver = true;
      this.#followed.delete(stop);
      stopFollowing();
    };
    const end = () => {
      if (isOver) return;
      stop();
      onEnd();
    };
    let last = place;
    const take = (value: unknown) => {
      const batch = toBatch(value);
      if (!batch || isOver) return;
      // The client must not take what follows a gap for the next event.
      if (batch.first > last + 1) return end();
      for (const text of batch.texts.slice(last + 1 - batch.first)) onEvent(text, ++last);
      if (batch.isOver) end();
    };
    this.#followed.add(stop);
    this.#instances.attempt("subscribe", () => this.#instances.follow(log, take, { after: cursor, onGap: end })).then(
      (stop) => {
        if (!stop) return end();
        stopFollowing = stop;
        if (isOver) stop();
      },
    );
    return stop;
  }

  #toLog(name: string): Promise<string> {
    return this.#instances.hash("stream", `${this.#session} ${name}`);
  }
}

/** Bytes after which an entry gets no more events. */
const BATCH_BYTES = 32_768;
/** Entries of one page, which may have large values. */
const PAGE_ENTRIES = 10;
const MAX_ENTRIES = 10_000;

/** Milliseconds after which a stream without a sign of its instance counts as lost. */
const ALIVE_MS = 180_000;

function toBatch(value: unknown): Batch | undefined {
  if (!Array.isArray(value)) return;
  const [first, texts, isOwn, isOver] = value;
  if (typeof first !== "number" || !Array.isArray(texts) || !texts.every((text) => typeof text === "string")) return;
  return { first, texts, isOwn: isOwn === true, isOver: isOver === true };
}
