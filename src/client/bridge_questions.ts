/**
 * Limits the elicitation, sampling and roots requests in the results that a bridge forwards. The bridge counts the
 * requests of all rounds of a call and of all states of a task, as a client does that answers them itself.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @see ext-tasks/specification/draft/tasks (Task Update Requests)
 * @module
 */
import { BoundedMap } from "../kit/bounded_map.ts";
import { sha256 } from "../kit/sha256.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { AnswerBudget, Asked } from "./answer_budget.ts";
import type { Message } from "./message.ts";

/**
 * The number of the server's requests for one call or task. A task repeats its open requests in each state, so `keys`
 * contains the digests of the keys that were already counted.
 */
interface Known extends Asked {
  readonly keys: Set<string>;
}

/**
 * Maximum number of calls and tasks whose requests are remembered. If there are more, the oldest are forgotten, and the
 * server can send further requests for them. A server would need as many calls of the client.
 */
const MAX_KNOWN = 200;

/** Counts the requests in results. */
export class ForwardedQuestions {
  readonly #budget: AnswerBudget;
  readonly #known = new BoundedMap<string, Known>({ full: "evict", max: MAX_KNOWN });

  constructor(budget: AnswerBudget) {
    this.#budget = budget;
  }

  /** Counts the requests in a response. Throws if they exceed the maximum for the call or the task. */
  async count(request: Message, { result }: Message): Promise<void> {
    if (!isObject(result) || !isObject(result.inputRequests)) return;
    const { method = "", params = {} } = request;
    const keys = Object.keys(result.inputRequests);
    if (result.resultType === "input_required") {
      const isFirst = params.requestState === undefined && params.inputResponses === undefined;
      const known = isFirst ? undefined : this.#known.get(await toCallKey(request, params.requestState));
      const next = await toCallKey(request, result.requestState);
      this.#known.set(next, this.#charge(known, keys.length, toResultOf(method)));
    } else if (typeof params.taskId === "string") {
      await this.#countOfTask(params.taskId, keys, toResultOf(method));
    }
  }

  /** Counts the requests in a notification about a task. Throws if they exceed the maximum for the task. */
  async countNotified({ method = "", params = {} }: Message): Promise<void> {
    if (typeof params.taskId !== "string" || !isObject(params.inputRequests)) return;
    await this.#countOfTask(params.taskId, Object.keys(params.inputRequests), method);
  }

  async #countOfTask(taskId: string, keys: readonly string[], what: string): Promise<void> {
    if (keys.length > this.#budget.max) throw this.#refuse(what);
    const place = await sha256(`task ${taskId}`);
    // Remember digests, because the server chooses the length of a key.
    const digests = await Promise.all(keys.map(sha256));
    const known = this.#known.get(place) ?? { count: 0, keys: new Set() };
    const added = digests.filter((key) => !known.keys.has(key));
    this.#known.set(place, this.#charge(known, added.length, what));
    for (const key of added) known.keys.add(key);
  }

  #charge(known: Known = { count: 0, keys: new Set() }, count: number, what: string): Known {
    if (this.#budget.charge(known, count)) return known;
    throw this.#refuse(what);
  }

  #refuse(what: string): Error {
    return new Error(`Cannot forward ${what}: ${this.#budget.explain()}`);
  }
}

function toResultOf(method: string): string {
  return `the result of ${method}`;
}

/** Returns a text that is the same for a result and for the next round of its call. */
function toCallKey({ method, params }: Message, requestState: unknown): Promise<string> {
  return sha256(JSON.stringify([method, params?.name, params?.uri, requestState]));
}
