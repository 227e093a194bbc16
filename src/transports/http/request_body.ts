/**
 * Reads request bodies within the limits.
 *
 * @module
 */
import type { Account, Holding } from "../../core/capacity/account.ts";
import type { Core } from "../../core/core.ts";
import type { Limits } from "../../core/capacity/limits.ts";
import { Aging } from "../../core/capacity/aging.ts";
import type { Ticker, Timeout } from "../../core/capacity/timers.ts";
import { LargeBodies, SLOW_MS, SMALL } from "./large_body.ts";
import { HEAVY, type Turn, Turns } from "./turns.ts";
import { type Refusal, TOO_MUCH_ARRIVING, tooSlow } from "./refusals.ts";

/** Bytes to charge for a slow small body, including the runtime's buffer. */
const SLOW_BYTES = 2 * SMALL;

/** Waits for one body. */
export interface Receiver {
  /** Account of the client. It is looked up only for a large or slow body. */
  readonly account: Account;
  /** Called at most once, when the body is no longer awaited. Drop any data that arrives later. */
  abort(refusal: Refusal): void;
}

/** A small body that was found to be slow. */
interface Slow {
  readonly deadline: Timeout;
  readonly charge: Holding;
}

/** Reads request bodies. */
export class RequestBodies {
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<Receiver>;
  readonly #slow = new Map<Receiver, Slow>();
  /** The turns of bodies over {@linkcode HEAVY} bytes. Their reader reports the end of each step. */
  readonly turns: Turns = new Turns();
  /** Awaited bodies that need a turn. Those that have arrived have a place in the queue. */
  readonly #heavy = new Map<Receiver, Turn | undefined>();
  readonly #large: LargeBodies;
  /** Why no body is read any more. */
  #closed?: Refusal;

  /** Creates a reader of bodies. */
  constructor(core: Core) {
    const { limits: { request }, ticker } = core;
    this.#limits = request;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, request.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (receiver) => this.#setDeadline(receiver));
    this.#large = new LargeBodies(core, this.turns);
  }

  /**
   * Returns all bytes, or the reason why the body was not read. Throws if the client disconnects.
   *
   * Always call {@linkcode RequestBodies.end} afterwards. This method does not call it itself, because a second promise
   * would cost more than the rest of the reading.
   */
  read(request: Request, receiver: Receiver): Promise<ArrayBuffer | Refusal> {
    if (this.#closed) return Promise.resolve(this.#closed);
    const length = request.headers.get("content-length");
    // The runtime enforces the declared length of a small body, but no timeout.
    if (length === null || !(Number(length) <= this.#small)) {
      return this.#large.read(request, receiver.account);
    }
    this.#arriving.add(receiver);
    if (Number(length) > HEAVY) return this.#readInTurn(request, receiver);
    return request.arrayBuffer();
  }

  // It counts as arriving while it waits for its turn, so it is charged after a while.
  async #readInTurn(request: Request, receiver: Receiver): Promise<ArrayBuffer> {
    this.#heavy.set(receiver, undefined);
    const body = await request.arrayBuffer();
    if (!this.#heavy.has(receiver)) return body;
    const { account } = receiver;
    const turn = this.turns.take(account.turnKey);
    this.#heavy.set(receiver, turn);
    await turn.begun;
    return body;
  }

  // A body that is no longer awaited must not stay in memory until its turn. A client that sends nothing more may keep
  // the connection open for as long as it wants, so its charge must not last until then.
  #abort(receiver: Receiver, refusal: Refusal): void {
    receiver.abort(refusal);
    const turn = this.#heavy.get(receiver);
    this.#heavy.delete(receiver);
    turn?.leave();
    this.#endSlow(receiver);
  }

  /** Call this when reading has ended. */
  end(receiver: Receiver): void {
    this.#arriving.delete(receiver);
    if (this.#heavy.size) this.#heavy.delete(receiver);
    if (this.#slow.size) this.#endSlow(receiver);
  }

  /** Stops reading, because the server is closing: its calls could not run. */
  close(refusal: Refusal): void {
    this.#closed = refusal;
    this.#arriving.flush();
    for (const receiver of this.#slow.keys()) this.#abort(receiver, refusal);
    this.#large.close(refusal);
  }

  #setDeadline(receiver: Receiver): void {
    if (this.#closed) return this.#abort(receiver, this.#closed);
    const { bodyMs } = this.#limits;
    const { account } = receiver;
    const charge = account.keep(SLOW_BYTES, () => {
      this.#abort(receiver, TOO_MUCH_ARRIVING);
      return true;
    });
    if (!charge) return this.#abort(receiver, TOO_MUCH_ARRIVING);
    const deadline = this.#ticker.startTimeout(bodyMs, () => this.#abort(receiver, tooSlow(bodyMs)));
    this.#slow.set(receiver, { deadline, charge });
  }

  #endSlow(receiver: Receiver): void {
    const slow = this.#slow.get(receiver);
    if (!slow) return;
    this.#slow.delete(receiver);
    this.#ticker.cancel(slow.deadline);
    slow.charge.end();
  }
}
