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

/** A call that runs, and whom it is charged to. */
interface Running {
  readonly call: Call;
  account?: Account;
}

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
  /** Runs a call through the middleware, if there is any. */
  readonly #invoke?: (call: Call, runner: Runner) => Result | Promise<Result>;
  /** Calls that run and are not charged yet: see {@linkcode Scheduler.run}. */
  readonly #uncharged = new Set<Running>();
  /** Calls that have a slot of their client and wait for one of the process, the oldest first. */
  readonly #queue = new Set<Start>();
  /** Where calls run or wait. */
  readonly #busy = new Set<InFlight>();
  readonly #idlers: (() => void)[] = [];
  #running = 0;
  #unchargedBytes = 0;
  #isStarting = false;

  /** A scheduler that runs all calls through `middleware`. */
  constructor(core: Core, accounts: Accounts, middleware: readonly Middleware[] = []) {
    this.#core = core;
    this.#accounts = accounts;
    if (middleware.length) this.#invoke = compose(middleware, (call, runner: Runner) => runner.run(call));
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
    const { calls, memory } = this.#core.limits;
    const isQuiet = this.#running < calls.runningPerClient && this.#running < calls.running &&
      this.#accounts.bytes + this.#unchargedBytes + call.weight <= Math.min(memory.bytesPerClient, memory.bytes);
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
    if (!hasSlot || !account.hold(call.weight)) {
      throw new McpError(BUSY, "Cannot run the call: too much runs (calls.runningPerClient, calls.running, memory)");
    }
    account.start();
    this.#running++;
    return account;
  }

  #giveBack(call: Call, account: Account): void {
    this.#running--;
    account.free(call.weight);
    account.finish();
    this.#next(account);
  }

  // A queue that is full is a refusal, not a longer queue: what waits costs memory, and its client gives up anyway.
  #admit(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    this.#chargeAll();
    const { calls } = this.#core.limits;
    const { account } = call.link;
    const { isFull } = account;
    if (!isFull && this.#running < calls.running) {
      if (!account.hold(call.weight)) return tooHeavy();
      return this.#start(call, runner, account);
    }
    // No client takes the whole queue.
    if (this.waiting >= calls.waiting || account.waiting.size >= Math.ceil(calls.waiting / 4)) {
      const name = isFull ? "calls.runningPerClient" : "calls.running";
      return { error: new McpError(BUSY, `Cannot run the call: too many run and wait (${name}, calls.waiting)`) };
    }
    if (!account.hold(call.weight)) return tooHeavy();
    return this.#wait(call, account, () => this.#start(call, runner, account));
  }

  // A call that waits can be cancelled like one that runs, or it would run for a client that has gone.
  #wait(call: Call, account: Account, start: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const { isFull } = account;
    this.waiting++;
    this.#enter(call);
    if (!isFull) account.start();
    return new Promise((resolve) => {
      const begin = () => {
        call.onCancelled(undefined);
        const outcome = start();
        account.finish();
        this.#leave(call);
        // A call that ended at once freed its room while it still had this slot.
        this.#next(account);
        resolve(outcome);
      };
      (isFull ? account.waiting : this.#queue).add(begin);
      call.onCancelled(() => {
        if (!account.waiting.delete(begin)) {
          this.#queue.delete(begin);
          account.finish();
        }
        this.waiting--;
        account.free(call.weight);
        this.#leave(call);
        this.#next(account);
        resolve(toCancelled(call));
      });
    });
  }

  #start(call: Call, runner: Runner, account?: Account): Outcome | Promise<Outcome> {
    let result;
    try {
      result = this.#invoke ? this.#invoke(call, runner) : runner.run(call);
    } catch (error) {
      return this.#endAtOnce(call, { error: this.#toError(error, call) }, account);
    }
    return result instanceof Promise ? this.#attend(call, result, account) : this.#endAtOnce(call, { result }, account);
  }

  #endAtOnce(call: Call, outcome: Outcome, account: Account | undefined): Outcome {
    const ended = call.ended ? toCancelled(call) : outcome;
    call.end();
    if (account) {
      account.free(call.weight);
      this.#next(account);
    }
    return ended;
  }

  #attend(call: Call, result: Promise<Result>, account: Account | undefined): Promise<Outcome> {
    const running: Running = { call, account };
    if (account) account.start();
    else {
      this.#uncharged.add(running);
      this.#unchargedBytes += call.weight;
    }
    this.#running++;
    this.#enter(call);
    const alarm = this.#core.limits.calls.timeoutMs === Infinity ? undefined : this.#setAlarm(call);
    return new Promise((resolve) => {
      let isOpen = true;
      const settle = (outcome?: Outcome) => {
        if (!isOpen) return;
        isOpen = false;
        if (alarm) this.#core.ticker.drop(alarm);
        const ended = call.ended ? toCancelled(call) : outcome;
        call.end();
        this.#running--;
        this.#leave(call);
        if (this.#uncharged.delete(running)) this.#unchargedBytes -= call.weight;
        else this.#release(running);
        resolve(ended);
      };
      // Not written where it is passed: V8 takes a function that is for one that lives long, puts it where only a full
      // collection looks, and with it keeps all that belongs to the request.
      const onCancel = () => settle();
      call.onCancelled(onCancel);
      result.then((result) => settle({ result }), (error) => settle({ error: this.#toError(error, call) }));
      if (call.ended) settle();
    });
  }

  #chargeAll(): void {
    for (const running of this.#uncharged) {
      const { account } = running.call.link;
      running.account = account;
      account.start();
      account.charge(running.call.weight);
    }
    this.#uncharged.clear();
    this.#unchargedBytes = 0;
  }

  #release({ call, account }: Running): void {
    account?.free(call.weight);
    account?.finish();
    if (account && this.waiting) this.#next(account);
  }

  #setAlarm(call: Call): Alarm {
    const { limits: { calls: { timeoutMs } }, ticker } = this.#core;
    return ticker.alarm(timeoutMs, () => {
      const text = `Cannot finish the call: it took longer than ${timeoutMs} ms (calls.timeoutMs)`;
      call.cancel(new DOMException(text, "TimeoutError"), new McpError(INTERNAL_ERROR, text));
    });
  }

  #enter(call: Call): void {
    call.inFlight.add(call);
    this.#busy.add(call.inFlight);
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

function toCancelled({ error }: Call): Outcome {
  return error && { error };
}

function tooHeavy(): Outcome {
  return {
    error: new McpError(BUSY, "Cannot run the call: too much is held already (memory.bytesPerClient, memory.bytes)"),
  };
}

/** The server has no room for the call now. Outside the range that the specification reserves. */
export const BUSY = -31_503;
