/**
 * Reads request bodies that are large or have no Content-Length. Checks limits while the bytes arrive.
 */
import type { Account, Drop, Holding, Pot } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";
import type { Bounds } from "../../capacity/limits.ts";
import { Aging } from "../../../core/aging.ts";
import type { Ticker } from "../../../core/timers.ts";
import type { Link } from "../../call/link.ts";
import type { Turn, Turns } from "../../capacity/turns.ts";
import {
  hasSmallPieces,
  INCOMPLETE,
  isWithin,
  TOO_LARGE,
  TOO_MUCH_ARRIVING,
  TOO_SMALL_PIECES,
  tooSlow,
} from "./body_refusals.ts";
import type { Refusal } from "./refusals.ts";

/** Maximum size of a small body, in bytes. Even thousands of small bodies take little memory. */
export const SMALL = 65_536;

/** Size in bytes above which a body waits for its turn, because parsing it may take milliseconds. */
export const HEAVY = 16_384;

/** Milliseconds after which an arriving body is slow. The client is then also charged for the runtime's memory. */
export const SLOW_MS = 25;

interface IncomingBody {
  readonly reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly buffer: BodyBuffer;
  size: number;
  /** The charge for the buffer, and for the runtime's memory if the body is slow. */
  charge?: Holding;
  /** The charge in the pot of all bodies over {@linkcode SMALL} bytes. */
  place?: Holding;
  /** The refusal with which the request is rejected. Set when reading was stopped. */
  refusal?: Refusal;
  /** The turn of a body over {@linkcode HEAVY} bytes. Set when the body has arrived. */
  turn?: Turn;
}

/** Some limits apply to each body, and `request.allBodiesBytes` applies to the total of all bodies. */
export class LargeBodies {
  readonly #limits: Bounds["request"];
  readonly #ticker: Ticker;
  readonly #turns: Turns;
  // Bound: `request.allBodiesBytes`.
  readonly #reading = new Set<IncomingBody>();
  readonly #arriving: Aging<IncomingBody>;

