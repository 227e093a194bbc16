/**
 * Limits the number of calls that run at the same time in a handler.
 */
import { toBusy } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Account, Pot } from "../../server/capacity/account.ts";
import type { Call } from "../../server/call/call.ts";
import { type ClientKey, toSharingKey } from "../../server/call/client_key.ts";
import { ClientShares } from "../../server/capacity/client_shares.ts";
import { FairQueue } from "../../server/capacity/fair_queue.ts";
import type { LayerCall, LayerEntry } from "../../server/engine/layers.ts";
import { deadline } from "../../core/kit/deadline.ts";

/** Limits on the running and the waiting calls of a handler. */
export interface Concurrency {
  /**
   * Maximum number of calls that run at the same time. If the number is at least 4, a single client can use at most
   * three quarters of it, rounded up, except over stdio.
   */
  readonly calls: number;
  /**
   * Maximum number of calls in the queue. The queue serves clients in round-robin order. A single client can use at
   * most a quarter of the queue. The last quarter of the queue is reserved for clients with few waiting calls. Defaults
   * to 64.
   */
  readonly waiting?: number;
}

interface Waiting {
  readonly client: ClientKey | undefined;
  readonly start: () => void;
}

/** The slots in which calls of a handler run, and the queue of calls that wait for a slot. */
export class Places {
  readonly #calls: number;
  readonly #waiting: number;
  readonly #key: string;
  /**
   * Waiting calls. The queue takes one call from each client in turn. All addresses of a network count as one client.
   * While a slot is free, each waiting call belongs to a client that uses its share of the slots.
   */
  readonly #queue = new FairQueue<Waiting>();
  readonly #shares: ClientShares;
  #taken = 0;

  constructor({ calls, waiting = 64 }: Concurrency, key: string) {
    this.#key = key;
    this.#calls = calls;
    this.#shares = new ClientShares(calls);
    this.#waiting = waiting;
  }

  /** Throws the error for the client if the call can neither run nor wait. */
  check(call: Call, { reachLimit, outer }: LayerCall): void {
    if (outer || this.#isFree(toSharingKey(call))) return;
    reachLimit("handler.concurrency");
    this.#requireRoom(call);
  }

  #isFree(client: ClientKey | undefined): boolean {
    return this.#taken < this.#calls && this.#shares.hasRoom(client);
  }

  #requireRoom({ link: { account, http } }: Call): void {
    const pot = this.#toPot(account);
    // Limit all HTTP requests from unknown clients to the share of one client. Otherwise these requests could fill the
    // queue, because each of them has a separate account.
    const isUnknown = http && account.key === undefined;
    const hasShare = isUnknown ? account.root.amount(pot) < pot.share : pot.hasShare(account);
    if (hasShare && pot.hasRoom(account)) return;
    throw toBusy("run the call: too many calls are running and waiting", "handler.concurrency");
  }

  #toPot(account: Account): Pot {
    const total = this.#waiting;
    // Include the limits in the name, because the handler may have another quota, or may be removed and added again with
    // different limits.
    const of = `${this.#key} ${this.#calls} ${total}`;
    return account.pot({ name: "handler.waiting", of, total, share: Math.ceil(total / 4) });
  }

  /** The slot is free again when the handler has ended. */
  run(call: Call, { ended, outer }: LayerEntry, next: () => Promise<Result>): Promise<Result> {
    // An inner call needs no slot. Two handlers that call each other could otherwise wait forever, because each of them
    // keeps its slot until its inner call has ended.
    if (outer) return next();
    const client = toSharingKey(call);
    if (!this.#isFree(client)) return this.#runLater(call, client, { ended, next });
    this.#take(client);
    this.#freeAfter(ended, client);
    if (call.ended) throw call.endError;
    return next();
  }

  async #runLater(call: Call, client: ClientKey | undefined, { ended, next }: Entered): Promise<Result> {
    this.#requireRoom(call);
    const recheck = call.host.recheck(call);
    call.observed?.wait();
    await call.untilAnswered(this.#wait(call, client));
    call.observed?.start();
    this.#freeAfter(ended, client);
    if (recheck) await deadline(recheck(), { signal: call.signal });
    if (call.ended) throw call.endError;
    return await next();
  }

  #take(client: ClientKey | undefined): void {
    this.#taken++;
    this.#shares.add(client);
  }

  #freeAfter(ended: Promise<void>, client: ClientKey | undefined): void {
    void ended.then(() => {
      this.#taken--;
      this.#shares.remove(client);
      this.#next();
    });
  }

  #wait({ signal, link: { account } }: Call, client: ClientKey | undefined): Promise<void> {
    const pot = this.#toPot(account);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        pot.give(account);
        this.#take(client);
        resolve();
      };
      const waiting = { client, start };
      const onAbort = () => {
        this.#queue.delete(client, waiting);
        pot.give(account);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      pot.add(account);
      this.#queue.add(client, waiting);
    });
  }

  #next(): void {
    while (this.#taken < this.#calls) {
      const next = this.#queue.dequeue(({ client }) => this.#shares.hasRoom(client));
      if (!next) return;
      next.start();
    }
  }
}

interface Entered {
  readonly ended: Promise<void>;
  readonly next: () => Promise<Result>;
}
