/**
 * Runs calls: room for what they hold, a slot, a deadline, and exactly one outcome.
 *
 * @module
 */
import { hasValidCode, INTERNAL_ERROR, isMcpError, McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Account, Accounts, Start } from "./account.ts";
import type { Call } from "./call.ts";
import type { Core } from "./core.ts";
import type { Method, Runner } from "./feature.ts";
import { compose, type Middleware } from "./middleware.ts";
import type { InFlight } from "./in_flight.ts";
import type { Alarm } from "./timers.ts";

/** How a call ended: `undefined` if it was cancelled without an answer. */
export type Outcome =
  | { readonly result: Result; readonly error?: undefined }
  | { readonly error: McpError; readonly result?: undefined }
  | undefined;

/**
 * Runs every call of a server. What a call does before its first `await` cannot be overtaken, so a call that ends there
 * takes no slot, no room and no deadline: it costs what its handler costs.
 */
export class Scheduler {
  /** Whether new calls are taken. */
  isOpen = true;
  /** How many calls are looked up that take time. */
  preparing = 0;
  /** How many calls wait for a slot. */
  waiting = 0;
  readonly #core: Core;
  readonly #accounts: Accounts;
  /** How many calls may run, and how many bytes may be held, before any client can be over its limits. */
  readonly #quietCalls: number;
  readonly #quietBytes: number;
  /** Runs a call through the middleware, if there is any. By itself it takes no slot and sets no deadline. */
  readonly invoke?: (call: Call, runner: Runner) => Result | Promise<Result>;
  /** Calls that have a slot of their client and wait for one of the process, the oldest first. */
  readonly #queue = new Set<Start>();
  /** Where calls run or wait. */
  readonly #busy = new Set<InFlight>();
  readonly #idlers: (() => void)[] = [];
  #running = 0;
  /** Calls that run and are not charged yet, and the most bytes that they may take: see {@linkcode Scheduler.run}. */
  #uncharged = 0;
  #unchargedBytes = 0;
  #isStarting = false;

  /** A scheduler that runs all calls through `middleware`. */
  constructor(core: Core, accounts: Accounts, middleware: readonly Middleware[] = []) {
    this.#core = core;
    this.#accounts = accounts;
    const { calls, memory } = core.limits;
    this.#quietCalls = Math.min(calls.runningPerClient, calls.running);
    this.#quietBytes = Math.min(memory.bytesPerClient, memory.bytes);
    if (middleware.length) this.invoke = compose(middleware, (call, runner: Runner) => runner.run(call));
  }

  /**
   * Runs a call to its one outcome.
   *
   * While fewer calls run than one client may run, and less is held than one client may hold, no client can be over its
   * limits: calls are not charged to anybody, which saves looking up the client of each request (a tenth of a small
   * call). The first call that comes when this is over has all of them charged.
   */
  run(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    if (call.ended) return;
    if (!this.isOpen) return { error: new McpError(BUSY, "Cannot run the call: the server is closing") };
    const isQuiet = this.#running < this.#quietCalls &&
      this.#accounts.bytes + this.#unchargedBytes + call.weight <= this.#quietBytes;
    return isQuiet ? this.#start(call, runner) : this.#admit(call, runner);
  }

  /** Finds what runs a call while others are looked up that take time: see {@linkcode prepare}. */
  find(call: Call, method: Method): Runner | Promise<Runner> {
    const account = this.#takeSlot(call);
    let runner;
    try {
      runner = method.find(call);
    } catch (error) {
      this.#giveBack(call, account);
      throw error;
    }
    if (runner instanceof Promise) return this.prepare(call, runner, account);
    this.#giveBack(call, account);
    return runner;
  }

  /**
   * Waits for what runs a call, if its `allow` takes time. Meanwhile the call has a slot, and its weight is charged, so
   * that no client can have more of it under way than calls.
   */
  async prepare(call: Call, runner: Promise<Runner>, account: Account = this.#takeSlot(call)): Promise<Runner> {
    this.preparing++;
    try {
      return await runner;
    } finally {
      this.preparing--;
      this.#giveBack(call, account);
    }
  }

