/**
 * Handles of tasks, for programs that do not wait for a call, or that wait for it in another process.
 *
 * @module
 */
import type { Params, Result } from "../../protocol/jsonrpc.ts";
import type { ToolResult } from "../../protocol/types.ts";
import type { Client } from "../calls.ts";
import type { RequestOptions } from "../rpc.ts";
import { hasEnded, readTask, type TaskState } from "./task_state.ts";

/** A call of a tool that the server may have turned into a task. */
export interface ToolTask {
  /** The id of the task, to store for `resumeTask`. `undefined` if the server responded to the call without a task. */
  readonly id?: string;
  /** The last state that `startTool` or `get` has received. */
  readonly state?: TaskState;
  /**
   * The result of the call. `undefined` until the result is known. If the server responded without a task, the result
   * is known at once.
   */
  readonly result?: ToolResult & Result;
  /**
   * Waits for the result, and answers questions with the functions of `options`, of `startTool` or of the client.
   * Throws the same errors as `callTool`. Neither `signal` nor `timeoutMs`, which defaults to `Infinity`, cancels the
   * task.
   */
  wait(options?: RequestOptions): Promise<ToolResult & Result>;
  /** Gets the state of the task. */
  get(options?: RequestOptions): Promise<TaskState>;
  /** Answers open questions of the state by their keys: `{ name: { action: "accept", content: { name: "Ada" } } }`. */
  answer(responses: Params, options?: RequestOptions): Promise<void>;
  /** Asks the server to cancel the task. The task may still complete. */
  cancel(options?: RequestOptions): Promise<void>;
}

/** Options of {@linkcode resumeTask}. */
export interface ResumeTaskOptions extends RequestOptions {
  /** The name of the tool. If `listTools` was called before, the result must match the output schema of this tool. */
  readonly tool?: string;
}

/**
 * Calls a tool. Returns when the server has turned the call into a task, or has responded with a result.
 *
 * The client must have the extension `taskClient()`. Without it, the server always responds with a result.
 */
export async function startTool(
  client: Client,
  name: string,
  args: Params = {},
  options: RequestOptions = {},
): Promise<ToolTask> {
  const result = await client.callTool(name, args, { ...options, finish: false });
  if (result.resultType !== "task") return new AnsweredCall(result);
  const { signal: _signal, timeoutMs: _timeoutMs, finish: _finish, rounds: _rounds, ...kept } = options;
  const { taskId } = result;
  if (typeof taskId !== "string" || !taskId) throw new TypeError(`Cannot start ${name}: the task has no id`);
  const first = readTask({ result: {}, ...result }, taskId);
  return new StartedTask(client, { id: taskId, name, options: kept, first: hasEnded(first) ? undefined : first });
}

/** Returns the handle of a task by its id, in any process. It sends no request. */
export function resumeTask(client: Client, id: string, { tool = "", ...options }: ResumeTaskOptions = {}): ToolTask {
  return new StartedTask(client, { id, name: tool, options });
}

/** A call that the server answered without creating a task. */
class AnsweredCall implements ToolTask {
  readonly result: ToolResult & Result;

  constructor(result: ToolResult & Result) {
    this.result = result;
  }

  async wait(): Promise<ToolResult & Result> {
    return await Promise.resolve(this.result);
  }

  get(): Promise<TaskState> {
    return Promise.reject(this.#refuse("get the state of"));
  }

  answer(): Promise<void> {
    return Promise.reject(this.#refuse("answer"));
  }

  // Nothing to cancel, because the call has ended.
  async cancel(): Promise<void> {}

  #refuse(verb: string): TypeError {
    return new TypeError(`Cannot ${verb} the task: the server answered the call without a task; use result`);
  }
}

interface StartedTaskOptions {
  readonly id: string;
  /** The name of the tool, or an empty string. */
  readonly name: string;
  /** Options of all requests about the task. */
  readonly options: RequestOptions;
  readonly first?: TaskState;
}

class StartedTask implements ToolTask {
  readonly id: string;
  readonly #client: Client;
  readonly #name: string;
  readonly #options: RequestOptions;
  #state?: TaskState;
  #result?: ToolResult & Result;

  constructor(client: Client, { id, name, options, first }: StartedTaskOptions) {
    this.id = id;
    this.#client = client;
    this.#name = name;
    this.#options = options;
    this.#state = first;
  }

  get state(): TaskState | undefined {
    return this.#state;
  }

  get result(): (ToolResult & Result) | undefined {
    return this.#result;
  }

  async wait(options?: RequestOptions): Promise<ToolResult & Result> {
    if (this.#result) return this.#result;
    const all = { timeoutMs: Infinity, ...this.#options, ...options };
    const resume = { resultType: "task", taskId: this.id };
    return this.#result = await this.#client.callTool(this.#name, {}, { ...all, resume });
  }

  async get(options?: RequestOptions): Promise<TaskState> {
    const state = readTask(await this.#request("tasks/get", {}, options), this.id);
    // Keep the known state if the task had ended, because it cannot change any more.
    return this.#state = this.#state && hasEnded(this.#state) ? this.#state : state;
  }

  async answer(responses: Params, options?: RequestOptions): Promise<void> {
    await this.#request("tasks/update", { inputResponses: responses }, options);
  }

  async cancel(options?: RequestOptions): Promise<void> {
    await this.#request("tasks/cancel", {}, options);
  }

  async #request(method: string, params: Params, options?: RequestOptions): Promise<Result> {
    return await this.#client.request(method, { ...params, taskId: this.id }, { ...this.#options, ...options });
  }
}
