/**
 * Starts calls without waiting for the result, and waits for tasks that another process has started.
 */
import type { Params, Result } from "../../../core/protocol/jsonrpc.ts";
import type { ToolResult } from "../../../core/protocol/types.ts";
import type { Client } from "../../../client/calls.ts";
import type { RequestOptions } from "../../../client/rpc.ts";
import { hasEnded, readTask, type TaskState } from "./task_state.ts";

/** A tool call that the server may have turned into a task. */
export interface ToolTask {
  /** The id, for `resumeTask` in another process. `undefined` if the server has responded with a result. */
  readonly id?: string;
  /** The latest state that `startTool` or `get` has received. */
  readonly state?: TaskState;
  /** The result of the call. `undefined` until the result is known, which can be immediately. */
  readonly result?: ToolResult & Result;
  /**
   * Waits for the result. Answers input requests with the callbacks in `options`, or else with the callbacks of
   * `startTool` or of the client. Throws the same errors as `callTool`. `signal` and `timeoutMs` end the waiting, but
   * do not cancel the task. `timeoutMs` defaults to `Infinity`.
   */
  wait(options?: RequestOptions): Promise<ToolResult & Result>;
  /** Requests the current state of the task. */
  get(options?: RequestOptions): Promise<TaskState>;
  /** Answers open input requests by key, such as `{ name: { action: "accept", content: { name: "Ada" } } }`. */
  answer(responses: Params, options?: RequestOptions): Promise<void>;
  /** Asks the server to cancel the task. The task may still complete. */
  cancel(options?: RequestOptions): Promise<void>;
}

/** Options of {@linkcode resumeTask}. */
export interface ResumeTaskOptions extends RequestOptions {
  /** The name of the tool. After `listTools`, the client validates the result with the output schema of this tool. */
  readonly tool?: string;
}

/**
 * Calls a tool. Resolves when the server has turned the call into a task, or has responded with a result. The client
 * needs the extension `taskClient()`. Without this extension, the server always responds with a result.
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
  if (typeof taskId !== "string" || !taskId) {
    throw new TypeError(`Cannot start ${name}: the server sent a task without an id`);
  }
  const first = readTask({ result: {}, ...result }, taskId);
  return new StartedTask(client, { id: taskId, name, options: kept, first: hasEnded(first) ? undefined : first });
}

/** Returns a handle for the task with this id. Any process may have started the task. Sends no request. */
export function resumeTask(client: Client, id: string, { tool = "", ...options }: ResumeTaskOptions = {}): ToolTask {
  return new StartedTask(client, { id, name: tool, options });
}

/** A call to which the server responded with a result instead of a task. */
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

  // Does nothing, because the call has already ended.
  async cancel(): Promise<void> {}

  #refuse(verb: string): TypeError {
    return new TypeError(
      `Cannot ${verb} the task: the server responded with a result instead of a task; read the property result instead`,
    );
  }
}

interface StartedTaskOptions {
  readonly id: string;
  /** The name of the tool, or an empty string if the name is not known. */
  readonly name: string;
  /** Default options for all requests about the task. */
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
    // Keep the known state if the task has ended, because a final state cannot change.
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