  /** Refuses new calls. */
  stop(): void {
    this.isOpen = false;
  }

  /** Settles when nothing runs or waits. */
  idle(): Promise<void> {
    // A subscription that ends leaves its connection without a word.
    for (const inFlight of this.#busy) if (!inFlight.size) this.#busy.delete(inFlight);
    return this.#busy.size ? new Promise((resolve) => this.#idlers.push(resolve)) : Promise.resolve();
  }

  /** Cancels everything, with an error as its answer. */
  cancelAll(): void {
    // What waits is not started only to be cancelled.
    this.#isStarting = true;
    const text = "Cannot finish the call: the server is closing";
    const error = new McpError(INTERNAL_ERROR, text);
    for (const inFlight of this.#busy) inFlight.cancelAll(new DOMException(text, "AbortError"), error);
  }

  #takeSlot(call: Call): Account {
    const { account } = call.link;
    const hasSlot = !account.isFull && this.#running < this.#core.limits.calls.running;
    if (!hasSlot || !account.hold(call.weigh())) {
      throw new McpError(BUSY, "Cannot run the call: too much runs (calls.runningPerClient, calls.running, memory)");
    }
    account.start();
    this.#running++;
    return account;
  }

  #giveBack(call: Call, account: Account): void {
    this.#running--;
    this.#release(call, account);
  }

