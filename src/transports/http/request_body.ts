/**
 * Request bodies, read within the limits.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Limits } from "../../core/limits.ts";
import { LATER, type Reply } from "../../core/link.ts";
import { Aging, type Alarm, type Ticker } from "../../core/timers.ts";

/** Bytes up to which a body is small: what a few thousand of these hold is no danger. */
const SMALL = 65_536;

/** Milliseconds after which a small body is found to be slow, and gets a deadline. */
const SLOW_MS = 25;

/** Why a body was not read. */
export interface Unread {
  readonly status: number;
  readonly message: string;
  readonly headers?: Reply["headers"];
}

/** A small body on its way. */
interface Arrival {
  /** Gives the body up. */
  readonly giveUp: (unread: Unread) => void;
  deadline?: Alarm;
}

/** A large body, which is counted as it comes. */
interface Coming {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly account: Account;
  size: number;
  /** Bytes that its client is charged with. */
  held: number;
  /** Why the rest is not wanted. */
  unread?: Unread;
}

/** Reads bodies: each up to one limit, all large ones that are on their way up to another. */
export class RequestBodies {
  readonly #limits: Limits;
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<Arrival>;
  /** Large bodies on their way, the oldest first. */
  readonly #large = new Set<Coming>();
  #held = 0;

  /** Nothing read yet. */
  constructor(limits: Limits, ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, limits.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (arrival) => this.#setDeadline(arrival));
  }

  /** All bytes, or why not. Throws if the client breaks off. `account` is called for a large body. */
  read(request: Request, account: () => Account): Promise<ArrayBuffer | Unread> {
    const length = request.headers.get("content-length");
    // The runtime holds the client to the length of a small body, but not to a time.
    if (length === null || !(Number(length) <= this.#small)) return this.#readLarge(request, account);
    return new Promise((resolve, reject) => {
      const arrival: Arrival = { giveUp: resolve };
      this.#arriving.add(arrival);
      request.arrayBuffer().then((body) => {
        this.#arriving.delete(arrival);
        if (arrival.deadline) this.#ticker.drop(arrival.deadline);
        resolve(body);
      }, (error) => {
        this.#arriving.delete(arrival);
        if (arrival.deadline) this.#ticker.drop(arrival.deadline);
        reject(error);
      });
    });
  }

  #setDeadline(arrival: Arrival): void {
    const { bodyMs } = this.#limits;
    arrival.deadline = this.#ticker.alarm(bodyMs, () => arrival.giveUp(tooSlow(bodyMs)));
  }

  async #readLarge(request: Request, account: () => Account): Promise<ArrayBuffer | Unread> {
    const { bodyBytes, bodyMs } = this.#limits;
    // A length that is no number is too large as well.
    if (!(Number(request.headers.get("content-length")) <= bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const body: Coming = { reader, account: account(), size: 0, held: 0 };
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
      if (this.#held <= this.#limits.bodiesBytes || this.#large.size === 1) return;
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

function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (bodyMs)` };
}

const TOO_LARGE: Unread = {
  status: 413,
  message: "Cannot read the body: it is larger than the server takes (bodyBytes)",
};
const CROWDED: Unread = {
  status: 503,
  message: "Cannot read the body: too much is on its way (bodiesBytes, clientBytes, totalBytes); send it again",
  headers: LATER,
};
