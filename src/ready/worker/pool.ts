/**
 * A pool of worker threads that run the same handler.
 */
import { isCancelError, toReasonNumber } from "../../server/call/cancel_error.ts";
import type { Context, OnceOptions, Principal } from "../../server/call/context.ts";
import type { CancelReason } from "../../server/call/observer.ts";
import { type ClientKey, findSharingKey } from "../../server/call/client_key.ts";
import { findCall } from "../../server/call/find_call.ts";
import { ClientShares } from "../../server/capacity/client_shares.ts";
import { FairQueue } from "../../server/capacity/fair_queue.ts";
import { toBusy } from "../../core/protocol/errors.ts";
import { deno, findThreadLocks, startBackgroundTimer } from "../../core/runtime.ts";
import {
  type CallInfo,
  type FromThread,
  isCopyable,
  type SentError,
  toError,
  toSentError,
  type ToThread,
} from "./messages.ts";
import { type RunningThread, startThread } from "./thread.ts";

/** Options of `worker()`. */
export interface WorkerPoolOptions {
  /**
   * Maximum number of threads. If the number is at least 4, a single client can use at most three quarters of the
   * threads, rounded up, except over stdio. Defaults to the number of logical CPUs minus one, but at least 1.
   */
  readonly size?: number;
  /** Milliseconds after which the pool terminates an idle thread. Defaults to 10,000. */
  readonly idleMs?: number;
  /** Milliseconds that a thread may take to load its file. Defaults to 30,000. */
  readonly startMs?: number;
  /**
   * Milliseconds that a cancelled handler may take to stop before the pool terminates its thread. Defaults to 250. Deno
   * cannot terminate a thread that never returns to its event loop, so long loops must check `signal`. Until such a
   * thread ends, it counts towards `size`. If all threads are in this state, calls fail with code -31503.
   */
  readonly stopMs?: number;
}

/**
 * The threads that run the handler of one file. The pool starts a thread when a call needs a thread and no thread is
 * idle.
 */
// Bound: `WorkerPoolOptions`, whose `size` limits the threads.
export class Pool {
  readonly #url: URL;
  readonly #options: Required<WorkerPoolOptions>;
  readonly #idle: Thread[] = [];
  /** Served round-robin, so that many calls from one caller do not delay other callers. */
  readonly #waiting = new FairQueue<Waiter>();
  /** Busy and idle threads, and terminated threads that have not ended yet, because they may still use CPU time. */
  readonly #threads = new Set<Thread>();
  readonly #shares: ClientShares;

  constructor(url: URL, options: Required<WorkerPoolOptions>) {
    this.#url = url;
    this.#options = options;
    this.#shares = new ClientShares(options.size);
  }

  /** Runs a call in a thread, after waiting for a free thread if necessary. */
  async run(input: unknown, ctx: Context): Promise<unknown> {
    const client = findSharingKey(ctx);
    const thread = await this.#acquire(ctx, client);
    try {
      return await thread.run(input, ctx);
    } finally {
      // Release the thread only when its handler has ended, because the handler of a cancelled call may still be
      // running.
      thread.untilIdle().then(() => this.#release(thread, client));
    }
  }

  #acquire(ctx: Context, client: ClientKey | undefined): Promise<Thread> {
    const { signal } = ctx;
    signal.throwIfAborted();
    const hasShare = this.#shares.hasRoom(client);
    for (let thread = hasShare && this.#idle.pop(); thread; thread = this.#idle.pop()) {
      if (!thread.hasEnded) {
        this.#shares.add(client);
        return Promise.resolve(thread);
      }
      // A thread can crash while it is idle, because a handler may have left code running.
      this.#threads.delete(thread);
    }
    if (this.#isLost()) throw toBusy(LOST);
    const { promise, resolve, reject } = Promise.withResolvers<Thread>();
    const give = (find: () => Thread) => {
      signal.removeEventListener("abort", giveUp);
      try {
        resolve(find());
        this.#shares.add(client);
      } catch (error) {
        reject(error);
      }
    };
    const waiter = { client, give };
    const giveUp = () => {
      this.#waiting.delete(client, waiter);
      reject(signal.reason);
    };
    if (hasShare && this.#threads.size < this.#options.size) {
      give(() => this.#start());
      return promise;
    }
    this.#waiting.add(client, waiter);
    signal.addEventListener("abort", giveUp, { once: true });
    // The wait does not count towards the timeout of the call. Otherwise clients with long calls could make the calls of
    // other clients fail.
    return findCall(ctx)?.untilAnswered(promise) ?? promise;
  }

  // Add the thread only after it has been created, because the constructor may throw, and later calls would wait for a
  // thread that does not exist.
  #start(): Thread {
    const thread = new Thread(this.#url, this.#options, () => this.#refuseWaiting());
    this.#threads.add(thread);
    return thread;
  }

  #isLost(): boolean {
    return this.#threads.size >= this.#options.size && [...this.#threads].every(({ isLost }) => isLost);
  }

  // Rejects the waiting calls if no thread can run them, because it is unknown whether the terminated threads will ever
  // end.
  #refuseWaiting(): void {
    while (this.#isLost()) {
      const next = this.#waiting.dequeue();
      if (!next) return;
      next.give(() => {
        throw toBusy(LOST);
      });
    }
  }

