/**
 * Reads request bodies that are large or do not declare their length, and limits them while they arrive.
 *
 * @module
 */
import type { Account, Drop, Holding, Pot } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { Bounds } from "../../core/capacity/limits.ts";
import { Aging, type Ticker } from "../../core/capacity/timers.ts";
import { HEAVY, type Turn, type Turns } from "./turns.ts";
import { type Refusal, TOO_LARGE, TOO_MUCH_ARRIVING, TOO_SMALL_PIECES, tooSlow } from "./refusals.ts";

/** Maximum bytes of a small body. Even thousands of them take little memory. */
export const SMALL = 65_536;

/** Milliseconds after which a body counts as slow, and is charged. */
export const SLOW_MS = 25;

/** A body that is arriving. */
interface IncomingBody {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly buffer: BodyBuffer;
  size: number;
  /** The memory of the buffer and of the runtime. */
  charge?: Holding;
  /** The place among all bodies over {@linkcode SMALL} bytes. */
  place?: Holding;
  /** Reason to stop reading. */
  refusal?: Refusal;
  /** Set when the body has arrived. */
  turn?: Turn;
}

/** Reads large bodies. Limits apply to each body, and to all arriving bodies together. */
export class LargeBodies {
  readonly #limits: Bounds["request"];
  readonly #ticker: Ticker;
  readonly #turns: Turns;
  /** Bodies that are being read. */
  readonly #reading = new Set<IncomingBody>();
  readonly #arriving: Aging<IncomingBody>;

  /** Creates a reader of large bodies. */
  constructor(core: Core, turns: Turns) {
    this.#turns = turns;
    this.#limits = core.limits.request;
    this.#ticker = core.ticker;
    this.#arriving = new Aging(core.ticker, SLOW_MS, (body) => {
      if (!body.charge?.grow(RUNTIME_BYTES)) stop(body, TOO_MUCH_ARRIVING);
    });
  }

  /**
   * Returns the body, or the reason why it was not read. Throws if the client disconnects.
   *
   * Decode the body in microtasks: if it is over {@linkcode HEAVY} bytes, it is detached with the next timer.
   */
  async read(request: Request, account: Account): Promise<ArrayBuffer | Refusal> {
    const { bodyBytes, bodyMs } = this.#limits;
    const length = request.headers.get("content-length");
    // An invalid length counts as too large.
    if (!(Number(length) <= bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const buffer = new BodyBuffer(length === null ? bodyBytes : Number(length));
    const body: IncomingBody = { reader, buffer, size: 0 };
    const lose = () => {
      stop(body, TOO_MUCH_ARRIVING);
      return true;
    };
    body.charge = account.keep(buffer.size, lose);
    if (!body.charge) lose();
    this.#reading.add(body);
    this.#arriving.add(body);
    const deadline = this.#ticker.startTimeout(bodyMs, () => stop(body, tooSlow(bodyMs)));
    let reads = 0;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (body.refusal) return body.refusal;
        if (done) {
          this.#ticker.cancel(deadline);
          buffer.trim(body.size);
          if (body.size > HEAVY) {
            body.turn = this.#turns.take(account.turnKey);
            this.#list(body, account, lose);
            await body.turn.begun;
          }
          // There may have been no room for it, or it had to make room for others.
          return body.refusal ?? buffer.lend();
        }
        const from = body.size;
        body.size += value.length;
        if (body.size > bodyBytes) return TOO_LARGE;
        if (!this.#hold(body)) lose();
        if (body.size > SMALL) this.#list(body, account, lose);
        if (body.refusal) return body.refusal;
        // Each piece costs some microseconds, however small it is.
        if (++reads > MAX_READS && body.size / reads < SMALLEST_PIECE) return TOO_SMALL_PIECES;
        // Copied, because a runtime may keep a buffer of 64 KiB for a piece of one byte.
        buffer.write(value, from);
      }
    } catch (error) {
      // If reading is cancelled, one runtime reports the end of the body and another one an error.
      if (body.refusal) return body.refusal;
      throw error;
    } finally {
      this.#ticker.cancel(deadline);
      this.#reading.delete(body);
      this.#arriving.delete(body);
      buffer.close();
      body.charge?.end();
      body.place?.end();
      stop(body);
    }
  }

  /** Stops reading. */
  close(refusal: Refusal): void {
    for (const body of this.#reading) stop(body, refusal);
  }

  // Before its bytes are written, because the buffer grows for them.
  #hold({ buffer, size, charge }: IncomingBody): boolean {
    const more = buffer.toSize(size) - buffer.size;
    return more <= 0 || !!charge?.grow(more);
  }

  // At the limit, the client with most bytes loses its oldest body. So a slow body cannot block all others, and no client
  // can evict the bodies of others. A single body may exceed the limit.
  #list(body: IncomingBody, account: Account, lose: Drop): void {
    const pot = this.#toPot(account);
    const place = body.place ??= pot.keep(account, 0, lose);
    const { size } = body;
    if (place && pot.used === place.amount) place.add(size - place.amount);
    else if (!place?.grow(size - place.amount)) lose();
  }

  #toPot(account: Account): Pot {
    return account.pot({ name: "request.allBodiesBytes", total: this.#limits.allBodiesBytes, isCache: true });
  }
}

/**
 * The bytes of one body.
 *
 * Memory that is no longer needed is freed at once, by detaching its buffer. An engine frees other buffers only when it
 * collects garbage, and many more bodies may arrive before that.
 */
class BodyBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST);
  readonly #expected: number;
  #isLent = false;

  /** Creates a buffer for a body with this number of bytes. It may get more. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  /** Bytes of its memory. */
  get size(): number {
    return this.#bytes.length;
  }

  /** Returns the bytes that its memory has with this many bytes of the body. */
  toSize(bytes: number): number {
    const { size } = this;
    return bytes <= size ? size : Math.max(bytes, Math.min(2 * size, this.#expected));
  }

  /** Writes a piece of the body. */
  write(piece: Uint8Array, at: number): void {
    const size = this.toSize(at + piece.length);
    if (size > this.size) this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
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

/** Bytes of a new buffer. */
const FIRST = 1024;
/** Bytes that a runtime holds for a body that arrives slowly: 205 KB on Deno, 18 KB on Bun, with 1500 bodies of one byte. */
const RUNTIME_BYTES = 196_608;

/** Number of pieces in which a body may arrive. Above it, the average piece must have a minimum size. */
const MAX_READS = 10_000;
const SMALLEST_PIECE = 64;

function stop(body: IncomingBody, refusal?: Refusal): void {
  body.refusal ??= refusal;
  body.turn?.leave();
  body.reader.cancel().catch(() => {});
}
