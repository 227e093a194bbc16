/**
 * Response bodies that are written in chunks: event streams and large results.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Receiving Messages)
 */
import type { Account } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";
import type { Bounds } from "../../capacity/limits.ts";
import type { EventFields } from "../../call/link.ts";
import type { StreamEvent, TransportName } from "../../call/observer.ts";
import type { Sweep, Ticker } from "../../../core/timers.ts";
import { Outbox } from "../outbox.ts";

export const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

const encoder = new TextEncoder();
/** The default heartbeat: a comment, which clients ignore. */
export const COMMENT = ":\n\n";

export interface EventStreamOptions {
  readonly account: () => Account;
  /** Called once if the client disconnects or stops reading. */
  readonly onLost: () => void;
  /** Text to send as a heartbeat. Defaults to a comment. */
  readonly comment?: string;
  /** The transport. If set, the observer receives the start and end of the stream. */
  readonly transport?: TransportName;
  /** Ends the stream, like a client that disconnects. */
  readonly signal?: AbortSignal;
}

type Why = StreamEvent["why"];

/** All open streams of a server. A single timer sends heartbeats and closes stalled streams. */
export class EventStreams {
  readonly core: Core;
  readonly limits: Bounds["streams"];
  readonly ticker: Ticker;
  /** Milliseconds between two checks. Each check covers all streams. */
  readonly checkIntervalMs: number;
  // Bound: `connections.streams`, and `calls.running` for streams that respond to calls.
  readonly #open = new Set<EventStream>();
  readonly #sweep: Sweep = (now) => {
    for (const stream of this.#open) stream.check(now);
    return this.#open.size ? this.checkIntervalMs : undefined;
  };

  constructor(core: Core) {
    const { limits: { streams }, ticker } = core;
    this.core = core;
    this.limits = streams;
    this.ticker = ticker;
    this.checkIntervalMs = Math.min(1000, streams.heartbeatMs / 4, streams.writeMs / 4);
  }

  get size(): number {
    return this.#open.size;
  }

