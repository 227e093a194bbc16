/**
 * Limits the elicitation, sampling and roots requests in the results that a bridge forwards. The bridge counts the
 * requests of all rounds of a call and of all states of a task, as a client does that answers them itself.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @see ext-tasks/specification/draft/tasks (Task Update Requests)
 */
import { sha256 } from "../core/kit/sha256.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import type { AnswerBudget, Asked } from "./answer_budget.ts";
import type { Message } from "./message.ts";

/** The number of the server's requests for one call, and for the task that the call has become. */
interface Known extends Asked {
  /**
   * Digests of the requests in the last state of the task. A task repeats its open requests in each state, so a request
   * counts only if the state before did not contain it.
   */
  open: ReadonlySet<string>;
  /** The number of running requests of the client for this call or task. */
  running: number;
}

/**
 * Maximum number of calls and tasks that are remembered while no request for them is running. If there are more, the
 * oldest are forgotten, and the server can send further requests for them. Only requests of the client and their
 * responses add calls and tasks, so a server would need as many requests of the client.
 */
const MAX_KNOWN = 200;

export class ForwardedQuestions {
  readonly #budget: AnswerBudget;
  readonly #known = new Map<string, Known>();
  /**
   * All calls that continue with an unknown state, such as a state from before the bridge was restarted. They share one
   * budget, which starts again with each new call of the client. The new call also has a budget of its own, so a server
   * can send at most twice the number of requests per call.
   */
  #unknown = toNew();

  constructor(budget: AnswerBudget) {
    this.#budget = budget;
  }

  /** Counts the requests in the response. Throws if they exceed the maximum for the call or the task. */
  async forward(request: Message, send: () => Promise<Message>): Promise<Message> {
    const known = await this.#find(request);
    for (const each of known) each.running++;
    try {
      const reply = await send();
      await this.#count(request, reply, known[0]);
      return reply;
    } finally {
      for (const each of known) each.running--;
    }
  }

  /**
   * Counts the requests in a notification about a task. Throws if they exceed the maximum for the task, or if neither
   * the client nor a response to the client has named the task.
   */
  async countNotified({ method = "", params = {} }: Message): Promise<void> {
    const { taskId, inputRequests } = params;
    checkRequests(inputRequests, method);
    if (!isObject(inputRequests) && typeof taskId !== "string") return;
    const known = typeof taskId === "string" ? this.#known.get(await toTaskKey(taskId)) : undefined;
    if (known) return await this.#countState(known, inputRequests, method);
    // A server could otherwise send requests for any number of tasks that it invents.
    if (!toCount(inputRequests)) return;
    throw new Error(`Cannot forward ${method}: the client has neither started the task nor subscribed to it`);
  }

  async #find(request: Message): Promise<readonly Known[]> {
    const { taskId, notifications, requestState, inputResponses } = request.params ?? {};
    const { taskIds } = isObject(notifications) ? notifications : {};
    const tasks = [taskId, ...Array.isArray(taskIds) ? taskIds : []].filter((id) => typeof id === "string");
    if (tasks.length) return await Promise.all(tasks.map((id) => this.#findTask(id)));
    const isFirst = requestState === undefined && inputResponses === undefined;
    if (isFirst) {
      this.#unknown = toNew();
      return [toNew()];
    }
    return [this.#known.get(await toCallKey(request, requestState)) ?? this.#unknown];
  }

  /** Finds a task. If the task is not known, it continues `call`. */
  async #findTask(id: string, call = toNew()): Promise<Known> {
    const key = await toTaskKey(id);
    return this.#remember(key, this.#known.get(key) ?? call);
  }

  async #count(request: Message, { result }: Message, known: Known): Promise<void> {
    if (!isObject(result)) return;
    const { inputRequests, requestState, resultType, status, taskId } = result;
    const what = `the result of ${request.method}`;
    checkRequests(inputRequests, what);
    const ids = [request.params?.taskId, taskId].filter((id) => id !== undefined);
    if (toCount(inputRequests) && ids.some((id) => typeof id !== "string")) throw refuse(what, NO_ID);
    if (resultType === "task" && typeof taskId !== "string") throw refuse(what, NO_ID);
    const isOfTask = typeof request.params?.taskId === "string";
    // Clients may follow a task whose id changes, which is then still the task of the request.
    if (isOfTask && typeof taskId === "string") await this.#findTask(taskId, known);
    if (resultType === "input_required") {
      // Some clients repeat ill-formed text as another text, so the next round could not be counted.
      if (requestState !== undefined && !(typeof requestState === "string" && requestState.isWellFormed())) {
        throw refuse(what, "its requestState is not a well-formed string; ask the operator of the server");
      }
      this.#charge(known, toCount(inputRequests), what);
      return void this.#remember(await toCallKey(request, requestState), known);
    }
    const startsTask = !isOfTask && resultType === "task" && typeof taskId === "string";
    if (!isOfTask && !startsTask) return this.#charge(known, toCount(inputRequests), what);
    // The response to an answer, for example, contains no state.
    if (inputRequests === undefined && status === undefined) return;
    await this.#countState(startsTask ? await this.#findTask(taskId, known) : known, inputRequests, what);
  }

  async #countState(known: Known, inputRequests: unknown, what: string): Promise<void> {
    const questions = Object.entries(isObject(inputRequests) ? inputRequests : {});
    if (questions.length > this.#budget.max) throw refuse(what, this.#budget.explain());
    // Remember digests, because the server chooses the length of a request.
    const open = await Promise.all(questions.map((question) => sha256(JSON.stringify(question))));
    this.#charge(known, open.filter((digest) => !known.open.has(digest)).length, what);
    known.open = new Set(open);
  }

  #charge(known: Known, count: number, what: string): void {
    if (!this.#budget.charge(known, count)) throw refuse(what, this.#budget.explain());
  }

  #remember(key: string, known: Known): Known {
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const [oldest, { running }] of this.#known) {
      if (this.#known.size <= MAX_KNOWN) break;
      if (!running) this.#known.delete(oldest);
    }
    return known;
  }
}

function toNew(): Known {
  return { count: 0, open: new Set(), running: 0 };
}

const NO_ID = "its taskId is not a string; ask the operator of the server";

function refuse(what: string, state: string): Error {
  return new Error(`Cannot forward ${what}: ${state}`);
}

/** Throws if clients may find requests where the bridge cannot count them, such as in a list. */
function checkRequests(inputRequests: unknown, what: string): void {
  if (inputRequests === undefined || inputRequests === null || isObject(inputRequests)) return;
  throw refuse(what, "its inputRequests is not an object; ask the operator of the server");
}

function toCount(inputRequests: unknown): number {
  return isObject(inputRequests) ? Object.keys(inputRequests).length : 0;
}

/** Returns a text that is the same for a result and for the next round of its call. */
function toCallKey({ method, params }: Message, requestState: unknown): Promise<string> {
  return sha256(JSON.stringify([method, params?.name, params?.uri, requestState]));
}

function toTaskKey(taskId: string): Promise<string> {
  return sha256(`task ${taskId}`);
}
