/**
 * Large bodies, counted as they come.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Limits } from "../../core/limits.ts";
import { LATER } from "../../core/link.ts";
import type { Ticker } from "../../core/timers.ts";
import { SMALL, tooSlow, type Unread } from "./request_body.ts";

/** A body on its way. */
interface Coming {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly account: Account;
  size: number;
  /** Bytes that its client is charged with. */
  held: number;
  /** Why the rest is not wanted. */
  unread?: Unread;
}

/** Reads large bodies: each up to one limit, all that are on their way up to another. */
export class LargeBodies {
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  /** Those on their way, the oldest first. */
  readonly #large = new Set<Coming>();
  #held = 0;

  /** Nothing read yet. */
  constructor(limits: Limits["request"], ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
  }

  /** All bytes, or why not. Throws if the client breaks off. */
  async read(request: Request, account: Account): Promise<ArrayBuffer | Unread> {
    const { bodyBytes, bodyMs } = this.#limits;
    // A length that is no number is too large as well.
    if (!(Number(request.headers.get("content-length")) <= bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const body: Coming = { reader, account, size: 0, held: 0 };
    const deadline = this.#ticker.alarm(bodyMs, () => stop(body, tooSlow(bodyMs)));
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (body.unread) return body.unread;
        if (done) return await new Blob(chunks).arrayBuffer();
        chunks.push(value);
        this.#hold(body, value.length);
        if (body.size > bodyBytes) return TOO_LARGE;
        if (body.unread) return body.unread;
      }
    } catch (error) {
      // Where reading is stopped in the middle, one runtime says that the body has ended and another that it broke.
      if (body.unread) return body.unread;
      throw error;
    } finally {
      this.#ticker.drop(deadline);
      this.#release(body);
      stop(body);
    }
  }

  #hold(body: Coming, bytes: number): void {
    body.size += bytes;
    if (body.size <= SMALL) return;
    this.#large.add(body);
    const more = body.size - body.held;
    if (!body.account.hold(more)) return stop(body, CROWDED);
    body.held += more;
    this.#held += more;
    this.#makeRoom();
  }

  // The oldest makes room: one that takes its time must not keep out all others. One alone may be as large as it may be.
  #makeRoom(): void {
    for (const oldest of this.#large) {
      if (this.#held <= this.#limits.allBodiesBytes || this.#large.size === 1) return;
      this.#release(oldest);
      stop(oldest, CROWDED);
    }
  }

  #release(body: Coming): void {
    if (!this.#large.delete(body)) return;
    this.#held -= body.held;
    body.account.free(body.held);
    body.held = 0;
  }
}

function stop(body: Coming, unread?: Unread): void {
  body.unread ??= unread;
  body.reader.cancel().catch(() => {});
}

const TOO_LARGE: Unread = {
  status: 413,
  message: "Cannot read the body: it is larger than the server takes (request.bodyBytes)",
};
const CROWDED: Unread = {
  status: 503,
  message:
    "Cannot read the body: too much is on its way (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send it again",
  headers: LATER,
};
