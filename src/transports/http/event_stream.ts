/**
 * Response bodies that are written piece by piece: streams of server-sent events, and large answers.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Receiving Messages)
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Limits } from "../../core/limits.ts";
import type { EventFields } from "../../core/link.ts";
import type { Sweep, Ticker } from "../../core/timers.ts";
import { Outbox } from "../outbox.ts";

const encoder = new TextEncoder();
/** What is written on a silent stream of events. */
export const COMMENT = ":\n\n";

/** How a body behaves while nothing is written, and when nobody reads it. */
export interface EventStreamOptions {
  /** The client that reads it. */
  readonly account: () => Account;
  /** Called once if the reader goes away or does not read. */
  readonly onLost: () => void;
  /** What is written on a silent stream. Defaults to a comment. */
  readonly comment?: string;
}

/** All open bodies of a server: one sweep writes their comments and ends those that nobody reads. */
export class EventStreams {
  readonly limits: Limits["streams"];
  readonly ticker: Ticker;
  /** Milliseconds between two looks at all streams. */
  readonly pause: number;
  readonly #open = new Set<EventStream>();
  readonly #sweep: Sweep = (now) => {
    for (const stream of this.#open) stream.check(now);
    return this.#open.size ? this.pause : undefined;
  };

  /** No streams yet. */
  constructor(limits: Limits["streams"], ticker: Ticker) {
    this.limits = limits;
    this.ticker = ticker;
    this.pause = Math.min(1000, limits.heartbeatMs / 4, limits.writeMs / 4);
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a stream. */
  create(options: EventStreamOptions): EventStream {
    const stream = new EventStream(this, options, () => this.#open.delete(stream));
    if (this.#open.add(stream).size === 1) this.ticker.wake(this.#sweep, this.pause);
    return stream;
  }

  /** Ends all streams; what was written can still be read. */
  end(): void {
    for (const stream of this.#open) stream.end();
  }
}

/** One body. Texts that are ready together leave in one chunk. */
export class EventStream {
  readonly #owner: EventStreams;
  readonly #options: EventStreamOptions;
  readonly #forget: () => void;
  readonly #outbox: Outbox;
  #controller?: ReadableStreamDefaultController<Uint8Array>;
  #pulled?: () => void;
  #isEnded = false;
  /** Whether anything was written to an empty queue, or read, since `check` last looked; it looked at `#since`. */
  #moved = true;
  #since = 0;

  /** A stream that belongs to `owner`, which forgets it by `forget`. */
  constructor(owner: EventStreams, options: EventStreamOptions, forget: () => void) {
    this.#owner = owner;
    this.#options = options;
    this.#forget = forget;
    const { waitingTexts: texts, waitingCharacters: characters } = owner.limits;
    this.#outbox = new Outbox({ texts, characters, account: options.account });
  }

  /** The body of the response, made once. */
  toBody(): ReadableStream<Uint8Array> {
    // Both runtimes pull only when the socket takes more: what a reader leaves unread waits in the kernel (some 4 MB)
    // and in the outbox. With a higher mark, or without a pull, the runtime would hold all that is written.
    return new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pull(),
      cancel: () => this.#lose(),
    }, { highWaterMark: 0 });
  }

  /** Writes one event. Returns a promise if the writer should wait for room. */
  write(text: string, fields?: EventFields): Promise<void> | undefined {
    return this.push(toEvent(text, fields));
  }

  /** Writes a comment, which shows only that the stream is alive. */
  comment(): void {
    this.push(this.#options.comment ?? COMMENT);
  }

  /** Writes a text, or several that are joined, as it is. A client that leaves more unread than it may is let go. */
  push(text: string, texts?: number): Promise<void> | undefined {
    if (this.#isEnded) return;
    if (!this.#outbox.length) this.#moved = true;
    if (!this.#outbox.push(text, texts)) return this.#giveUp();
    this.#flush();
    return this.#outbox.isFull ? this.#outbox.untilRoom() : undefined;
  }

  /** Ends the stream when everything written has been read. */
  end(): void {
    this.#isEnded = true;
    this.#outbox.close();
    this.#flush();
  }

  /** Keeps the stream alive, or gives it up. */
  check(now: number): void {
    const { limits: { heartbeatMs, writeMs }, pause } = this.#owner;
    if (this.#moved) {
      this.#moved = false;
      this.#since = now;
    } else if (!this.#outbox.length && !this.#isEnded) {
      // The silence may have begun a pause before it was seen, and would be seen the next time a pause from now.
      if (now - this.#since >= heartbeatMs - 2 * pause) this.comment();
    } else if (now - this.#since >= writeMs) this.#giveUp();
  }

  // Only what the reader asked for is handed over: the rest waits here, where it is counted.
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
    // Texts written in the same turn leave together.
    queueMicrotask(() => {
      this.#hand();
      pulled();
    });
  }

  // What the runtime holds for a client that does not read is a multiple of a chunk, so chunks are no larger than they
  // have to be.
  #hand(): void {
    const chunk = this.#outbox.take(this.#owner.limits.waitingCharacters);
    this.#moved = true;
    try {
      if (chunk) this.#controller?.enqueue(encoder.encode(chunk));
    } catch {
      // The reader went away between asking and getting.
      return this.#lose();
    }
    if (!this.#isEnded || this.#outbox.length) return;
    this.#forget();
    this.#close();
  }

  // Closed and not broken off: neither runtime lets go of a socket sooner for an error, and both print it.
  #giveUp(): undefined {
    this.#lose();
    this.#close();
  }

  #lose(): void {
    const isFirst = !this.#isEnded;
    this.#isEnded = true;
    this.#outbox.clear();
    this.#pulled?.();
    this.#forget();
    if (isFirst) this.#options.onLost();
  }

  #close(): void {
    try {
      this.#controller?.close();
    } catch {
      // The reader has gone already.
    }
  }
}

/** One event as text. JSON text holds no line break, so it always fits on one data line. */
export function toEvent(text: string, fields?: EventFields): string {
  let head = "";
  if (fields) {
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) head += `${name}: ${value}\n`;
  }
  return `${head}data: ${text}\n\n`;
}