  /** Returns the call whose turn it is, among the calls of clients that may use another thread. */
  #takeWaiting(): Waiter | undefined {
    return this.#waiting.dequeue(({ client }) => this.#shares.hasRoom(client));
  }

  #release(thread: Thread, client: ClientKey | undefined): void {
    this.#shares.remove(client);
    if (thread.hasEnded) {
      this.#threads.delete(thread);
      return this.#startNext();
    }
    const next = this.#takeWaiting();
    if (next) next.give(() => thread);
    else {
      this.#idle.push(thread);
      thread.startIdleTimer(() => this.#drop(thread));
    }
  }

  // Starts threads for waiting calls. If a thread cannot be created, the call fails, and the loop continues with the
  // next call. Otherwise, the next call would wait forever.
  #startNext(): void {
    while (this.#threads.size < this.#options.size) {
      const next = this.#takeWaiting();
      if (!next) return;
      next.give(() => this.#start());
    }
  }

  #drop(thread: Thread): void {
    const at = this.#idle.indexOf(thread);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#threads.delete(thread);
    thread.end();
  }
}

interface Waiter {
  readonly client: ClientKey | undefined;
  /** Passes the thread that `find` returns to the call. If `find` throws, the call fails. */
  readonly give: (find: () => Thread) => void;
}

const LOST = "run the call: all threads are still running cancelled calls (size of the worker)";
/** Milliseconds after which a terminated thread counts as lost, because it does not return to its event loop. */
const ENDING_MS = 500;

/** A worker thread, which runs one call at a time. */
class Thread {
  /** Whether the thread has crashed or was terminated, so that it cannot run calls. */
  hasEnded = false;
  /**
   * Whether the thread was still running {@linkcode ENDING_MS} milliseconds after it was terminated. Always `false` for a
   * thread that ends by itself.
   */
  isLost = false;
  /** Name of the thread, and of the lock that it holds on Deno. */
  readonly #name = `mcp ${crypto.randomUUID()}`;
  readonly #onLost: () => void;
  readonly #closed = Promise.withResolvers<void>();
  readonly #url: URL;
  readonly #options: Required<WorkerPoolOptions>;
  readonly #thread: RunningThread;
  #isReady = false;
  #job?: Job;
  #failure?: Error;
  /**
   * Whether an uncaught error, `close` or `exit` has stopped the thread's code. The runtime may end the thread much
   * later.
   */
  #isStopped = false;
  #stopTimer?: () => void;