  // A queue that is full is a refusal, not a longer queue: what waits costs memory, and its client gives up anyway.
  #admit(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    this.#chargeAll();
    const { calls } = this.#core.limits;
    const { account } = call.link;
    const { isFull } = account;
    const mustWait = isFull || this.#running >= calls.running;
    // No client takes the whole queue.
    if (mustWait && (this.waiting >= calls.waiting || account.waiting.size >= Math.ceil(calls.waiting / 4))) {
      const name = isFull ? "calls.runningPerClient" : "calls.running";
      return { error: new McpError(BUSY, `Cannot run the call: too many run and wait (${name}, calls.waiting)`) };
    }
    if (!account.hold(call.weigh())) {
      const state = "too much is held already (memory.bytesPerClient, memory.bytes)";
      return { error: new McpError(BUSY, `Cannot run the call: ${state}`) };
    }
    call.account = account;
    return mustWait ? this.#wait(call, account, () => this.#start(call, runner)) : this.#start(call, runner);
  }

  // A call that waits can be cancelled like one that runs, or it would run for a client that has gone.
  #wait(call: Call, account: Account, start: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const { isFull } = account;
    this.waiting++;
    call.inFlight.add(call);
    this.#busy.add(call.inFlight);
    if (!isFull) account.start();
    return new Promise((resolve) => {
      const begin = () => {
        call.onCancel = undefined;
        const outcome = start();
        account.finish();
        this.#leave(call);
        // A call that ended at once freed its room while it still had this slot.
        this.#next(account);
        resolve(outcome);
      };
      (isFull ? account.waiting : this.#queue).add(begin);
      const onCancel = () => {
        if (!account.waiting.delete(begin)) {
          this.#queue.delete(begin);
          account.finish();
        }
        this.waiting--;
        account.free(call.weight);
        this.#leave(call);
        this.#next(account);
        resolve(toCancelled(call));
      };
      call.onCancel = onCancel;
    });
  }

  #start(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    let result;
    try {
      result = this.invoke ? this.invoke(call, runner) : runner.run(call);
    } catch (error) {
      return this.#endAtOnce(call, { error: this.#toError(error, call) });
    }
    return result instanceof Promise ? this.#attend(call, result) : this.#endAtOnce(call, { result });
  }

  #endAtOnce(call: Call, outcome: Outcome): Outcome {
    const { account } = call;
    const ended = call.ended ? toCancelled(call) : outcome;
    call.ended = true;
    if (account) {
      account.free(call.weight);
      this.#next(account);
    }
    return ended;
  }

  #attend(call: Call, result: Promise<Result>): Promise<Outcome> {
    if (call.account) call.account.start();
    else {
      this.#unchargedBytes += this.#uncharged++ < UNWEIGHED ? call.weight : call.weigh();
    }
    this.#running++;
    call.inFlight.add(call);
    this.#busy.add(call.inFlight);
    const alarm = this.#core.limits.calls.timeoutMs === Infinity ? undefined : this.#setAlarm(call);
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    let isOpen = true;
    const settle = (outcome?: Outcome) => {
      if (!isOpen) return;
      isOpen = false;
      if (alarm) this.#core.ticker.drop(alarm);
      const ended = call.ended ? toCancelled(call) : outcome;
      call.ended = true;
      this.#running--;
      this.#leave(call);
      if (call.account) this.#release(call, call.account);
      else {
        this.#uncharged--;
        this.#unchargedBytes -= call.weight;
      }
      resolve(ended);
    };
    // Not written where it is assigned: V8 takes a function that is for one that lives long, puts it where only a full
    // collection looks, and with it keeps all that belongs to the request.
    const onCancel = () => settle();
    call.onCancel = onCancel;
    result.then((result) => settle({ result }), (error) => settle({ error: this.#toError(error, call) }));
    if (call.ended) settle();
    return promise;
  }

  #chargeAll(): void {
    if (!this.#uncharged) return;
    for (const inFlight of this.#busy) inFlight.charge();
    this.#uncharged = this.#unchargedBytes = 0;
  }

  #release(call: Call, account: Account): void {
    account.free(call.weight);
    account.finish();
    this.#next(account);
  }

  #setAlarm(call: Call): Alarm {
    const { limits: { calls: { timeoutMs } }, ticker } = this.#core;
    return ticker.alarm(timeoutMs, () => {
      const text = `Cannot finish the call: it took longer than ${timeoutMs} ms (calls.timeoutMs)`;
      call.cancel(new DOMException(text, "TimeoutError"), new McpError(INTERNAL_ERROR, text));
    });
  }

  #leave(call: Call): void {
    if (call.inFlight.remove(call)) return;
    this.#busy.delete(call.inFlight);
    if (!this.#busy.size) this.#idlers.splice(0).forEach((idle) => idle());
  }

  // A slot that is free goes to the oldest call of its client, behind those that waited for the process before.
  #next(account: Account): void {
    if (!this.waiting) return;
    for (const begin of account.waiting) {
      if (account.isFull) break;
      account.waiting.delete(begin);
      account.start();
      this.#queue.add(begin);
    }
    // A call that ends at once comes back here: one loop starts them all, or the stack would grow with the queue.
    if (this.#isStarting) return;
    this.#isStarting = true;
    for (const begin of this.#queue) {
      if (this.#running >= this.#core.limits.calls.running) break;
      this.#queue.delete(begin);
      this.waiting--;
      begin();
    }
    this.#isStarting = false;
    account.settle();
  }

  #toError(error: unknown, call: Call): McpError {
    try {
      if (isMcpError(error)) {
        if (hasValidCode(error)) return error;
        const state = `Cannot send code ${error.code}: use an integer outside -32768 to -32000`;
        return this.#core.report(new TypeError(state, { cause: error }), call);
      }
      // A handler that stops because it was told to is no fault.
      if (call.ended && error === call.reason) return new McpError(INTERNAL_ERROR, "Cancelled");
    } catch {
      // A thrown proxy may throw when it is looked at, which must not cost the call its end.
    }
    return this.#core.report(error, call);
  }
}

/**
 * Calls that may run without having been weighed. An engine may keep all that was read together for the text of one of
 * them, and the rest would not be counted.
 */
const UNWEIGHED = 16;

function toCancelled({ error }: Call): Outcome {
  return error && { error };
}

/** The server has no room for the call now. Outside the range that the specification reserves. */
export const BUSY = -31_503;
