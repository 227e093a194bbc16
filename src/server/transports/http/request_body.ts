/**
 * Reads request bodies. Limits the size of each body, and the time within which a body must arrive.
 */
import type { Holding } from "../../capacity/account.ts";
import type { Core } from "../../engine/core.ts";
import type { Bounds } from "../../capacity/limits.ts";
import { Aging } from "../../../core/aging.ts";
import type { Ticker, Timeout } from "../../../core/timers.ts";
import type { Link } from "../../call/link.ts";
import { HEAVY, LargeBodies, SLOW_MS, SMALL } from "./large_body.ts";
import { type Turn, Turns } from "../../capacity/turns.ts";
import { INCOMPLETE, isWithin, TOO_MUCH_ARRIVING, tooSlow } from "./body_refusals.ts";
import type { Refusal } from "./refusals.ts";

/** Number of bytes that are charged for a slow small body, including the runtime's buffer. */
const SLOW_BYTES = 2 * SMALL;

/** The client that sends a body. The account is looked up only for a large or slow body. */
type Sender = Pick<Link, "account" | "signal">;

type OnBody = (body: ArrayBuffer | Refusal) => void;

interface SmallBody {
  readonly sender: Sender;
  readonly onBody: OnBody;
  isOver: boolean;
  slow?: { readonly deadline: Timeout; readonly charge: Holding };
  /** The turn of a body over {@linkcode HEAVY} bytes. Set when the body has arrived. */
  turn?: Turn;
}

export class RequestBodies {
  readonly #limits: Bounds["request"];
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<SmallBody>;
  // Bound: `memory.bytes`.
  readonly #slow = new Set<SmallBody>();
  /**
   * The turns of bodies over {@linkcode HEAVY} bytes. The code that parses and runs a body must call `pause` and `end`.
   */
  readonly turns: Turns = new Turns();
  readonly #large: LargeBodies;
  /** The refusal of all further bodies. Set by `close`. */
  #closed?: Refusal;

  constructor(core: Core) {
    const { limits: { request }, ticker } = core;
    this.#limits = request;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, request.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (body) => this.#setDeadline(body));
    this.#large = new LargeBodies(core, this.turns);
  }

  /** Calls `onBody` once. A callback, because a promise would take more CPU time than the rest of this method. */
  read(request: Request, sender: Sender, onBody: OnBody): void {
    if (this.#closed) return onBody(this.#closed);
    const length = request.headers.get("content-length");
    // For a small body, the runtime enforces the declared length, so only a timeout is needed.
    if (length === null || !isWithin(length, this.#small) || sender.signal) {
      this.#large.read(request, sender).catch(() => INCOMPLETE).then(onBody);
      return;
    }
    const body: SmallBody = { sender, onBody, isOver: false, slow: undefined, turn: undefined };
    this.#arriving.add(body);
    request.arrayBuffer().then((bytes) => this.#receive(body, bytes), () => this.#end(body, INCOMPLETE));
  }

  // Passes on a body that has arrived. A body that waits for its turn stays in `#arriving`, so that the client is
  // charged if the wait is long.
  #receive(body: SmallBody, bytes: ArrayBuffer): void {
    if (bytes.byteLength <= HEAVY) return this.#end(body, bytes);
    if (body.isOver) return;
    const turn = body.turn = this.turns.enqueue(body.sender.account.turnKey);
    turn.begun.then(() => this.#end(body, bytes));
  }

  // Passes on the result. Leaves the queue of turns, so that a rejected body does not stay in memory until its turn.
  // Ends the charge, because the body no longer takes memory, even if the client keeps the connection open.
  #end(body: SmallBody, result: ArrayBuffer | Refusal): void {
    if (body.isOver) return;
    body.isOver = true;
    this.#arriving.delete(body);
    if (body.slow) {
      this.#slow.delete(body);
      this.#ticker.cancel(body.slow.deadline);
      body.slow.charge.end();
    }
    body.onBody(result);
    body.turn?.leave();
  }

  /** Rejects all bodies that are being read, and all further bodies, because the server is closing. */
  close(refusal: Refusal): void {
    this.#closed = refusal;
    this.#arriving.flush();
    for (const body of this.#slow) this.#end(body, refusal);
    this.#large.close(refusal);
  }

  #setDeadline(body: SmallBody): void {
    if (this.#closed) return this.#end(body, this.#closed);
    const { bodyMs } = this.#limits;
    const charge = body.sender.account.keep(SLOW_BYTES, () => {
      this.#end(body, TOO_MUCH_ARRIVING);
      return true;
    });
    if (!charge) return this.#end(body, TOO_MUCH_ARRIVING);
    const deadline = this.#ticker.startTimeout(bodyMs, () => this.#end(body, tooSlow(bodyMs)));
    body.slow = { deadline, charge };
    this.#slow.add(body);
  }
}
