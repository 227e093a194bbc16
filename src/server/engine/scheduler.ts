/**
 * Runs calls, and enforces the limits on slots, memory and time. Each call has exactly one outcome.
 */
import type { ServiceEnd } from "../call/service.ts";
import { deadline } from "../../core/kit/deadline.ts";
import { hasValidCode, isMcpError, type McpError, toBusy } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { Account, Accounts, Pot, Start } from "../capacity/account.ts";
import type { Call, Deferred } from "../call/call.ts";
import { CancelError } from "../call/cancel_error.ts";
import { current } from "../call/current_call.ts";
import type { Core } from "./core.ts";
import type { Executor, Outcome, Runner } from "../visibility/feature.ts";
import { compose, type Middleware } from "../call/middleware.ts";
import type { InFlight } from "../call/in_flight.ts";
import type { RunWatch } from "../call/run_watch.ts";
import type { Bounds } from "../capacity/limits.ts";
import { LIMITS } from "../capacity/limits.ts";
import { startDeadline, untilDecided } from "../call/deadline.ts";
import type { Sweep } from "../../core/timers.ts";

/** Number of clients whose steps may start without a slot, because no slot is free. */
export const MAX_REFUSED = 255;

/**
 * A call that waits for a promise holds a slot, which is one of the places that `calls.running` and
 * `calls.runningPerClient` limit. Fast path: a call that ends before its first `await` needs no slot, no memory charge
 * and no timeout, because no other code runs during the call.
 */
