/**
 * Slots for operations that clients share, and the queue of the operations that wait for a slot.
 */
import type { Account, Pot } from "./account.ts";
import { FairQueue } from "./fair_queue.ts";

/** The pots that limit the operations in progress and the requests that wait to begin, per client and in total. */
export interface SlotPots {
  readonly slots: Pot;
  readonly waiting: Pot;
}

interface Waiting {
  readonly account: Account;
  /** Whether this is the first operation of a request, which counts towards the limit on waiting requests. */
  readonly isFirst: boolean;
  readonly start: () => void;
}

/**
 * Slots that clients share. A client that has used up its share can only delay itself. If several clients have used up
 * all slots, each of them waits for at most one operation of each other waiting client, and a client that uses few
 * resources takes a slot of the reserve.
 */
export class Slots {
  readonly #slots: Pot;
  readonly #waiting: Pot;
  readonly #queue = new FairQueue<Waiting>();

  constructor({ slots, waiting }: SlotPots) {
    this.#slots = slots;
    this.#waiting = waiting;
  }

  /** Whether the client can take a slot without waiting. */
  isFree(account: Account): boolean {
    return this.#slots.hasShare(account) && this.#slots.hasRoom(account);
  }

  /** Call only if {@linkcode isFree} returns `true`. */
  acquire(account: Account): void {
    this.#slots.add(account);
  }

  /**
   * Waits for a slot, which is taken when the promise resolves. Returns `undefined` if the operation is the first
   * operation of a request, and the queue is full. Later operations always wait, because their number is limited by the
   * number of requests that have begun.
   */
  wait(account: Account, isFirst: boolean): Promise<void> | undefined {
    if (isFirst && !this.#waiting.charge(account)) return;
    const { promise, resolve: start } = Promise.withResolvers<void>();
    this.#queue.add(account.turnKey, { account, isFirst, start });
    return promise;
  }

  /** Releases a slot, and starts the waiting operations for which there is room. */
  give(account: Account): void {
    this.#slots.give(account);
    for (let next = this.#nextReady(); next; next = this.#nextReady()) {
      if (next.isFirst) this.#waiting.give(next.account);
      this.#slots.add(next.account);
      next.start();
    }
  }

  #nextReady(): Waiting | undefined {
    return this.#queue.dequeue(({ account }) => this.isFree(account));
  }
}