  create(options: EventStreamOptions): EventStream {
    const { transport, signal } = options;
    const end = transport && this.core.observing?.openStream(transport);
    const onAbort = () => stream.disconnect();
    const stream = new EventStream(this, options, (why) => {
      signal?.removeEventListener("abort", onAbort);
      if (this.#open.delete(stream)) end?.(why);
    });
    if (this.#open.add(stream).size === 1) this.ticker.schedule(this.#sweep, this.checkIntervalMs);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
    return stream;
  }

  /** Ends all streams. Clients can still read everything that was written. */
  end(): void {
    for (const stream of this.#open) stream.end("closing");
  }
}

/** A response body. Sends texts that are written in the same turn of the event loop in one chunk. */
export class EventStream {
  readonly #owner: EventStreams;
  readonly #options: EventStreamOptions;
  readonly #forget: (why: Why) => void;
  readonly #outbox: Outbox;
  #controller?: ReadableStreamDefaultController<Uint8Array>;
  #pulled?: () => void;
  #isEnded = false;
  #why: Why = "done";
  /** Whether the client has read data since the check at `#since`, or a text was added to an empty queue. */
  #moved = true;
  /** Backpressure: whether writers wait until the client has read more. */
  #isFull = false;
  #since = 0;

  /** `forget` removes the stream from its owner. */
  constructor(owner: EventStreams, options: EventStreamOptions, forget: (why: Why) => void) {
    this.#owner = owner;
    this.#options = options;
    this.#forget = forget;
    const { waitingTexts: texts, waitingCharacters: characters } = owner.limits;
    this.#outbox = new Outbox({ texts, characters, account: options.account });
  }

  /** Can be called only once. */
  toBody(): ReadableStream<Uint8Array> {
    // Deno and Bun call pull() only when the socket accepts more data. Unread data stays in the kernel (about 4 MB) and
    // in the outbox, whose size is limited. With a higher high-water mark, or without pull(), the runtime would buffer
    // all data.
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pull(),
      cancel: () => this.#onDisconnect(),
    }, { highWaterMark: 0 });
  }

  /** Writes an event. For backpressure, returns a promise that settles when the client has read more. */
  write(text: string, fields?: EventFields): Promise<void> | undefined {
    return this.push(toEvent(text, fields));
  }

  comment(): void {
    this.push(this.#options.comment ?? COMMENT);
  }

  /** Writes a text unchanged, which joins `texts` texts. Closes the stream if the client's memory limit is exceeded. */
  push(text: string, texts?: number): Promise<void> | undefined {
    if (this.#isEnded) return;
    if (!this.#outbox.length) this.#moved = true;
    if (!this.#outbox.push(text, texts)) return this.#abort("memory");
    this.#flush();
    return this.#outbox.isFull ? this.#untilRoom() : undefined;
  }

  /** Ends the stream as soon as the client has read everything that was written. */
  end(why: Why = "done"): void {
    if (!this.#isEnded) this.#why = why;
    this.#isEnded = true;
    this.#outbox.close();
    this.#flush();
  }

  /** Ends the stream, and discards what was written. */
  disconnect(): void {
    this.#abort("disconnected");
  }

  /**
   * Sends a heartbeat if nothing was written for `streams.heartbeatMs`. Closes the stream if the client has read
   * nothing for `streams.writeMs`.
   */
  check(now: number): void {
    const { limits: { heartbeatMs, writeMs }, checkIntervalMs } = this.#owner;
    if (this.#moved) {
      this.#moved = false;
      this.#since = now;
    } else if (!this.#outbox.length && !this.#isEnded) {
      // Subtract two intervals, because the silence may have started up to one interval before `#since`, and the next
      // check comes one interval later.
      if (now - this.#since >= heartbeatMs - 2 * checkIntervalMs) this.comment();
    } else if (now - this.#since >= writeMs) {
      this.#owner.core.observing?.reach("streams.writeMs");
      this.#abort("stalled");
    }
  }

  #untilRoom(): Promise<void> {
    const { core, limits } = this.#owner;
    const name = this.#outbox.length >= limits.waitingCharacters ? "waitingCharacters" : "waitingTexts";
    if (!this.#isFull) core.observing?.reach(`streams.${name}`);
    this.#isFull = true;
    return this.#outbox.untilRoom();
  }

  // Pass only one chunk to the runtime for each call of pull(). All further texts stay in the outbox, whose size is
  // limited.
  #pull(): Promise<void> | undefined {
    if (this.#outbox.length || this.#isEnded) return void this.#hand();
    return new Promise((resolve) => {
      this.#pulled = resolve;
    });
  }

  #flush(): void {
    const pulled = this.#pulled;
    if (!pulled) return;
    this.#pulled = undefined;
    // Wait for a microtask, to send texts that are written in the same turn together.
    queueMicrotask(() => {
      this.#hand();
      pulled();
    });
  }

  // Keep chunks small, because a runtime buffers several chunks for a client that does not read.
  #hand(): void {
    const chunk = this.#outbox.read(this.#owner.limits.waitingCharacters);
    this.#moved = true;
    this.#isFull = false;
    try {
      if (chunk) this.#controller?.enqueue(encoder.encode(chunk));
    } catch {
      // The client has disconnected since the call of pull().
      return this.#onDisconnect();
    }
    if (!this.#isEnded || this.#outbox.length) return;
    this.#forget(this.#why);
    this.#close();
  }

  // Close the body without an error, because an error would not close the socket sooner, and Deno and Bun would print
  // the error.
  #abort(why: Why): undefined {
    this.#onDisconnect(why);
    this.#close();
  }

  #onDisconnect(why: Why = "disconnected"): void {
    const isFirst = !this.#isEnded;
    this.#isEnded = true;
    this.#outbox.clear();
    this.#pulled?.();
    this.#forget(why);
    if (isFirst) this.#options.onLost();
  }

  #close(): void {
    try {
      this.#controller?.close();
    } catch {
      // The client has already disconnected.
    }
  }
}

/** Formats an event. `text` is JSON without line breaks, so it fits into one data line. */
export function toEvent(text: string, fields?: EventFields): string {
  let head = "";
  if (fields) {
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) head += `${name}: ${value}\n`;
  }
  return `${head}data: ${text}\n\n`;
}
