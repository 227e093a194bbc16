/**
 * Reads large request bodies, and limits them while they arrive.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Core } from "../../core/core.ts";
import type { Limits } from "../../core/limits.ts";
import type { Ticker } from "../../core/timers.ts";
import { HEAVY, SMALL, TOO_MUCH_ARRIVING, tooSlow, type Unread } from "./request_body.ts";
import type { Turn, Turns } from "./turns.ts";

/** A body that is arriving. */
interface IncomingBody {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly account: Account;
  size: number;
  /** Bytes that are charged to the client. */
  held: number;
  /** Reason to stop reading. */
  unread?: Unread;
  /** Set when the body has arrived. */
  turn?: Turn;
}

/** Reads large bodies. Limits apply to each body, and to all arriving bodies together. */
export class LargeBodies {
  readonly #core: Core;
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  readonly #turns: Turns;
  /** Bodies that are being read. */
  readonly #reading = new Set<IncomingBody>();
  /** Those of them that are charged, oldest first. */
  readonly #large = new Set<IncomingBody>();
  #held = 0;

  /** Creates a reader of large bodies. */
  constructor(core: Core, turns: Turns) {
    this.#turns = turns;
    this.#core = core;
    this.#limits = core.limits.request;
    this.#ticker = core.ticker;
  }

  /**
   * Returns the body, or the reason why it was not read. Throws if the client disconnects.
   *
   * Decode the body in microtasks: if it is over {@linkcode HEAVY} bytes, it is detached with the next timer.
   */
  async read(request: Request, account: Account): Promise<ArrayBuffer | Unread> {
    const { bodyBytes, bodyMs } = this.#limits;
    const length = request.headers.get("content-length");
    // An invalid length counts as too large.
    if (!(Number(length) <= bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const body: IncomingBody = { reader, account, size: 0, held: 0 };
    this.#reading.add(body);
    const deadline = this.#ticker.startTimeout(bodyMs, () => stop(body, tooSlow(bodyMs)));
    const buffer = new BodyBuffer(length === null ? bodyBytes : Number(length));
    let reads = 0;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (body.unread) return body.unread;
        if (done) {
          this.#ticker.cancel(deadline);
          buffer.trim(body.size);
          if (body.size > HEAVY) {
            body.turn = this.#turns.take(account.key ?? account);
            this.#charge(body);
            await body.turn.begun;
          }
          // There may have been no room for it, or it had to make room for others.
          return body.unread ?? buffer.lend();
        }
        const from = body.size;
        this.#hold(body, value.length);
        if (body.size > bodyBytes) return TOO_LARGE;
        if (body.unread) return body.unread;
        // Each piece costs some microseconds, however small it is.
        if (++reads > MAX_READS && body.size / reads < SMALLEST_PIECE) return TOO_SMALL_PIECES;
        // Copied, because a runtime may keep a buffer of 64 KiB for a piece of one byte.
        buffer.write(value, from);
      }
    } catch (error) {
      // If reading is cancelled, one runtime reports the end of the body and another one an error.
      if (body.unread) return body.unread;
      throw error;
    } finally {
      this.#ticker.cancel(deadline);
      this.#reading.delete(body);
      buffer.close();
      this.#release(body);
      stop(body);
    }
  }

  /** Stops reading. */
  close(unread: Unread): void {
    for (const body of this.#reading) stop(body, unread);
  }

  #hold(body: IncomingBody, bytes: number): void {
    body.size += bytes;
    if (body.size > SMALL) this.#charge(body);
  }

  #charge(body: IncomingBody): void {
    this.#large.add(body);
    const more = body.size - body.held;
    if (!body.account.hold(more)) return stop(body, TOO_MUCH_ARRIVING);
    body.held += more;
    this.#held += more;
    this.#makeRoom();
  }

  // Drops the oldest body of the client with most bytes. So a slow body cannot block all others, and no client can
  // evict the bodies of others. A single body may exceed the limit.
  #makeRoom(): void {
    while (this.#held > this.#limits.allBodiesBytes && this.#large.size > 1) {
      const held = new Map<unknown, number>();
      for (const { account, held: bytes } of this.#large) {
        const client = account.key ?? account;
        held.set(client, (held.get(client) ?? 0) + bytes);
      }
      const max = Math.max(...held.values());
      for (const body of this.#large) {
        if (held.get(body.account.key ?? body.account) !== max) continue;
        this.#release(body);
        this.#core.observing?.reach("request.allBodiesBytes", body.account.key);
        stop(body, TOO_MUCH_ARRIVING);
        break;
      }
    }
  }

  #release(body: IncomingBody): void {
    if (!this.#large.delete(body)) return;
    this.#held -= body.held;
    body.account.free(body.held);
    body.held = 0;
  }
}

/**
 * The bytes of one body.
 *
 * Memory that is no longer needed is freed at once, by detaching its buffer. An engine frees other buffers only when it
 * collects garbage, and many more bodies may arrive before that.
 */
class BodyBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(SMALL);
  readonly #expected: number;
  #isLent = false;

  /** Creates a buffer for a body with this number of bytes. It may get more. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  /** Writes a piece of the body. */
  write(piece: Uint8Array, at: number): void {
    const size = at + piece.length;
    const { length, buffer } = this.#bytes;
    if (size > length) {
      const room = Math.max(size, Math.min(2 * length, this.#expected));
      this.#bytes = new Uint8Array(buffer.transfer(room));
    }
    this.#bytes.set(piece, at);
  }

  /** Releases spare room. */
  trim(size: number): void {
    if (size < this.#bytes.length) this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
  }

  /** Returns all bytes. A large buffer is detached with the next timer. */
  lend(): ArrayBuffer {
    this.#isLent = true;
    const { buffer } = this.#bytes;
    if (buffer.byteLength > HEAVY) setTimeout(() => free(buffer));
    return buffer;
  }

  /** Frees the memory, unless it is lent. */
  close(): void {
    if (!this.#isLent) free(this.#bytes.buffer);
  }
}

function free(buffer: ArrayBuffer): void {
  buffer.transfer(0);
}

/** Number of pieces in which a body may arrive. Above it, the average piece must have a minimum size. */
const MAX_READS = 10_000;
const SMALLEST_PIECE = 64;

function stop(body: IncomingBody, unread?: Unread): void {
  body.unread ??= unread;
  body.turn?.leave();
  body.reader.cancel().catch(() => {});
}

const TOO_LARGE: Unread = {
  status: 413,
  message: "Cannot read the body: it is larger than the server accepts (request.bodyBytes)",
};
const TOO_SMALL_PIECES: Unread = { status: 400, message: "Cannot read the body: it comes in too many small pieces" };
