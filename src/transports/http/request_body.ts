/**
 * Reads request bodies within the limits.
 *
 * @module
 */
import type { Account } from "../../core/account.ts";
import type { Limits } from "../../core/limits.ts";
import { LATER, type Reply } from "../../core/link.ts";
import { Aging, type Alarm, type Ticker } from "../../core/timers.ts";
import type { LargeBodies } from "./large_body.ts";

/** Maximum bytes of a small body. Even thousands of them take little memory. */
export const SMALL = 65_536;

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

/** A small body that is arriving. */
interface Arrival {
  /** Stops waiting for the body. */
  readonly giveUp: (unread: Unread) => void;
  readonly account: () => Account;
  deadline?: Alarm;
  /** The charged account, once the body is slow. */
  charged?: Account;
}

/** Reads request bodies. */
export class RequestBodies {
  readonly #limits: Limits["request"];
  readonly #ticker: Ticker;
  readonly #small: number;
  readonly #arriving: Aging<Arrival>;
  #large?: LargeBodies;

  /** Creates a reader of bodies. */
  constructor(limits: Limits["request"], ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
    this.#small = Math.min(SMALL, limits.bodyBytes);
    this.#arriving = new Aging(ticker, SLOW_MS, (arrival) => this.#setDeadline(arrival));
  }

  /**
   * Returns the body, or the reason why it was not read. Throws if the client disconnects. Calls `account` for a large
   * body.
   */
  read(request: Request, account: () => Account): Promise<ArrayBuffer | Unread> {
    const length = request.headers.get("content-length");
    // The runtime enforces the length of a small body, but no timeout.
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

  // Loaded on demand.
  async #readLarge(request: Request, account: Account): Promise<ArrayBuffer | Unread> {
    const { LargeBodies } = await import("./large_body.ts");
    this.#large ??= new LargeBodies(this.#limits, this.#ticker);
    return await this.#large.read(request, account);
  }
}

/** Returns the rejection of a body that takes too long. */
export function tooSlow(bodyMs: number): Unread {
  return { status: 408, message: `Cannot read the body: it took longer than ${bodyMs} ms (request.bodyMs)` };
}

/** The rejection of a body while too many bytes are arriving. */
export const CROWDED: Unread = {
  status: 503,
  message:
    "Cannot read the body: too much data is arriving (request.allBodiesBytes, memory.bytesPerClient, memory.bytes); send it again",
  headers: LATER,
};
