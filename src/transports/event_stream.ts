/**
 * One stream of server-sent events, with a bounded queue.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Receiving Messages)
 * @module
 */
import type { EventFields } from "../core/call.ts";
import type { Sweep, Ticker } from "../core/clock.ts";
import type { Limits } from "../core/limits.ts";

const encoder = new TextEncoder();
const COMMENT = ":\n\n";

/** All open streams of a server: one sweep writes their comments and ends those that stand still. */
export class EventStreams {
  readonly limits: Limits;
  readonly ticker: Ticker;
  readonly #open = new Set<EventStream>();
  readonly #sweep: Sweep = (now) => {
    for (const stream of this.#open) stream.check(now);
    return this.#open.size ? this.#pause : undefined;
  };
  readonly #pause: number;

  /** No streams yet. */
  constructor(limits: Limits, ticker: Ticker) {
    this.limits = limits;
    this.ticker = ticker;
    this.#pause = Math.min(1000, limits.heartbeatMs / 4, limits.writeMs / 4);
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a stream; `onLost` is called once if its reader goes away or stands still. */
  create(onLost: () => void): EventStream {
    const stream = new EventStream(this, () => this.#open.delete(stream), onLost);
    this.#open.add(stream);
    this.ticker.wake(this.#sweep, this.#pause);
    return stream;
  }

  /** Ends all streams as if their readers had gone away, but what was written can still be read. */
  end(): void {
    for (const stream of this.#open) stream.end(true);
  }
}

/** One stream. Texts that are ready together leave in one chunk. */
export class EventStream {
  /** The body of the response. */
  readonly body: ReadableStream<Uint8Array>;
  readonly #owner: EventStreams;
  readonly #forget: () => void;
  readonly #onLost: () => void;
  #controller?: ReadableStreamDefaultController<Uint8Array>;
  #frames: string[] = [];
  #size = 0;
  #pulled?: () => void;
  #room?: { readonly promise: Promise<void>; readonly resolve: () => void };
  #ended = false;
  #wrote: number;
  #read: number;

  /** A stream that belongs to `owner`. */
  constructor(owner: EventStreams, forget: () => void, onLost: () => void) {
    this.#owner = owner;
    this.#forget = forget;
    this.#onLost = onLost;
    this.#wrote = this.#read = owner.ticker.clock.now();
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pull(),
      cancel: () => this.#lose(),
    }, { highWaterMark: 0 });
  }

  /** Whether nothing more can be written. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Writes one event; a promise if the writer should wait for room. */
  write(text: string, fields?: EventFields): Promise<void> | undefined {
    if (this.#ended) return;
    return this.#push(toEvent(text, fields));
  }

  /** Writes a comment: it says only that the stream is alive. */
  comment(): void {
    if (!this.#ended) this.#push(COMMENT);
  }

  /** Ends the stream when everything written has been read; `onLost` is told only if its owner does not know. */
  end(isNews = false): void {
    const isFirst = !this.#ended;
    this.#ended = true;
    this.#flush();
    if (isNews && isFirst) this.#onLost();
  }

  /** Keeps the stream alive, or gives it up. */
  check(now: number): void {
    const { heartbeatMs, writeMs } = this.#owner.limits;
    if (this.#frames.length) {
      if (now - this.#read < writeMs) return;
      this.#controller?.error(new DOMException("Cannot write: the reader stands still", "TimeoutError"));
      this.#lose();
    } else if (now - this.#wrote >= heartbeatMs - 1000) this.comment();
  }

  #push(frame: string): Promise<void> | undefined {
    const { limits, ticker } = this.#owner;
    this.#wrote = ticker.clock.now();
    if (!this.#frames.length) this.#read = this.#wrote;
    this.#frames.push(frame);
    this.#size += frame.length;
    this.#flush();
    if (this.#frames.length < limits.streamFrames && this.#size < limits.streamBytes) return;
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  // Only what the reader asked for is handed over: the rest waits here, where it is counted.
  #pull(): Promise<void> | undefined {
    if (this.#frames.length || this.#ended) return void this.#hand();
    return new Promise((resolve) => {
      this.#pulled = resolve;
    });
  }

  #flush(): void {
    const pulled = this.#pulled;
    if (!pulled) return;
    this.#pulled = undefined;
    // Texts written in the same turn leave together.
    queueMicrotask(() => {
      this.#hand();
      pulled();
    });
  }

  #hand(): void {
    const chunk = this.#frames.join("");
    this.#frames = [];
    this.#size = 0;
    this.#read = this.#owner.ticker.clock.now();
    const room = this.#room;
    this.#room = undefined;
    room?.resolve();
    try {
      if (chunk) this.#controller?.enqueue(encoder.encode(chunk));
      if (!this.#ended) return;
      this.#forget();
      this.#controller?.close();
    } catch {
      // The reader went away between asking and getting.
      this.#lose();
    }
  }

  #lose(): void {
    this.#frames = [];
    this.#size = 0;
    this.#room?.resolve();
    this.#pulled?.();
    this.#forget();
    if (this.#ended) return;
    this.#ended = true;
    this.#onLost();
  }
}

// JSON text holds no line break, so it always fits on one data line.
function toEvent(text: string, fields: EventFields = {}): string {
  let head = "";
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) head += `${name}: ${value}\n`;
  return `${head}data: ${text}\n\n`;
}
