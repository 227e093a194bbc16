/**
 * Waits until a task has ended: polls the task, subscribes to changes of the task, and answers its input requests.
 *
 * @see ext-tasks/specification/draft/tasks (Task Polling, Task Update Requests, Task Cancellation)
 */
import { BoundedMap } from "../../../core/kit/bounded_map.ts";
import type { Clock } from "../../../core/timers.ts";
import { deadline, delay } from "../../../core/kit/deadline.ts";
import { INVALID_PARAMS, isRemoteError } from "../../../core/protocol/errors.ts";
import type { Params, Result } from "../../../core/protocol/jsonrpc.ts";
import type { PendingRequest } from "../../../client/extension.ts";
import { isTransient, MIN_POLL_MS, toPollMs, toRetryMs } from "./task_polling.ts";
import { hasEnded, readTask, TaskError, type TaskState } from "./task_state.ts";

export interface WaitOptions {
  readonly clock: Clock;
  /** Milliseconds for which a failing request is retried. */
  readonly giveUpMs: number;
  /** Returns a function that releases the subscription, or `undefined` if all subscriptions are in use. */
  readonly reserveListener: () => (() => void) | undefined;
}

/**
 * Maximum number of input requests that the client remembers for one task. The client answers at most `maxAnswers` of
 * them, but a server could open and withdraw any number of further requests.
 */
const MAX_QUESTIONS = 1000;
/** Milliseconds for which an expired task is still awaited, in case the clocks differ or the server is slow. */
const EXPIRY_MS = 60_000;
/** Milliseconds that cancelling a task may take, including retries. */
const CANCEL_MS = 5000;

export class TaskWaiter {
  readonly #id: string;
  readonly #call: PendingRequest;
  readonly #options: WaitOptions;
  readonly #since: number;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  /** The task's input requests by key. Aborting a controller withdraws the input request. */
  readonly #questions = new BoundedMap<string, AbortController>({ full: "refuse", max: MAX_QUESTIONS });
  #answering: Promise<void> = Promise.resolve();
  #unanswered?: { readonly error: unknown };
  #news = Promise.withResolvers<void>();
  #isListening = false;
  #message?: string;
  #reports = 0;

