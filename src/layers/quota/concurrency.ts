/**
 * Limits the number of calls that run at the same time in a handler.
 *
 * @module
 */
import { toBusy } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Account, Pot } from "../core/capacity/account.ts";
import type { Call } from "../core/call/call.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import { FairQueue } from "../core/capacity/fair_queue.ts";
import type { Runner } from "../core/visibility/feature.ts";
import type { Timeout } from "../core/capacity/timers.ts";
import { deadline } from "../kit/deadline.ts";

/** Limits on the running and the waiting calls of a handler. */
export interface Concurrency {
  /** Maximum number of calls that run at the same time. */
  readonly calls: number;
  /**
   * Maximum number of calls in the queue. The queue serves clients in round-robin order. A single client can use at
   * most a quarter of the queue. The last quarter of the queue is reserved for clients with few waiting calls. Defaults
   * to 64.
   */
  readonly waiting?: number;
}

/** Starts a waiting call. */
type Start = () => void;

/** The slots in which calls of a handler run, and the queue of calls that wait for a slot. */
export class Places {
  readonly #core: FeatureParts;
  readonly #calls: number;
  readonly #waiting: number;
  readonly #key: string;
  /**
   * Waiting calls. The queue takes one call from each client in turn. All addresses of a network count as one client.
   */
  readonly #queue = new FairQueue<Start>();
  /** Calls that hold a slot. */
  readonly #placed = new WeakSet<Call>();
  #running = 0;

  constructor({ calls, waiting = 64 }: Concurrency, core: FeatureParts, key: string) {
    this.#core = core;
    this.#key = key;
    this.#calls = calls;
    this.#waiting = waiting;
  }

  /** Throws the error for the client if the call can neither run immediately nor wait in the queue. */
  check(call: Call, place: string): void {
    if (this.#running < this.#calls && this.#queue.isEmpty || this.#isWithin(call)) return;
    this.#core.observing?.reach("handler.concurrency", call.link.account.key, place);
    this.#requireRoom(call);
  }

  // A nested read shares the slot of its outer call. If the read needed another slot, it could wait forever, because
  // the outer call keeps its slot until the read has ended.
  #isWithin({ host: { outer } }: Call): boolean {
    return !!outer && (this.#placed.has(outer) || this.#isWithin(outer));
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
    // Include the limit in the name, because the handler may be removed and added again with a different limit.
    const of = `${this.#key} ${total}`;
    return account.pot({ name: "handler.waiting", of, total, share: Math.ceil(total / 4) });
  }

  /**
   * Waits until a slot is free, and runs a call in the slot. `run` receives a runner that frees the slot when the
   * handler has ended.
   */
  async run(call: Call, runner: Runner, run: (runner: Runner) => Result | Promise<Result>): Promise<Result> {
    if (this.#isWithin(call)) return await run(runner);
    let recheck: (() => Promise<void>) | undefined;
    if (this.#running < this.#calls && this.#queue.isEmpty) this.#running++;
    else {
      this.#requireRoom(call);
      recheck = call.host.recheck(call);
      call.observed?.wait();
      await call.untilAnswered(this.#wait(call));
      call.observed?.start();
    }
    this.#placed.add(call);
    let isHeld = true;
    const leave = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running--;
      this.#next();
    };
    // A handler that continues after the response or after its cancellation keeps its slot until the handler has ended.
    let isRunning = false;
    const tracked: Runner = {
      ...runner,
      run: (inner) => {
        const result = runner.run(inner);
        if (!(result instanceof Promise)) return result;
        isRunning = true;
        const forget = this.#limit(inner, leave);
        const end = () => {
          forget();
          leave();
        };
        result.then(end, end);
        return result;
      },
    };
    try {
      if (recheck) await deadline(recheck(), { signal: call.signal });
      if (call.ended) throw call.reason;
      return await run(tracked);
    } finally {
      if (!isRunning) leave();
    }
  }

  #wait({ signal, link: { account } }: Call): Promise<void> {
    const pot = this.#toPot(account);
    const { turnKey } = account;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        pot.give(account);
        this.#running++;
        resolve();
      };
      const onAbort = () => {
        this.#queue.delete(turnKey, start);
        pot.give(account);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      pot.add(account);
      this.#queue.add(turnKey, start);
    });
  }

  // A handler that ignores its cancellation keeps its slot. Otherwise clients could start more handlers by cancelling
  // calls. The timeout of the call limits the time for which such a handler keeps its slot.
  #limit(call: Call, leave: () => void): () => void {
    const { ticker, limits: { calls } } = this.#core;
    const { signal, timeoutMs = calls.timeoutMs } = call;
    let timeout: Timeout | undefined;
    const onAbort = () => {
      if (Object(signal.reason).name === "TimeoutError") leave();
      else timeout = ticker.startTimeout(timeoutMs, leave);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    return () => {
      signal.removeEventListener("abort", onAbort);
      if (timeout) ticker.cancel(timeout);
    };
  }

  #next(): void {
    while (this.#running < this.#calls) {
      const start = this.#queue.take();
      if (!start) return;
      start();
    }
  }
}