  constructor(url: URL, options: Required<WorkerPoolOptions>, onLost: () => void) {
    this.#url = url;
    this.#options = options;
    this.#onLost = onLost;
    this.#thread = startThread(url, this.#name, {
      // The cast is safe, because only `exposeWorker` sends messages.
      onMessage: (message) => this.#receive(message as FromThread),
      onUnreadable: (state) => this.#crash(state),
      onFailure: (state) => this.#endByItself(state),
      onEnd: () => {
        this.#closed.resolve();
        this.#crash(ENDED);
      },
    });
  }

  /** Rejects as soon as the call is cancelled, without waiting until the handler has stopped. */
  run(input: unknown, ctx: Context): Promise<unknown> {
    // Check whether the call was cancelled, or the thread has crashed, since the pool chose the thread.
    if (ctx.signal.aborted) return Promise.reject(ctx.signal.reason);
    if (this.#failure) return Promise.reject(this.#failure);
    this.#thread.keepAlive(true);
    this.#stopTimer?.();
    const job = this.#job = new Job(input, ctx, (message) => this.#thread.post(message));
    if (this.#isReady) this.#begin(job);
    else {
      const { startMs } = this.#options;
      this.#startTimer(startMs, () => {
        this.#crash(
          `the file did not call exposeWorker() within ${startMs} ms (startMs); call exposeWorker() at the top level of ${this.#url}`,
        );
      });
    }
    ctx.signal.addEventListener("abort", () => this.#cancel(job, ctx.signal.reason), { once: true });
    return job.result.promise;
  }

  /** Resolves when no handler is running. A terminated thread may continue to run its handler indefinitely. */
  untilIdle(): Promise<void> {
    return this.#job?.ended.promise ?? Promise.resolve();
  }

  /** Calls `onIdle` if the thread receives no call within `idleMs` milliseconds. */
  startIdleTimer(onIdle: () => void): void {
    this.#thread.keepAlive(false);
    const { idleMs } = this.#options;
    if (idleMs) this.#stopTimer = startBackgroundTimer(onIdle, idleMs);
    else onIdle();
  }

  /** Terminates the thread, even while it runs a handler. */
  end(): void {
    this.hasEnded = true;
    this.#stopTimer?.();
    this.#job?.stop();
    this.#thread.terminate();
    if (this.#job) this.#awaitEnd(this.#job);
  }

  async #awaitEnd(job: Job): Promise<void> {
    this.#startEndTimer();
    // Wait only for a thread that is ready. A thread that is still starting holds no lock and runs no handler.
    if (this.#isReady) await (deno ? untilReleased(this.#name) : this.#closed.promise);
    this.#stopTimer?.();
    job.ended.resolve();
  }

  // The end of a thread whose code has stopped is certain, however long it takes on a busy machine. The repeated timer
  // keeps the process alive until then.
  #startEndTimer(): void {
    this.#startTimer(ENDING_MS, () => {
      if (this.#isStopped) return this.#startEndTimer();
      this.isLost = true;
      this.#onLost();
    });
  }

  #begin(job: Job): void {
    try {
      job.begin();
    } catch (error) {
      const state = error instanceof Error ? error.message : String(error);
      job.result.reject(new TypeError(`Cannot run the call in a worker thread: the input cannot be copied (${state})`));
      this.#finish(job);
    }
  }

  #receive(message: FromThread): void {
    const job = this.#job;
    if (message.kind === "ready") {
      this.#isReady = true;
      if (!job) return;
      this.#stopTimer?.();
      this.#begin(job);
    } else if (message.kind === "gone") this.#endByItself(ENDED);
    else if (!job) return;
    else if (message.kind === "use") job.use(message);
    else {
      if (message.kind === "result") job.result.resolve(message.value);
      else job.result.reject(job.restore(message.error));
      this.#finish(job);
    }
  }

  // Cancels the call, and terminates the thread if the handler has not stopped within `stopMs` milliseconds.
  #cancel(job: Job, reason: unknown): void {
    if (this.#job !== job) return;
    job.result.reject(reason);
    // Keep a thread that is still loading its file for the next call, because starting another thread would take longer
    // than most calls.
    if (!this.#isReady) return this.#finish(job);
    job.cancel(reason);
    this.#startTimer(this.#options.stopMs, () => this.end());
  }

  #finish(job: Job): void {
    this.#stopTimer?.();
    this.#job = undefined;
    job.ended.resolve();
  }

  #endByItself(state: string): void {
    this.#isStopped = true;
    this.#crash(state);
  }

  #crash(state: string): void {
    if (this.hasEnded) return;
    const place = this.#isReady ? "run the call" : "start a worker thread";
    this.#failure = new Error(`Cannot ${place}: ${state}`);
    this.#job?.result.reject(this.#failure);
    this.end();
  }

  // The timer keeps the process alive, because Deno may never run a background timer while only a worker thread is
  // active.
  #startTimer(ms: number, job: () => void): void {
    this.#stopTimer?.();
    const timer = setTimeout(job, ms);
    this.#stopTimer = () => clearTimeout(timer);
  }
}

/** Polls the lock, because a pending request for the lock would keep the process alive. */
async function untilReleased(name: string): Promise<void> {
  const locks = findThreadLocks();
  while ((await locks?.query())?.held?.some((lock) => lock.name === name)) {
    await new Promise<void>((resolve) => startBackgroundTimer(resolve, POLL_MS));
  }
}

const POLL_MS = 20;

/** The server's side of a call that a thread runs. */
// Bound: one call, whose thread sends one message at a time.
class Job {
  readonly result = Promise.withResolvers<unknown>();
  /** Resolves when the thread no longer runs the call's handler. */
  readonly ended = Promise.withResolvers<void>();
  readonly #input: unknown;
  readonly #ctx: Context;
  readonly #send: (message: ToThread) => void;
  /**
   * Shared memory: the number of messages from the thread that have been processed, and the reason for a cancellation.
   */
  readonly #done = new Int32Array(new SharedArrayBuffer(8));
  /** Values of `once` that the thread is creating, by key. */
  readonly #made = new Map<unknown, PromiseWithResolvers<unknown>>();
  readonly #kept = new Map<unknown, Promise<unknown>>();
  /** Errors of context methods that were sent to the thread, by content. The handler may rethrow such an error. */
  readonly #sent = new Map<string, Error>();