  /** `id` is the id of the task that the server created for `call`. */
  constructor(id: string, call: PendingRequest, options: WaitOptions) {
    this.#id = id;
    this.#call = call;
    this.#options = options;
    this.#since = options.clock.now();
    this.#signal = AbortSignal.any([call.signal, call.closed, this.#stop.signal]);
    this.#signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** `first` is the task's initial state, if known. */
  async wait(first?: TaskState): Promise<Result> {
    try {
      return await this.#follow(first);
    } catch (error) {
      const { signal, closed, isResumed } = this.#call;
      // Cancel the task, because no other program waits for it. Do not cancel a resumed task, because other programs
      // may wait for it.
      if (!isResumed && (signal.aborted || this.#unanswered)) await this.#cancel();
      throw closed.aborted && !signal.aborted ? this.#toLost(closed.reason) : error;
    } finally {
      this.#stop.abort();
    }
  }

  async #follow(first?: TaskState): Promise<Result> {
    // The result may be late, after the program has given up.
    this.#signal.throwIfAborted();
    let task = first && !hasEnded(first) ? first : await this.#poll();
    for (let polls = 0; !hasEnded(task); polls++) {
      this.#report(task);
      this.#checkExpiry(task);
      this.#ask(task);
      // Subscribe only after the second poll, because most tasks end before a subscription would be open.
      if (polls === 1) void this.#listen();
      await this.#pause(toPollMs(task, this.#isListening && !this.#call.onProgress));
      task = await this.#poll();
    }
    this.#report(task);
    if (task.error) throw task.error;
    if (task.result) return task.result;
    throw new TaskError(
      this.#id,
      `Cannot finish ${this.#call.method}: the task ${this.#id} was cancelled${toReason(task.statusMessage)}`,
    );
  }

  #poll(): Promise<TaskState> {
    const { giveUpMs } = this.#options;
    const send = async (params: Params) =>
      readTask(await this.#call.request("tasks/get", params, { signal: this.#signal }), this.#id);
    return this.#repeat(send, { signal: this.#signal, giveUpMs });
  }

  /**
   * Sends a request, and retries after temporary failures.
   *
   * @throws {TaskError} if the failure is not temporary, or if the request still fails after `giveUpMs` milliseconds.
   */
  async #repeat<T>(
    send: (params: Params) => Promise<T>,
    { signal, giveUpMs }: { readonly signal: AbortSignal; readonly giveUpMs: number },
  ): Promise<T> {
    const { clock } = this.#options;
    const end = clock.now() + giveUpMs;
    for (let retry = 0;; retry++) {
      try {
        return await send({ taskId: this.#id });
      } catch (error) {
        signal.throwIfAborted();
        const leftMs = end - clock.now();
        if (error instanceof TaskError) throw error;
        if (leftMs <= 0 || !isTransient(error)) throw this.#toLost(error);
        await delay(Math.min(leftMs, toRetryMs(retry, error)), { signal, clock });
      }
    }
  }

  /** Reports a new status message as progress. */
  #report({ statusMessage }: TaskState): void {
    if (statusMessage === undefined || statusMessage === this.#message) return;
    this.#message = statusMessage;
    this.#call.onProgress?.({ progress: ++this.#reports, message: statusMessage });
  }

  /**
   * Throws if the task expired more than {@linkcode EXPIRY_MS} milliseconds ago. The client measures the task's age
   * from the time at which the client learned of the task, so the actual age may be higher.
   */
  #checkExpiry({ ttlMs = Infinity }: TaskState): void {
    if (this.#options.clock.now() - this.#since <= ttlMs + EXPIRY_MS) return;
    throw new TaskError(
      this.#id,
      `Cannot get the result of the task ${this.#id}: the task did not end within its time to live of ${ttlMs} ms`,
    );
  }

  /** Answers one request after another, because there is only one user. Withdraws requests that are not open. */
  #ask({ inputRequests }: TaskState): void {
    for (const [key, question] of Object.entries(inputRequests)) {
      if (this.#questions.has(key)) continue;
      const withdrawal = new AbortController();
      if (!this.#questions.set(key, withdrawal)) {
        throw new TaskError(
          this.#id,
          `Cannot finish the task ${this.#id}: the task has sent more than ${MAX_QUESTIONS} input requests`,
        );
      }
      const signal = AbortSignal.any([withdrawal.signal, this.#signal]);
      this.#answering = this.#answering.then(() => this.#answer(key, question, signal)).catch((error) => {
        if (signal.aborted) return;
        this.#unanswered ??= { error };
        this.#wake();
      });
    }
    for (const [key, withdrawal] of this.#questions) {
      if (!Object.hasOwn(inputRequests, key)) {
        withdrawal.abort(new DOMException("The input request was withdrawn", "AbortError"));
      }
    }
  }

  async #answer(key: string, question: TaskState["inputRequests"][string], signal: AbortSignal): Promise<void> {
    if (this.#unanswered) return;
    signal.throwIfAborted();
    try {
      const answer = await deadline(this.#call.answer({ ...question, key }, { signal }), { signal });
      const send = (params: Params) =>
        this.#call.request("tasks/update", { ...params, inputResponses: { [key]: answer } }, { signal });
      await this.#repeat(send, { signal, giveUpMs: this.#options.giveUpMs });
    } catch (error) {
      // Ignore the error if the task no longer exists, because the next poll reports that the task does not exist.
      if (!isUnknown(error)) throw error;
    }
    this.#wake();
  }

  /**
   * Subscribes to changes of the task, and triggers a poll after each notification. If the server does not support the
   * subscription, the client only polls the task.
   */
  async #listen(): Promise<void> {
    const free = this.#options.reserveListener();
    if (!free) return;
    try {
      const subscription = await this.#call.subscribe({ extensions: { taskIds: [this.#id] } });
      const close = () => void subscription.close().catch(() => {});
      this.#stop.signal.addEventListener("abort", close, { once: true });
      if (this.#signal.aborted) close();
      const { taskIds } = subscription.granted.extensions ?? {};
      this.#isListening = Array.isArray(taskIds) && taskIds.includes(this.#id);
      if (!this.#isListening) close();
      for await (const _ of subscription) this.#wake();
    } catch {
      // Ignore the error, because the next poll fails too if the server is gone.
    } finally {
      this.#isListening = false;
      free();
    }
  }

  /** Waits `ms` milliseconds, or until a notification arrives. */
  async #pause(ms: number): Promise<void> {
    const { clock } = this.#options;
    const begin = clock.now();
    await deadline(this.#news.promise, { ms, onTimeout: () => {}, clock });
    // Wait at least for the minimum time, because a server could send an endless stream of notifications.
    const elapsedMs = clock.now() - begin;
    if (elapsedMs < MIN_POLL_MS && !this.#unanswered) {
      await delay(MIN_POLL_MS - elapsedMs, { signal: this.#signal, clock });
    }
    this.#news = Promise.withResolvers();
    this.#signal.throwIfAborted();
    if (this.#unanswered) throw this.#unanswered.error;
  }

  #wake(): void {
    this.#news.resolve();
  }

  async #cancel(): Promise<void> {
    const { signal } = new AbortController();
    const send = (params: Params) => this.#call.request("tasks/cancel", params, { signal, timeoutMs: CANCEL_MS });
    await this.#repeat(send, { signal, giveUpMs: CANCEL_MS }).catch(() => {});
  }

  #toLost(cause: unknown): TaskError {
    const problem = cause instanceof Error ? cause.message : String(cause);
    const state = isUnknown(cause)
      ? `the server does not know the task, because the task has expired or was lost (${problem})`
      : `${problem}; the task may still be running, so call resumeTask with the id of the task`;
    return new TaskError(this.#id, `Cannot get the result of the task ${this.#id}: ${state}`, { cause });
  }
}

/** Tests whether an error means that the server does not know the task. */
function isUnknown(error: unknown): boolean {
  const cause = error instanceof TaskError ? error.cause : error;
  return isRemoteError(cause) && cause.code === INVALID_PARAMS;
}

function toReason(message: string | undefined): string {
  return message ? `: ${message}` : "";
}
