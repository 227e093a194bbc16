/**
 * Limits how many calls of a handler run at once.
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
import { untilAborted } from "../core/call/until_aborted.ts";

/** Limits on the calls of a handler that run at once, and on the calls that wait. */
export interface Concurrency {
  /** Number of calls that run at once. */
  readonly calls: number;
  /**
   * Number of calls that wait for a running call to end. Clients take turns. One client has at most a quarter of the
   * queue, and the last quarter of the queue is for clients with few waiting calls. Defaults to 64.
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
  /** Waiting calls. Clients take turns, and all addresses of a network count as one client. */
  readonly #queue = new FairQueue<Start>();
  /** Calls that hold a slot. */
  readonly #placed = new WeakSet<Call>();
  #running = 0;

  /** Creates the slots of one server. `key` is the key of the handler. */
  constructor({ calls, waiting = 64 }: Concurrency, core: FeatureParts, key: string) {
    this.#core = core;
    this.#key = key;
    this.#calls = calls;
    this.#waiting = waiting;
  }

  /** Throws the error for the client if there is no free slot and no room in the queue. */
  check(call: Call, place: string): void {
    if (this.#running < this.#calls && this.#queue.isEmpty || this.#isWithin(call)) return;
    this.#core.observing?.reach("handler.concurrency", call.link.account.key, place);
    this.#requireRoom(call);
  }

  // A nested read shares the slot of its outer call. If the read waited for a separate slot, the outer call would wait
  // for itself.
  #isWithin({ host: { outer } }: Call): boolean {
    return !!outer && (this.#placed.has(outer) || this.#isWithin(outer));
  }

  #requireRoom({ link: { account, http } }: Call): void {
    const pot = this.#toPot(account);
    // Each HTTP request of an unknown client has a separate account. Limit all of these requests together to one share;
    // otherwise unknown clients could fill the queue.
    const isUnknown = http && account.key === undefined;
    const hasShare = isUnknown ? account.root.amount(pot) < pot.share : pot.hasShare(account);
    if (hasShare && pot.hasRoom(account)) return;
    throw toBusy("run the call: too many calls run and wait (handler.concurrency)");
  }

  #toPot(account: Account): Pot {
    const total = this.#waiting;
    // The handler may be removed and added again with other limits, which need a separate pot.
    const of = `${this.#key} ${total}`;
    return account.pot({ name: "handler.waiting", of, total, share: Math.ceil(total / 4) });
  }

  /** Runs a call in a slot. `run` receives a runner that reports when the handler has ended. */
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
    // A handler may continue after the response or after its cancellation. It keeps its slot until it has ended.
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
      if (recheck) await untilAborted(recheck(), call.signal);
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

  // A handler that ignores its cancellation keeps its slot, so that clients cannot start more handlers by cancelling.
  // The timeout limits how long the slot is kept.
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
