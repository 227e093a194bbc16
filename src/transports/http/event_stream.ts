/**
 * One stream of server-sent events, with a bounded queue.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Receiving Messages)
 * @module
 */
import type { EventFields } from "../../core/call.ts";
import type { Sweep, Ticker } from "../../core/timers.ts";
import type { Limits } from "../../core/limits.ts";

const encoder = new TextEncoder();
const COMMENT = ":\n\n";

/** All open streams of a server: one sweep writes their comments and ends those that stand still. */
export class EventStreams {
  readonly limits: Limits;
  readonly ticker: Ticker;
  readonly #open = new Set<EventStream>();
  readonly #sweep: Sweep = (now) => {
    for (const stream of this.#open) stream.check(now);
    return this.#open.size ? this.pause : undefined;
  };
  /** Milliseconds between two looks at all streams. */
  readonly pause: number;

  /** No streams yet. */
  constructor(limits: Limits, ticker: Ticker) {
    this.limits = limits;
    this.ticker = ticker;
    this.pause = Math.min(1000, limits.heartbeatMs / 4, limits.writeMs / 4);
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Opens a stream; `onLost` is called once if its reader goes away or stands still. `comment` is what is written on a
   * silent stream.
   */
  create(onLost: () => void, comment = COMMENT): EventStream {
    const stream = new EventStream(this, () => this.#open.delete(stream), onLost, comment);
    if (this.#open.add(stream).size === 1) this.ticker.wake(this.#sweep, this.pause);
    return stream;
  }

  /** Ends all streams; what was written can still be read. */
  end(): void {
    for (const stream of this.#open) stream.end();
  }
}

/** One stream. Texts that are ready together leave in one chunk. */
export class EventStream {
  /** Whether nothing more can be written. */
  ended = false;
  readonly #owner: EventStreams;
  readonly #forget: () => void;
  readonly #onLost: () => void;
  readonly #comment: string;
  #controller?: ReadableStreamDefaultController<Uint8Array>;
  #frames: string[] = [];
  #size = 0;
  #pulled?: () => void;
  #room?: { readonly promise: Promise<void>; readonly resolve: () => void };
  /** Whether anything was written to an empty queue, or read, since `check` last looked; it looked at `#since`. */
  #moved = true;
  #since = 0;

  /** A stream that belongs to `owner`. */
  constructor(owner: EventStreams, forget: () => void, onLost: () => void, comment: string) {
    this.#owner = owner;
    this.#forget = forget;
    this.#onLost = onLost;
    this.#comment = comment;
  }

  /** The body of the response, made once: a text if everything is written already, because a stream costs twice as much. */
  toBody(): ReadableStream<Uint8Array> | string {
    if (this.ended) {
      this.#forget();
      return this.#frames.join("");
    }
    // Both runtimes pull only when the socket takes more: what a reader leaves unread waits in the kernel (some 4 MB)
    // and in the queue here. With a higher mark, or without a pull, all that is written would be held by the runtime.
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pull(),
      cancel: () => this.#lose(),
    }, { highWaterMark: 0 });
  }

  /** Writes one event; a promise if the writer should wait for room. */
  write(text: string, fields?: EventFields): Promise<void> | undefined {
    return this.push(toEvent(text, fields));
  }

  /** Writes a comment: it says only that the stream is alive. */
  comment(): void {
    this.push(this.#comment);
  }

  /** Writes a text as it is; a promise if the writer should wait for room. */
  push(frame: string): Promise<void> | undefined {
    if (this.ended) return;
    if (!this.#frames.length) this.#moved = true;
    this.#frames.push(frame);
    this.#size += frame.length;
    this.#flush();
    if (this.#hasRoom()) return;
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Ends the stream when everything written has been read. */
  end(): void {
    this.ended = true;
    // Whoever waits for room has nothing more to write here, but maybe elsewhere.
    this.#room?.resolve();
    this.#flush();
  }

  /** Keeps the stream alive, or gives it up. */
  check(now: number): void {
    const { limits: { heartbeatMs, writeMs }, pause } = this.#owner;
    if (this.#moved) {
      this.#moved = false;
      this.#since = now;
    } else if (!this.#frames.length && !this.ended) {
      // The silence may have begun a pause before it was seen, and would be seen the next time a pause from now.
      if (now - this.#since >= heartbeatMs - 2 * pause) this.comment();
    } else if (now - this.#since >= writeMs) {
      this.#lose();
      // Closed and not broken off: neither runtime lets go of a socket sooner for an error, and both print it.
      this.#close();
    }
  }

  #hasRoom(): boolean {
    const { streamFrames, streamBytes } = this.#owner.limits;
    return this.#frames.length < streamFrames && this.#size < streamBytes;
  }

  // Only what the reader asked for is handed over: the rest waits here, where it is counted.
  #pull(): Promise<void> | undefined {
    if (this.#frames.length || this.ended) return void this.#hand();
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

  // What the runtime holds for a reader that stands still is a multiple of a chunk, so chunks are no larger than they
  // have to be.
  #hand(): void {
    let chunk = "";
    let count = 0;
    while (count < this.#frames.length && chunk.length < this.#owner.limits.streamBytes) chunk += this.#frames[count++];
    this.#frames.splice(0, count);
    this.#size -= chunk.length;
    this.#moved = true;
    if (this.#hasRoom()) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    try {
      if (chunk) this.#controller?.enqueue(encoder.encode(chunk));
    } catch {
      // The reader went away between asking and getting.
      return this.#lose();
    }
    if (!this.ended || this.#frames.length) return;
    this.#forget();
    this.#close();
  }

  #lose(): void {
    const isFirst = !this.ended;
    this.ended = true;
    this.#frames = [];
    this.#size = 0;
    this.#room?.resolve();
    this.#pulled?.();
    this.#forget();
    if (isFirst) this.#onLost();
  }

  #close(): void {
    try {
      this.#controller?.close();
    } catch {
      // The reader has gone already.
    }
  }
}

// JSON text holds no line break, so it always fits on one data line.
function toEvent(text: string, fields?: EventFields): string {
  let head = "";
  if (fields) {
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) head += `${name}: ${value}\n`;
  }
  return `${head}data: ${text}\n\n`;
}