  constructor(core: Core, turns: Turns) {
    this.#turns = turns;
    this.#limits = core.limits.request;
    this.#ticker = core.ticker;
    this.#arriving = new Aging(core.ticker, SLOW_MS, (body) => {
      if (!body.charge?.grow(RUNTIME_BYTES)) stop(body, TOO_MUCH_ARRIVING);
    });
  }

  /**
   * Returns the body, or a refusal if the body exceeds a limit. Throws if the client disconnects.
   *
   * The caller must decode the body in the same turn of the event loop, because the buffer of a body over {@linkcode
   * HEAVY} bytes is freed in the next turn.
   */
  async read(
    request: Request,
    { account, signal }: Pick<Link, "account" | "signal">,
  ): Promise<ArrayBuffer | Refusal> {
    const { bodyBytes, bodyMs } = this.#limits;
    const length = request.headers.get("content-length");
    if (!isWithin(length, bodyBytes)) return TOO_LARGE;
    const reader = request.body?.getReader();
    if (!reader) return new ArrayBuffer(0);
    const buffer = new BodyBuffer(length === null ? bodyBytes : Number(length));
    const body: IncomingBody = { reader, buffer, size: 0 };
    const drop = () => {
      stop(body, TOO_MUCH_ARRIVING);
      return true;
    };
    body.charge = account.keep(buffer.size, drop);
    if (!body.charge) drop();
    this.#reading.add(body);
    this.#arriving.add(body);
    const deadline = this.#ticker.startTimeout(bodyMs, () => stop(body, tooSlow(bodyMs)));
    const onAbort = () => stop(body, INCOMPLETE);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();
    let reads = 0;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (body.refusal) return body.refusal;
        if (done) {
          this.#ticker.cancel(deadline);
          buffer.trim(body.size);
          if (body.size > HEAVY) {
            body.turn = this.#turns.enqueue(account.turnKey);
            this.#list(body, account, drop);
            await body.turn.begun;
          }
          // While the body waited for its turn, the server may have rejected the body to make room for other bodies.
          return body.refusal ?? buffer.lend();
        }
        const from = body.size;
        body.size += value.length;
        if (body.size > bodyBytes) return TOO_LARGE;
        if (!this.#hold(body)) drop();
        if (body.size > SMALL) this.#list(body, account, drop);
        if (body.refusal) return body.refusal;
        if (hasSmallPieces(body.size, ++reads)) return TOO_SMALL_PIECES;
        // Copy the piece, because a runtime may keep a 64 KiB buffer for a piece of one byte.
        buffer.write(value, from);
      }
    } catch (error) {
      // After the reader is cancelled, a runtime either reports the end of the body or throws an error.
      if (body.refusal) return body.refusal;
      throw error;
    } finally {
      this.#ticker.cancel(deadline);
      signal?.removeEventListener("abort", onAbort);
      this.#reading.delete(body);
      this.#arriving.delete(body);
      buffer.close();
      body.charge?.end();
      body.place?.end();
      stop(body);
    }
  }

  close(refusal: Refusal): void {
    for (const body of this.#reading) stop(body, refusal);
  }

  // Charges the bytes before they are written, because the write may enlarge the buffer.
  #hold({ buffer, size, charge }: IncomingBody): boolean {
    const more = buffer.toSize(size) - buffer.size;
    return more <= 0 || !!charge?.grow(more);
  }

  // Counts the body in the pot of large bodies. At the limit, the client with the most bytes loses its oldest body.
  // Therefore a slow body cannot block other bodies, and a client cannot evict the bodies of clients that use less. A
  // body that arrives alone may exceed the limit.
  #list(body: IncomingBody, account: Account, drop: Drop): void {
    const pot = this.#toPot(account);
    const place = body.place ??= pot.keep(account, 0, drop);
    const { size } = body;
    if (place && pot.used === place.amount) place.add(size - place.amount);
    else if (!place?.grow(size - place.amount)) drop();
  }

  #toPot(account: Account): Pot {
    return account.pot({ name: "request.allBodiesBytes", total: this.#limits.allBodiesBytes, isCache: true });
  }
}

/**
 * The bytes of a body.
 *
 * Detaching a buffer that is no longer needed frees its memory immediately. Otherwise the engine would free the memory
 * only in the next garbage collection, before which many more bodies may arrive.
 */
class BodyBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST);
  readonly #expected: number;
  #isLent = false;

  /** `expected` is the expected size of the body in bytes. The actual size can be larger. */
  constructor(expected: number) {
    this.#expected = expected;
  }

  /** The size of the buffer in bytes, which is at least the size of the written pieces. */
  get size(): number {
    return this.#bytes.length;
  }

  toSize(bytes: number): number {
    const { size } = this;
    return bytes <= size ? size : Math.max(bytes, Math.min(2 * size, this.#expected));
  }

  /** Enlarges the buffer if necessary. */
  write(piece: Uint8Array, at: number): void {
    const size = this.toSize(at + piece.length);
    if (size > this.size) this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
    this.#bytes.set(piece, at);
  }

  /** Frees the part of the buffer after the first `size` bytes. */
  trim(size: number): void {
    if (size < this.#bytes.length) this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
  }

  /** The caller must use a large buffer in the current turn of the event loop, because it is detached in the next. */
  lend(): ArrayBuffer {
    this.#isLent = true;
    const { buffer } = this.#bytes;
    if (buffer.byteLength > HEAVY) setTimeout(() => free(buffer));
    return buffer;
  }

  /** Frees the memory, unless `lend` has returned the buffer. */
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
 * Memory that a runtime keeps for a body that arrives slowly, in bytes. A measurement with 1500 bodies of one byte gave
 * 205 KB per body on Deno, and 18 KB on Bun.
 */
const RUNTIME_BYTES = 196_608;

function stop(body: IncomingBody, refusal?: Refusal): void {
  body.refusal ??= refusal;
  body.turn?.leave();
  body.reader.cancel().catch(() => {});
}
