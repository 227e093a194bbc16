/**
 * Reads request bodies within the limits.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Core } from "../../core/core.ts";
import type { Limits } from "../../core/limits.ts";
import { type Reply, RETRY_AFTER } from "../../core/link.ts";
import { Aging, type Ticker, type Timeout } from "../../core/timers.ts";
import type { LargeBodies } from "./large_body.ts";
import { type Turn, Turns } from "./turns.ts";

/** Maximum bytes of a small body. Even thousands of them take little memory. */
export const SMALL = 65_536;

/** Bytes above which a body waits for its turn, because parsing and validating it may take milliseconds. */
export const HEAVY = 32_768;

/** Milliseconds after which a small body counts as slow, and gets a timeout. */
const SLOW_MS = 25;

/** Bytes to charge for a slow small body, including the runtime's buffer. */
const SLOW_BYTES = 2 * SMALL;

/** The reason why a body was not read. */
export interface Unread {
  readonly status: number;
  readonly message: string;
  readonly headers?: Reply["headers"];
}

/** Waits for one body. */
export interface Receiver {
  /** Account of the client. It is looked up only for a large or slow body. */
  readonly account: Account;
  /** Called at most once, when the body is no longer awaited. Drop any data that arrives later. */
  abort(unread: Unread): void;
}

/** A small body that was found to be slow. */
interface Slow {
  readonly deadline: Timeout;
  /** The charged account. */
  readonly account: Account;
}

/** Reads request bodies. */
export class RequestBodies {
  readonly #core: Core;
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<Receiver>;
  readonly #slow = new Map<Receiver, Slow>();
  readonly #turns = new Turns();
  /** Bodies that wait for their turn. */
  readonly #waiting = new Map<Receiver, Turn>();
  #large?: LargeBodies;

  /** Creates a reader of bodies. */
  constructor(core: Core) {
    const { limits: { request }, ticker } = core;
    this.#core = core;
    this.#limits = request;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, request.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (receiver) => this.#setDeadline(receiver));
  }

  /**
   * Returns all bytes, or the reason why the body was not read. Throws if the client disconnects.
   *
   * Always call {@linkcode RequestBodies.end} afterwards. This method does not call it itself, because a second promise
   * would cost more than the rest of the reading.
   */
  read(request: Request, receiver: Receiver): Promise<ArrayBuffer | Unread> {
    const length = request.headers.get("content-length");
    // The runtime enforces the declared length of a small body, but no timeout.
    if (length === null || !(Number(length) <= this.#small)) return this.#readLarge(request, receiver.account);
    this.#arriving.add(receiver);
    return Number(length) > HEAVY ? this.#readInTurn(request, receiver) : request.arrayBuffer();
  }

  // It counts as arriving while it waits for its turn, so it is charged after a while.
  async #readInTurn(request: Request, receiver: Receiver): Promise<ArrayBuffer> {
    const body = await request.arrayBuffer();
    const { account } = receiver;
    const turn = this.#turns.take(account.key ?? account);
    this.#waiting.set(receiver, turn);
    await turn.begun;
    this.#waiting.delete(receiver);
    return body;
  }

  // A body that is no longer awaited must not stay in memory until its turn.
  #abort(receiver: Receiver, unread: Unread): void {
    receiver.abort(unread);
    this.#waiting.get(receiver)?.leave();
  }

  /** Call this when reading has ended. */
  end(receiver: Receiver): void {
    this.#arriving.delete(receiver);
    if (this.#slow.size) this.#endSlow(receiver);
  }

  #setDeadline(receiver: Receiver): void {
    const { bodyMs } = this.#limits;
    const { account } = receiver;
    if (!account.hold(SLOW_BYTES)) return this.#abort(receiver, TOO_MUCH_ARRIVING);
    const deadline = this.#ticker.startTimeout(bodyMs, () => this.#abort(receiver, tooSlow(bodyMs)));
    this.#slow.set(receiver, { deadline, account });
  }

  #endSlow(receiver: Receiver): void {
    const slow = this.#slow.get(receiver);
    if (!slow) return;
    this.#slow.delete(receiver);
    this.#ticker.cancel(slow.deadline);
    slow.account.free(SLOW_BYTES);
  }

  // Loaded on demand.
  async #readLarge(request: Request, account: Account): Promise<ArrayBuffer | Unread> {
    const { LargeBodies } = await import("./large_body.ts");
    this.#large ??= new LargeBodies(this.#core, this.#turns);
    return await this.#large.read(request, account);
  }
}

/** The response to an incomplete body, whose client disconnected. */
export const INCOMPLETE: Unread = { status: 400, message: "Cannot read the body: it is incomplete" };

/** The rejection of a body that did not arrive in time. */
export function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (request.bodyMs)` };
}

/** The rejection of a body while too many bytes are arriving. */
export const TOO_MUCH_ARRIVING: Unread = {
  status: 503,
  message:
    "Cannot read the body: too much data is arriving (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send it again",
  headers: RETRY_AFTER,
};
