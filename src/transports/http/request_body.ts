/**
 * Request bodies, read within the limits.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Limits } from "../../core/limits.ts";
import { LATER, type Reply } from "../../core/link.ts";
import { Aging, type Alarm, type Ticker } from "../../core/timers.ts";
import type { LargeBodies } from "./large_body.ts";

/** Bytes up to which a body is small: what a few thousand of these hold is no danger. */
export const SMALL = 65_536;

/** Milliseconds after which a small body is found to be slow, and gets a deadline. */
const SLOW_MS = 25;

/** Bytes that a small body takes while it is on its way, with what the runtime keeps for it. */
const SLOW_BYTES = 2 * SMALL;

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
  readonly account: () => Account;
  deadline?: Alarm;
  /** The client that is charged with it, once it is found to be slow. */
  charged?: Account;
}

/** Reads bodies. */
export class RequestBodies {
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<Arrival>;
  #large?: LargeBodies;

  /** Nothing read yet. */
  constructor(limits: Limits["request"], ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, limits.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (arrival) => this.#setDeadline(arrival));
  }

  /** All bytes, or why not. Throws if the client breaks off. `account` is called for a large body. */
  read(request: Request, account: () => Account): Promise<ArrayBuffer | Unread> {
    const length = request.headers.get("content-length");
    // The runtime holds the client to the length of a small body, but not to a time.
    if (length === null || !(Number(length) <= this.#small)) return this.#readLarge(request, account());
    return new Promise((resolve, reject) => {
      const arrival: Arrival = { giveUp: resolve, account };
      this.#arriving.add(arrival);
      request.arrayBuffer().then((body) => {
        this.#arriving.delete(arrival);
        if (arrival.deadline) this.#drop(arrival, arrival.deadline);
        resolve(body);
      }, (error) => {
        this.#arriving.delete(arrival);
        if (arrival.deadline) this.#drop(arrival, arrival.deadline);
        reject(error);
      });
    });
  }

  #setDeadline(arrival: Arrival): void {
    const { bodyMs } = this.#limits;
    arrival.deadline = this.#ticker.alarm(bodyMs, () => arrival.giveUp(tooSlow(bodyMs)));
    const account = arrival.account();
    if (account.hold(SLOW_BYTES)) arrival.charged = account;
    else arrival.giveUp(CROWDED);
  }

  #drop(arrival: Arrival, deadline: Alarm): void {
    this.#ticker.drop(deadline);
    arrival.charged?.free(SLOW_BYTES);
  }

  // Loaded with the first of them.
  async #readLarge(request: Request, account: Account): Promise<ArrayBuffer | Unread> {
    const { LargeBodies } = await import("./large_body.ts");
    this.#large ??= new LargeBodies(this.#limits, this.#ticker);
    return await this.#large.read(request, account);
  }
}

/** Why a body that does not come to its end is not waited for. */
export function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (request.bodyMs)` };
}

/** Why a body is not read when too much is on its way. */
export const CROWDED: Unread = {
  status: 503,
  message:
    "Cannot read the body: too much is on its way (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send it again",
  headers: LATER,
};
