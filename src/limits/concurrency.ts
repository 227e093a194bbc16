/**
 * Limits how many calls of a handler run at once.
 *
 * @module
 */
import { toBusy } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call.ts";
import type { Core } from "../core/core.ts";
import type { Runner } from "../core/feature.ts";
import type { Timeout } from "../core/timers.ts";
import { untilAborted } from "../core/until_aborted.ts";
import { toClientKey } from "./rate.ts";

/** Number of calls that run at once, and of those that wait. */
export interface Concurrency {
  /** Number of calls that run at once. */
  readonly calls: number;
  /** Number of calls that wait for others to end, of which one client has at most a quarter. Defaults to 64. */
  readonly waiting?: number;
}

/** A waiting call. */
interface Turn {
  readonly client: unknown;
  readonly start: () => void;
}

/** The places of a handler, and the queue for them. */
export class Places {
  readonly #core: Core;
  readonly #calls: number;
  readonly #waiting: number;
  readonly #queue = new Set<Turn>();
  /** Calls that hold a place. */
  readonly #placed = new WeakSet<Call>();
  #running = 0;

  /** Creates the places of one server. */
  constructor({ calls, waiting = 64 }: Concurrency, core: Core) {
    this.#core = core;
    this.#calls = calls;
    this.#waiting = waiting;
  }

  /** Throws the error for the client if the call can neither run nor wait. */
  check(call: Call, place: string): void {
    if (this.#running < this.#calls && !this.#queue.size || this.#isWithin(call)) return;
    this.#core.observing?.reach("handler.concurrency", call.link.account.key, place);
    this.#requireRoom(call);
  }

  // A nested read shares the place of its outer call. Otherwise it would wait for itself.
  #isWithin({ host: { outer } }: Call): boolean {
    return !!outer && (this.#placed.has(outer) || this.#isWithin(outer));
  }

  #requireRoom(call: Call): void {
    const client = toClientKey(call);
    const own = [...this.#queue].filter((turn) => turn.client === client).length;
    if (this.#queue.size < this.#waiting && own < Math.ceil(this.#waiting / 4)) return;
    throw toBusy("run the call: too many run and wait (handler.concurrency)");
  }

  /** Runs a call in one of the places. `run` gets the runner that knows when the handler has ended. */
  async run(call: Call, runner: Runner, run: (runner: Runner) => Result | Promise<Result>): Promise<Result> {
    if (this.#isWithin(call)) return await run(runner);
    let recheck: (() => Promise<void>) | undefined;
    if (this.#running < this.#calls && !this.#queue.size) this.#running++;
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
    // A handler may go on after the response, or after its cancellation.
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

  #wait(call: Call): Promise<void> {
    const { signal } = call;
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        client: toClientKey(call),
        start: () => {
          signal.removeEventListener("abort", onAbort);
          this.#running++;
          resolve();
        },
      };
      const onAbort = () => {
        this.#queue.delete(turn);
        reject(signal.reason);
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#queue.add(turn);
    });
  }

  // A handler that ignores its cancellation keeps its place, so that clients cannot start more of them by cancelling.
  // The timeout bounds this.
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
    for (const turn of this.#queue) {
      if (this.#running >= this.#calls) return;
      this.#queue.delete(turn);
      turn.start();
    }
  }
}