  constructor(input: unknown, ctx: Context, send: (message: ToThread) => void) {
    this.#input = input;
    this.#ctx = ctx;
    this.#send = send;
  }

  begin(): void {
    const { method, client, principal, meta, idempotencyToken } = this.#ctx;
    const info: CallInfo = { method, client, meta, idempotencyToken, ...toSentPrincipal(principal) };
    this.#send({ kind: "run", input: this.#input, info, done: this.#done });
  }

  cancel(reason: unknown): void {
    this.stop(isCancelError(reason) ? reason.why : undefined);
    this.#send({ kind: "cancel", reason: toSentError(reason) });
  }

  /**
   * Stores the cancellation in shared memory, so that a handler that has not started yet does not start. A handler that
   * starts could enter a loop, and Deno could not terminate its thread.
   */
  stop(why: CancelReason = "disconnected"): void {
    Atomics.store(this.#done, 1, toReasonNumber(why));
  }

  /** Returns the error that the handler threw. If a context method threw it, returns the same error object. */
  restore(error: SentError): Error {
    return this.#sent.get(toKey(error)) ?? toError(error);
  }

  /** Calls a context method on behalf of the thread, and sends the result to the thread. */
  async use({ name, args, id }: FromThread & { readonly kind: "use" }): Promise<void> {
    // The casts are safe, because only `once` sends a message without an id, and always with these arguments.
    if (id === undefined) return this.#made.get(args[0])?.reject(toError(args[1] as SentError));
    let answer: { readonly value: unknown } | { readonly error: SentError };
    try {
      answer = { value: await this.#apply(name, args) };
    } catch (thrown) {
      const error = toSentError(thrown);
      if (thrown instanceof Error) this.#sent.set(toKey(error), thrown);
      answer = { error };
    }
    Atomics.add(this.#done, 0, 1);
    try {
      this.#send({ kind: "answer", id, ...answer });
    } catch (error) {
      const state = `Cannot use ctx.${name} in a worker thread: the result cannot be copied; return plain data`;
      const wrong = new TypeError(state, { cause: error });
      this.#send({ kind: "answer", id, error: toSentError(wrong) });
    }
  }

  #apply(name: string, args: readonly unknown[]): unknown {
    const ctx = this.#ctx;
    if (name === "once") return this.#askOnce(args[0], args[1]);
    if (name === "keep") {
      this.#made.get(args[0])?.resolve(args[1]);
      return this.#kept.get(args[0]);
    }
    const method: unknown = name === "log" ? Reflect.get(ctx.log, String(args[0])) : Reflect.get(ctx, name);
    if (typeof method !== "function") {
      throw new TypeError(
        `Cannot use ctx.${name} in a worker thread: the context has no such method; call the method outside of the worker`,
      );
    }
    return name === "log" ? method(args[1], { logger: args[2] }) : method(...args);
  }

  // Resolves with the stored value of `once`, or with a request to the thread to create the value.
  #askOnce(key: unknown, options: unknown): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const kept = this.#ctx.once(String(key), () => {
      const made = Promise.withResolvers<unknown>();
      this.#made.set(key, made);
      resolve({ isKnown: false });
      return made.promise;
    }, options as OnceOptions | undefined); // The cast is safe, because `once` checks its options.
    this.#kept.set(key, kept);
    kept.then((value) => resolve({ isKnown: true, value }), reject);
    return promise;
  }
}

const ENDED =
  "the thread ended before it sent a response; the file must call exposeWorker(), and must not call close or exit";

function toKey(error: SentError): string {
  return JSON.stringify([error.kind, "message" in error ? error.message : error.content]);
}

/**
 * Returns the principal to send to a thread. Fields that cannot be copied, such as functions, are omitted and listed in
 * `withheld`, so that reading them throws. If a field were only missing, a check such as `if (!principal.blocked)`
 * would pass.
 */
function toSentPrincipal(principal: Principal | undefined): Pick<CallInfo, "principal" | "withheld"> {
  if (!principal) return {};
  const withheld = Object.entries(principal).flatMap(([name, fact]) => isCopyable(fact) ? [] : name);
  const sent = Object.entries(principal).filter(([name]) => !withheld.includes(name));
  return { principal: { ...Object.fromEntries(sent), id: principal.id }, withheld };
}