// Bound: `calls.running` and `calls.waiting`, which count what deferred functions and connections do too.
export class Scheduler implements Executor {
  /** Whether the server accepts new calls. `false` while the server is closing. */
  isOpen = true;
  readonly limits: Bounds["calls"];
  /** The `turnKey` of each client with a step that goes on although its call was refused, because no slot was free. */
  // Bound: `MAX_REFUSED`.
  readonly refused: Set<unknown> = new Set();
  readonly #core: Core;
  readonly #accounts: Accounts;
  readonly #waiting: Pot;
  /** Number of running calls below which no client can exceed its limit on running calls. */
  readonly #uncontendedCalls: number;
  /** Bytes of memory below which no client can exceed its limit on memory. */
  readonly #uncontendedBytes: number;
  /** Runs a call through the middleware. In development, also watches the run. Takes no slot, sets no deadline. */
  invoke?: (call: Call, runner: Runner) => Result | Promise<Result>;
  #isWatched = false;
  readonly #ignored = new LazyModule(async () => {
    const { IgnoredQuestions } = await import("../call/ignored_questions.ts");
    return new IgnoredQuestions<Call>((text, call) => {
      const { development } = this.#core;
      if (development) development.warn(text);
      else this.#core.report(new Error(text), call);
    });
  });
  /** Calls that already have one of their client's slots, and wait for one of the process's slots, oldest first. */
  readonly #queue = new Map<Start, Account>();
  readonly #busy = new Set<InFlight>();
  readonly #age: Sweep = () => {
    for (const inFlight of this.#busy) inFlight.age(AGING_MS, DEFAULT_MS);
    this.#isAging = this.#busy.size > 0;
    return this.#isAging ? AGING_MS : undefined;
  };
  #isAging = false;
  readonly #idlers: (() => void)[] = [];
  readonly #deferred = new Set<Promise<void>>();
  #running = 0;
  /** Number of running calls that are not charged to a client. See {@linkcode Scheduler.run}. */
  #uncharged = 0;
  /** Upper bound of the memory that uncharged calls use, in bytes. */
  #unchargedBytes = 0;
  #isStarting = false;

  constructor(core: Core, accounts: Accounts, middleware: readonly Middleware[] = []) {
    this.#core = core;
    this.#accounts = accounts;
    const { calls, perTenant } = core.limits;
    const { memory, running } = accounts;
    this.limits = calls;
    this.#waiting = accounts.pot({ name: "calls.waiting", total: calls.waiting, share: Math.ceil(calls.waiting / 4) });
    this.#uncontendedCalls = Math.min(running.share, running.common, perTenant.running);
    this.#uncontendedBytes = Math.min(memory.share, memory.common, perTenant.bytes);
    if (middleware.length) this.invoke = compose(middleware, (call, runner: Runner) => runner.run(call));
  }

  /** Runs all later calls inside `watch`. A second call of this method has no effect. */
  watch(watch: RunWatch): void {
    if (this.#isWatched) return;
    this.#isWatched = true;
    const { invoke = (call, runner) => runner.run(call) } = this;
    this.invoke = (call, runner) => watch.run(call, () => invoke(call, runner));
  }

  /** Number of running calls, including runs of deferred functions. */
  get running(): number {
    return this.#running;
  }

  /** Upper bound of the memory that uncharged running calls use, in bytes. */
  get unchargedBytes(): number {
    return this.#unchargedBytes;
  }

  get waiting(): number {
    return this.#waiting.used;
  }

  /**
   * A queued call waits first.
   *
   * Fast path: while all calls together stay below the per-client limits, no client can exceed its limits. Such calls
   * are not charged, which saves the lookup of the client's account (a tenth of the time that a small call takes). The
   * first call that exceeds a limit charges all running calls to their clients.
   */
  run(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    // Check whether the client is still connected, because preparing the call may have taken a while, for example if
    // the code of the era had to be loaded.
    if (call.inFlight.over) call.cancel(call.inFlight.over);
    if (call.ended) return toCancelled(call);
    if (!this.isOpen) return { error: refuse("the server is closing") };
    return this.#isUncontended(call) ? this.#start(call, runner) : this.#admit(call, runner);
  }

  /** Whether no client can exceed its limits with another call. */
  #isUncontended({ weight }: Call): boolean {
    return this.#running < this.#uncontendedCalls &&
      this.#accounts.memory.used + this.#unchargedBytes + weight <= this.#uncontendedBytes;
  }

  /** Runs a step before the handler while the call holds a slot. If no slot is free, throws without calling `step`. */
  start<T>(call: Call, step: () => T | Promise<T>): T | Promise<T> {
    const account = this.#reserveSlot(call);
    let found;
    try {
      found = step();
    } catch (error) {
      this.#giveBack(call, account);
      throw error;
    }
    if (found instanceof Promise) return this.prepare(call, found, account);
    this.#giveBack(call, account);
    return found;
  }

  /** Waits for an asynchronous step. The call holds a slot and is charged, so that the client's limits apply. */
  async prepare<T>(call: Call, step: Promise<T>, account?: Account): Promise<T> {
    try {
      account ??= this.#reserveSlot(call);
    } catch (error) {
      this.#refuse(call, step);
      throw error;
    }
    try {
      return await this.waitFor(call, step);
    } finally {
      this.#giveBack(call, account);
    }
  }

  // The step goes on, although its call ends now. A step that never settles counts only for `calls.timeoutMs`, because a
  // call that has ended can neither time out nor be cancelled.
  #refuse(call: Call, step: Promise<unknown>): void {
    const { turnKey } = call.link.account;
    const { ticker: clock, limits: { calls: { timeoutMs: ms } } } = this.#core;
    this.refused.add(turnKey);
    const leave = () => this.refused.delete(turnKey);
    deadline(step, { ms, onTimeout: () => {}, clock }).then(leave, leave);
  }

  /**
   * Waits for an asynchronous step before the handler starts. During this step, the call can be cancelled, and
   * `calls.timeoutMs` limits its time. Takes no slot.
   *
   * @throws the reason as soon as the call is cancelled.
   */
  async waitFor<T>(call: Call, step: Promise<T>): Promise<T> {
    const { inFlight, isQueued } = call;
    inFlight.add(call);
    this.#busy.add(inFlight);
    call.isQueued = true;
    if (inFlight.over) call.cancel(inFlight.over);
    try {
      return await untilDecided(call, step, this.#core);
    } finally {
      // A step may wait for another step. Otherwise the call would be charged while it waits, and again when it runs.
      call.isQueued = isQueued;
      this.#leave(call);
    }
  }

  /** Runs a function while the call holds a slot. If no slot is free, rejects without calling the function. */
  async prepareWith<T>(call: Call, run: () => Promise<T>): Promise<T> {
    return await this.start(call, run);
  }

  stop(): void {
    this.isOpen = false;
  }

  /** Resolves when no call runs or waits, and all deferred functions have ended. */
  async idle(): Promise<void> {
    // Remove connections without calls here, because the end of a subscription does not remove its connection.
    for (const inFlight of this.#busy) if (!inFlight.size) this.#busy.delete(inFlight);
    if (this.#busy.size) await new Promise<void>((resolve) => this.#idlers.push(resolve));
    await Promise.all(this.#deferred);
  }

  /** Returns `host.server` of each endpoint that has running or waiting calls. */
  busyServers(): Set<object> {
    const servers = new Set<object>();
    for (const inFlight of this.#busy) inFlight.addServers(servers);
    return servers;
  }

  /** Runs a function after a call. If the call has already ended, runs the function immediately. */
  defer(call: Call, run: Deferred): void {
    if (call.ended) this.#runDeferred(call, [run]);
    else (call.deferred ??= []).push(run);
  }

  /** Cancels all running and waiting calls because the server is closing. */
  cancelAll(): void {
    // Do not start waiting calls, because they would be cancelled immediately.
    this.#isStarting = true;
    const text = "Cannot finish the call: the server is closing; try again if the call is idempotent";
    const reason = new CancelError("closing", text);
    for (const inFlight of this.#busy) inFlight.cancelAll(reason);
  }

  // Counts the deferred functions of a call as a running call of the client, so that these functions count towards the
  // client's limits.
  #runDeferred(call: Call, all: readonly Deferred[], outcome?: Outcome): void {
    const { account } = call.link;
    account.charge(call.weigh());
    account.start();
    this.#running++;
    const running = runDeferred(this.#core, call, all, outcome)
      .catch((error) => void this.#core.report(error, call))
      .finally(() => {
        this.#deferred.delete(running);
        this.#giveBack(call, account);
      });
    this.#deferred.add(running);
    call.link.waitUntil?.(running);
  }

  #reserveSlot(call: Call): Account {
    // Uncharged calls count towards the limits of their clients too.
    if (!this.#isUncontended(call)) this.#chargeAll();
    const { account } = call.link;
    const full = this.#findFull(account);
    if (full || !account.enter(call.weigh())) {
      throw refuse("too many calls are running", full ?? "perTenant.running, memory");
    }
    account.start();
    this.#running++;
    return account;
  }

  #giveBack(call: Call, account: Account): void {
    this.#running--;
    this.#release(call, account);
  }

  // Rejects the call if the queue is full. A longer queue would use memory for calls whose clients time out before the
  // calls start.
  #admit(call: Call, runner: Runner): Outcome | Promise<Outcome> {
    this.#chargeAll();
    const { account } = call.link;
    const full = this.#findFull(account);
    if (full && !this.#waiting.makeRoom(account, 1)) {
      return { error: refuse("too many calls are running and waiting", `${full}, calls.waiting`) };
    }
    if (!account.enter(call.weigh())) {
      const isTenant = account.tenant !== undefined;
      const names = `memory.bytesPerClient, memory.bytes${isTenant ? ", perTenant.bytes, perTenant.running" : ""}`;
      return { error: refuse("too much memory is used", names) };
    }
    call.account = account;
    return full ? this.#wait(call, account, () => this.#start(call, runner)) : this.#start(call, runner);
  }

  // A queued call can be cancelled, so that the handler does not run for a client that has disconnected.
  #wait(call: Call, account: Account, start: () => Outcome | Promise<Outcome>): Promise<Outcome> {
    const { isFull } = account;
    call.observed?.wait();
    this.#waiting.add(account);
    call.isQueued = true;
    call.inFlight.add(call);
    this.#busy.add(call.inFlight);
    if (!isFull) account.start();
    const recheck = call.host.recheck(call);
    return new Promise((resolve) => {
      const finish = (end: () => Outcome | Promise<Outcome>) => {
        call.onCancel = undefined;
        call.isQueued = false;
        const outcome = end();
        account.finish();
        this.#leave(call);
        // Start the next call here. If the call ended synchronously in `end`, no other call could start there, because
        // this call still held its slot.
        this.#next(account);
        resolve(outcome);
      };
      const begin = () => {
        if (!recheck) return finish(start);
        this.#running++;
        let settle = (end: () => Outcome | Promise<Outcome>) => {
          settle = () => {};
          this.#running--;
          finish(end);
        };
        call.onCancel = () => settle(() => this.#endAtOnce(call, undefined));
        recheck().then(
          () => settle(start),
          (error) => settle(() => this.#endAtOnce(call, { error: this.toError(error, call) })),
        );
      };
      if (isFull) account.waiting.set(begin, account);
      else this.#queue.set(begin, account);
      const onCancel = () => {
        if (!account.waiting.delete(begin)) {
          this.#queue.delete(begin);
          account.finish();
        }
        this.#waiting.give(account);
        account.leave(call.weight);
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
      result = this.runWithin(call, runner);
    } catch (error) {
      return this.#endAtOnce(call, { error: this.toError(error, call) });
    }
    if (result instanceof Promise) return this.attend(call, result);
    if (call.questions) this.checkQuestions(call, result);
    return this.#endAtOnce(call, { result });
  }

  /** Reports the start, and runs the layers of extensions and the middleware. Takes no slot, sets no deadline. */
  runWithin(call: Call, runner: Runner): Result | Promise<Result> {
    const { observed } = call;
    observed?.start();
    return observed && this.#core.observer.around
      ? observed.around(() => this.#runWithin(call, runner))
      : this.#runWithin(call, runner);
  }

  #runWithin(call: Call, runner: Runner): Result | Promise<Result> {
    const { storage } = current;
    if (storage && storage.getStore() !== call) return storage.run(call, () => this.#runWithin(call, runner));
    if (runner.within) return runner.within(call, runner, this);
    return this.invoke ? this.invoke(call, runner) : runner.run(call);
  }

  /**
   * Reports the questions of a call that its handler has not awaited. Does not check a handler that failed or whose call
   * was cancelled, because the handler may not have reached the `await` of a question.
   */
  checkQuestions(call: Call, { isError }: Result): void {
    if (isError !== true && !call.ended) this.#check(call).catch((error) => void this.#core.report(error, call));
  }

  async #check(call: Call): Promise<void> {
    const sources = await call.questions?.listIgnored();
    if (sources?.length) (await this.#ignored.load()).report(sources, call);
  }

  #endAtOnce(call: Call, outcome: Outcome): Outcome {
    const { account } = call;
    const ended = call.ended ? toCancelled(call) : outcome;
    call.end();
    if (call.deferred) this.#runDeferred(call, call.deferred, ended);
    if (account) {
      account.leave(call.weight);
      this.#next(account);
    }
    return ended;
  }

  /** Until the result arrives, the call holds a slot, its memory is counted, and its timeout runs. */
  attend(call: Call, result: Promise<Result>): Promise<Outcome> {
    if (call.account) call.account.start();
    else {
      this.#unchargedBytes += this.#uncharged++ < UNWEIGHED ? call.weight : call.weigh();
    }
    this.#running++;
    return this.#finish(call, result);
  }

  // Takes no slot. Otherwise a client whose detached handlers use all slots could not make the calls that answer or
  // cancel these handlers.
  detach(call: Call, result: Promise<Result>, timeoutMs?: number): Promise<Outcome> {
    if (!this.isOpen) throw refuse("the server is closing");
    const { account } = call.link;
    const { detached } = this.limits;
    const places = account.pot({ name: "calls.detached", total: detached, share: Math.ceil(detached / 4) });
    if (!places.charge(account)) throw refuse("too many handlers continue after their response", "calls.detached");
    account.charge(call.weigh());
    call.account = account;
    return this.#finish(call, result, { timeoutMs, places });
  }

  // Waits for the result of a call, up to its timeout.
  #finish(call: Call, result: Promise<Result>, { timeoutMs: ownMs, places }: Detached = ATTACHED): Promise<Outcome> {
    const timeoutMs = ownMs ?? call.timeoutMs ?? this.#core.limits.calls.timeoutMs;
    call.inFlight.add(call);
    this.#busy.add(call.inFlight);
    const { ticker } = this.#core;
    // Fast path: one sweep finds all calls that exceed the default timeout. With a timeout per call, each call would
    // have to read the clock.
    if (ownMs || timeoutMs !== DEFAULT_MS || ticker.isPerRequest) startDeadline(call, ticker, timeoutMs, !!ownMs);
    else if (!this.#isAging) this.#startAging();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    // The weight is computed exactly later, such as for a layer of an extension. Subtract what was added.
    const { weight } = call;
    let isOpen = true;
    const settle = (outcome?: Outcome) => {
      if (!isOpen) return;
      isOpen = false;
      const ended = call.ended ? toCancelled(call) : outcome;
      call.end();
      call.deadline?.stop();
      if (call.deferred) this.#runDeferred(call, call.deferred, ended);
      this.#end(call, weight, places);
      resolve(ended);
    };
    // Assign a constant instead of a function literal. V8 allocates a function literal that is assigned to a field as a
    // long-lived object, which would keep the whole request in memory until a full garbage collection.
    const onCancel = () => settle();
    call.onCancel = onCancel;
    const succeed = (result: Result) => {
      if (call.questions) this.checkQuestions(call, result);
      settle({ result });
    };
    result.then(succeed, (error) => settle({ error: this.toError(error, call) }));
    if (call.ended) settle();
    return promise;
  }

  #end(call: Call, weight: number, places?: Pot): void {
    const { account } = call;
    this.#leave(call);
    if (!places) this.#running--;
    if (!account) {
      this.#uncharged--;
      this.#unchargedBytes -= weight;
    } else if (places) {
      places.give(account);
      account.leave(call.weight);
      this.#next(account);
    } else this.#release(call, account);
  }

  #chargeAll(): void {
    if (!this.#uncharged) return;
    for (const inFlight of this.#busy) inFlight.charge();
    this.#uncharged = this.#unchargedBytes = 0;
  }

  // If no slot is free, reports the reached limit to the observer, and returns the limit's name.
  #findFull(account: Account): string | undefined {
    const full = account.isFull ? "calls.runningPerClient" : this.#hasSlot(account, 1) ? undefined : "calls.running";
    if (full) this.#core.observing?.reach(full, account.key);
    return full;
  }

  // Tests whether the process has a free slot for a client. Only a client that uses few resources may use a slot from
  // the reserve. `amount` is 0 for a queued call, which already counts as a running call of its client.
  #hasSlot(account: Account, amount: number): boolean {
    return this.#accounts.running.hasRoom(account, amount, this.#running + 1);
  }

  #release(call: Call, account: Account): void {
    account.leave(call.weight);
    account.finish();
    this.#next(account);
  }

  #startAging(): void {
    this.#isAging = true;
    this.#core.ticker.schedule(this.#age, AGING_MS);
  }

  #leave(call: Call): void {
    if (call.inFlight.remove(call)) return;
    this.#busy.delete(call.inFlight);
    if (!this.#busy.size && this.#idlers.length) this.#idlers.splice(0).forEach((idle) => idle());
  }

  // Assigns the client's free slots to the client's oldest waiting calls, and then the process's free slots to the
  // oldest calls in the queue.
  #next(account: Account): void {
    if (!this.waiting) return;
    for (const [begin, waiting] of account.waiting) {
      if (account.isFull) break;
      account.waiting.delete(begin);
      waiting.start();
      this.#queue.set(begin, waiting);
    }
    // Return if an outer loop is already starting calls. A call that ends synchronously calls this method again, so a
    // nested loop would make the stack deeper with each call.
    if (this.#isStarting) return;
    this.#isStarting = true;
    for (const [begin, client] of this.#queue) {
      if (this.#running >= this.#accounts.running.total) break;
      if (!this.#hasSlot(client, 0)) continue;
      this.#queue.delete(begin);
      this.#waiting.give(client);
      begin();
    }
    this.#isStarting = false;
    account.signalRoom();
  }

  toError(error: unknown, call: Call): McpError {
    try {
      if (isMcpError(error)) {
        if (hasValidCode(error)) return error;
        const state = `Cannot send error code ${error.code}: use an integer outside -32768 to -32000`;
        return this.#core.report(new TypeError(state, { cause: error }), call);
      }
    } catch {
      // Inspecting a thrown proxy may itself throw, but the call still needs an outcome.
    }
    return this.#core.report(error, call);
  }
}

/** The timeout and the pot of a detached call, which continues after its response. Empty for any other call. */
interface Detached {
  readonly timeoutMs?: number;
  /** The pot that counts detached calls. `undefined` for a call with a slot. */
  readonly places?: Pot;
}

const ATTACHED: Detached = {};

/**
 * Number of uncharged calls that may run before the server computes the exact weight of each further call. The number
 * is low, because a JavaScript engine may keep a whole chunk of input in memory for the text of one call, and the
 * memory of the chunk would not be counted.
 */
const UNWEIGHED = 16;

const DEFAULT_MS = LIMITS.calls.timeoutMs;

/** Milliseconds between checks of the default timeout. A call may exceed the timeout by this interval. */
const AGING_MS = DEFAULT_MS / 8;

function toCancelled({ reason }: Call): Outcome {
  const error = reason?.response;
  return error && { error };
}

function refuse(state: string, limits?: string): McpError {
  return toBusy(`run the call: ${state}`, limits);
}

/** Runs a call's deferred functions in order, after the response has been sent. Never rejects. */
async function runDeferred(core: Core, call: Call, all: readonly Deferred[], outcome: Outcome): Promise<void> {
  const end = toEnd(call, outcome);
  // Wait for one turn of the event loop, so that the era and the transport can send the response first.
  await new Promise((resolve) => setTimeout(resolve));
  for (const run of all) {
    try {
      await run(end);
    } catch (error) {
      core.report(error, call);
    }
  }
}

function toEnd({ isAsking, reason }: Call, outcome: Outcome): ServiceEnd {
  if (isAsking) return "input_required";
  if (!outcome || reason !== undefined) return "cancelled";
  return outcome.error || outcome.result.isError === true ? "error" : "result";
}
