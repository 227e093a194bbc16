/**
 * Follows the task of a call. Polls the task's status, shows its questions to the user, and returns its result.
 *
 * @see ext-tasks/specification/draft/tasks
 */
import { isObject } from "../../../core/kit/json.ts";
import { h, serverText } from "./dom.ts";
import type { Failure, Outcome } from "./exchange.ts";
import { type Json, toObject, toText } from "./json.ts";
import { askUser } from "./question_dialogs.ts";
import { send } from "./rpc_client.ts";

const MIN_POLL_MS = 100;
const MAX_POLL_MS = 60_000;
const DEFAULT_POLL_MS = 1000;
/** Maximum number of consecutive polls that may fail, for example while the server restarts. */
const MAX_FAILURES = 10;

export class TaskFollower {
  readonly element: HTMLElement = h("p.task", { "aria-label": "Task" });
  readonly #taskId: string;
  readonly #signal: AbortSignal;
  readonly #call: string;
  /** The questions that the user was asked, by key. Aborting a controller closes the dialog for the question. */
  readonly #questions = new Map<string, AbortController>();
  #isDismissed = false;
  #wake: () => void = () => {};

  /** Creates a follower for the task that `handle` describes. The follower cancels the task when `signal` aborts. */
  constructor(handle: Json, { signal, call }: { signal: AbortSignal; call: string }) {
    this.#taskId = String(handle.taskId);
    this.#signal = signal;
    this.#call = call;
    this.#show(handle);
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** Waits for the task, and returns its result or error. If the user stops the call, cancels the task. */
  async follow(handle: Json): Promise<Outcome> {
    try {
      return await this.#poll(handle);
    } finally {
      for (const question of this.#questions.values()) question.abort();
    }
  }

  #send(method: string, more: Json = {}): Promise<Outcome> {
    return send(method, { taskId: this.#taskId, ...more }, { call: this.#call });
  }

  async #poll(handle: Json): Promise<Outcome> {
    let task = handle;
    for (let failures = 0;;) {
      await this.#pause(task.pollIntervalMs);
      if (this.#signal.aborted || this.#isDismissed) {
        const { ms } = await this.#send("tasks/cancel");
        return { kind: "stopped", ms };
      }
      const outcome = await this.#send("tasks/get");
      if (outcome.kind === "stopped") return outcome;
      if (outcome.kind === "error") {
        if (!isTransient(outcome) || ++failures > MAX_FAILURES) return outcome;
        continue;
      }
      failures = 0;
      task = outcome.result;
      const { ms, size } = outcome;
      if (task.taskId !== this.#taskId) {
        return { kind: "error", message: "The server sent the state of a different task", ms };
      }
      this.#show(task);
      if (task.status === "completed") return { kind: "result", result: toObject(task.result), ms, size };
      if (task.status === "failed" || task.status === "cancelled") return toFailure(task, ms);
      this.#ask(toObject(task.inputRequests));
    }
  }

  #show({ status, statusMessage }: Json): void {
    const message = toText(statusMessage);
    this.element.replaceChildren(
      "Task ",
      h("code", serverText(this.#taskId)),
      " · ",
      serverText(String(status)),
      ...message === undefined ? [] : [" · ", serverText(message)],
    );
  }

  /** Shows new questions to the user, and closes the dialogs for questions that the task no longer asks. */
  #ask(requests: Json): void {
    for (const [key, asked] of Object.entries(requests)) {
      if (this.#questions.has(key)) continue;
      const stop = new AbortController();
      this.#questions.set(key, stop);
      void this.#answer(key, toObject(asked), AbortSignal.any([stop.signal, this.#signal]));
    }
    for (const [key, stop] of this.#questions) if (!Object.hasOwn(requests, key)) stop.abort();
  }

  async #answer(key: string, { method, params }: Json, signal: AbortSignal): Promise<void> {
    const response = await askUser(String(method), toObject(params), signal);
    if (signal.aborted) return;
    if (response) await this.#send("tasks/update", { inputResponses: { [key]: response } });
    else this.#isDismissed = true;
    this.#wake();
  }

  /**
   * Waits for the poll interval that the server suggests, within limits. Ends early if the next poll or the
   * cancellation must not wait, for example because the user has answered a question.
   */
  async #pause(wanted: unknown): Promise<void> {
    if (this.#signal.aborted || this.#isDismissed) return;
    const ms = typeof wanted === "number" && wanted > 0 ? wanted : DEFAULT_POLL_MS;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, ms)));
    await promise;
    clearTimeout(timer);
  }
}

function toFailure({ status, statusMessage, error }: Json, ms: number): Failure {
  const { code, message, data } = toObject(error);
  return {
    kind: "error",
    ...typeof code === "number" && { code },
    message: toText(message) ?? toText(statusMessage) ??
      (status === "failed" ? "The task failed" : "The task was cancelled"),
    ...isObject(error) && { data },
    ms,
  };
}

/** Whether the next poll may succeed despite this error. */
function isTransient({ code, status = 0 }: Failure): boolean {
  return code === undefined || status >= 500 || status === 429;
}
