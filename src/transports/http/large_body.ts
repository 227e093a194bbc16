/**
 * Reads request bodies that are large or do not declare their length. Limits are checked while the bytes arrive.
 *
 * @module
 */
import type { Account, Drop, Holding, Pot } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { Bounds } from "../../core/capacity/limits.ts";
import { Aging, type Ticker } from "../../core/capacity/timers.ts";
import { HEAVY, type Turn, type Turns } from "./turns.ts";
import { type Refusal, TOO_LARGE, TOO_MUCH_ARRIVING, TOO_SMALL_PIECES, tooSlow } from "./refusals.ts";

/** Maximum size of a small body in bytes. Even thousands of small bodies take little memory. */
export const SMALL = 65_536;

/** Milliseconds after which a body counts as slow, so that the memory of the runtime is charged too. */
export const SLOW_MS = 25;

/** A body that is arriving. */
interface IncomingBody {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly buffer: BodyBuffer;
  size: number;
  /** The charge for the memory of the buffer and of the runtime. */
  charge?: Holding;
  /** The charge in the pot of all bodies over {@linkcode SMALL} bytes. */
  place?: Holding;
  /** The reason why reading was stopped. */
  refusal?: Refusal;
  /** The turn of a large body. Set when the body has arrived. */
  turn?: Turn;
}

/** Reads large bodies. Some limits apply to each body, and other limits apply to all arriving bodies together. */
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
   * The caller must decode the body within microtasks: the buffer of a body over {@linkcode HEAVY} bytes is freed with
   * the next timer.
   */
  async read(request: Request, account: Account): Promise<ArrayBuffer | Refusal> {
    const { bodyBytes, bodyMs } = this.#limits;
    const length = request.headers.get("content-length");
    // A length that is not a number counts as too large.
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
          // The body may have been refused while it waited, because there was no room or other bodies needed its room.
          return body.refusal ?? buffer.lend();
        }
        const from = body.size;
        body.size += value.length;
        if (body.size > bodyBytes) return TOO_LARGE;
        if (!this.#hold(body)) lose();
        if (body.size > SMALL) this.#list(body, account, lose);
        if (body.refusal) return body.refusal;
        // Limit the number of small pieces, because each piece takes some microseconds, even if it has one byte.
        if (++reads > MAX_READS && body.size / reads < SMALLEST_PIECE) return TOO_SMALL_PIECES;
        // Copy the piece, because a runtime may keep a buffer of 64 KiB for a piece of one byte.
        buffer.write(value, from);
      }
    } catch (error) {
      // Cancelling the reader makes one runtime report the end of the body, and another runtime an error.
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

  /** Stops reading all bodies. */
  close(refusal: Refusal): void {
    for (const body of this.#reading) stop(body, refusal);
  }

  // Charge the bytes before they are written, because writing them makes the buffer grow.
  #hold({ buffer, size, charge }: IncomingBody): boolean {
    const more = buffer.toSize(size) - buffer.size;
    return more <= 0 || !!charge?.grow(more);
  }

  // At the limit, the client with the most bytes loses its oldest body. A slow body can therefore not block all other
  // bodies, and no client can evict the bodies of other clients. A single body may exceed the limit.
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
 * Memory that is no longer needed is freed at once, by detaching its buffer. Otherwise the engine would free the buffer
 * only at the next garbage collection, and many more bodies may arrive before that.
 */
class BodyBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST);
  readonly #expected: number;
  #isLent = false;

  /** Creates a buffer for a body of `expected` bytes. The actual body may be larger. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  /** Bytes of memory that the buffer takes. */
  get size(): number {
    return this.#bytes.length;
  }

  /** Returns the bytes of memory that the buffer takes when it contains this many bytes of the body. */
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

  /** Releases memory that the body does not need. */
  trim(size: number): void {
    if (size < this.#bytes.length) this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
  }

  /** Returns all bytes. A large buffer is detached with the next timer, so the caller must use it before that. */
  lend(): ArrayBuffer {
    this.#isLent = true;
    const { buffer } = this.#bytes;
    if (buffer.byteLength > HEAVY) setTimeout(() => free(buffer));
    return buffer;
  }

  /** Frees the memory, unless `lend` has returned it. */
  close(): void {
    if (!this.#isLent) free(this.#bytes.buffer);
  }
}

function free(buffer: ArrayBuffer): void {
  buffer.transfer(0);
}

/** Initial size of a buffer in bytes. */
const FIRST = 1024;
/**
 * Bytes that a runtime holds for a body that arrives slowly. Measured with 1500 bodies of one byte: 205 KB on Deno, 18
 * KB on Bun.
 */
const RUNTIME_BYTES = 196_608;

/** Number of pieces above which the average piece of a body must have a minimum size. */
const MAX_READS = 10_000;
const SMALLEST_PIECE = 64;

function stop(body: IncomingBody, refusal?: Refusal): void {
  body.refusal ??= refusal;
  body.turn?.leave();
  body.reader.cancel().catch(() => {});
}
