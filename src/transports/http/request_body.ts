/**
 * Bodies that are large, or may be: read within the limits.
 *
 * @module
 */
import { LATER, type Reply } from "../../core/call.ts";
import type { Ticker } from "../../core/timers.ts";
import type { Limits } from "../../core/limits.ts";

/** Bytes up to which a body is not large: what a few thousand of these hold is no danger. */
export const SMALL = 65_536;

/** Why a body was not read. */
export interface Unread {
  readonly status: number;
  readonly message: string;
  readonly headers?: Reply["headers"];
}

/** A body that is counted as it comes. */
interface Coming {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  size: number;
  /** Why the rest is not wanted. */
  unread?: Unread;
}

/** Reads bodies: each up to one limit, all that are on their way up to another. */
export class Bodies {
  readonly #limits: Limits;
  readonly #ticker: Ticker;
  /** Large bodies on their way, the oldest first. */
  readonly #large = new Set<Coming>();
  #held = 0;

  /** Nothing read yet. */
  constructor(limits: Limits, ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
  }

  /** All bytes, or why not. Throws if the client breaks off. */
  async read(request: Request): Promise<ArrayBuffer | Unread> {
    const { bodyBytes, bodyMs } = this.#limits;
    // A length that is no number is too large as well.
    if (!(Number(request.headers.get("content-length")) <= bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const body: Coming = { reader, size: 0 };
    const alarm = this.#ticker.alarm(bodyMs, () => stop(body, tooSlow(bodyMs)));
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (body.unread) return body.unread;
        if (done) return await new Blob(chunks).arrayBuffer();
        chunks.push(value);
        this.#hold(body, value.length);
        if (body.size > bodyBytes) return TOO_LARGE;
      }
    } catch (error) {
      // Where reading is stopped in the middle, one runtime says that the body has ended and another that it broke.
      if (body.unread) return body.unread;
      throw error;
    } finally {
      this.#ticker.drop(alarm);
      this.#release(body);
      stop(body);
    }
  }

  // The oldest makes room: one that takes its time must not keep out all others. One alone may be as large as it may be.
  #hold(body: Coming, bytes: number): void {
    body.size += bytes;
    if (body.size <= SMALL) return;
    this.#held += this.#large.has(body) ? bytes : body.size;
    this.#large.add(body);
    for (const oldest of this.#large) {
      if (this.#held <= this.#limits.bodiesBytes || this.#large.size === 1) return;
      this.#release(oldest);
      stop(oldest, CROWDED);
    }
  }

  #release(body: Coming): void {
    if (this.#large.delete(body)) this.#held -= body.size;
  }
}

function stop(body: Coming, unread?: Unread): void {
  body.unread ??= unread;
  body.reader.cancel().catch(() => {});
}

/** Why a body that stands still is not read to its end. */
export function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (bodyMs)` };
}

const TOO_LARGE: Unread = {
  status: 413,
  message: "Cannot read the body: it is larger than the server takes (bodyBytes)",
};
const CROWDED: Unread = {
  status: 503,
  message: "Cannot read the body: too many large ones are on their way (bodiesBytes); send it again",
  headers: LATER,
};
