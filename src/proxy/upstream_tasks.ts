/**
 * Passes tasks of the server behind a proxy on to callers. Loaded when a client first refers to one.
 */
import { hasEnded, readTask, type TaskState } from "../extensions/tasks/client/task_state.ts";
import {
  type ForeignState,
  type ForeignTask,
  ForeignTasks,
  MAX_ID,
  type TaskKeeper,
  toFailed,
  toFields,
} from "../extensions/tasks/foreign_tasks.ts";
import { INVALID_PARAMS, METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import { isMcpError, isRemoteError, isToolError, McpError } from "../core/protocol/errors.ts";
import { type Params, type Result, toTypedResult, withoutReserved } from "../core/protocol/jsonrpc.ts";
import { fitResult } from "../core/protocol/wire.ts";
import { type Context, ToolError } from "../library.ts";
import { toCall } from "../server/call/find_call.ts";
import { findNeed, toOwn } from "../server/call/forward.ts";
import type { ServerHandle } from "../server/engine/server_handle.ts";
import { passHandle } from "../server/visibility/relayed_handles.ts";
import { toAsked, withTasks } from "./calls.ts";
import { LIST_MS } from "./connection.ts";
import { showInvisible } from "./foreign_text.ts";
import { toHops } from "./hops.ts";
import { toAllowed } from "./settings.ts";
import type { Upstream } from "./upstream.ts";

/** Ends a call with the task that the other server has sent. */
export async function passTask(upstream: Upstream, ctx: Context, result: Params): Promise<never> {
  const call = toCall(ctx, "begin a task");
  const { name } = upstream.settings;
  const server = upstream.findTools(call);
  const known = String(result.taskId ?? "").slice(0, MAX_ID);
  let state: TaskState;
  try {
    // An id that is not a text, or is too long, differs from `known`.
    state = readTask({ ...result, result: {} }, known || "none");
  } catch (error) {
    server.report(error);
    const state = `the task of ${name} is invalid; it may have run; check its effect before you repeat it`;
    throw new ToolError(`Cannot finish the request: ${state}`);
  }
  const task = await openTasks(upstream, server).begin(known, ctx);
  passHandle(call, toTypedResult("task", toShown(task, state)));
}

export function openTasks(upstream: Upstream, server: ServerHandle): ForeignTasks {
  return new ForeignTasks(server, new Keeper(upstream, server));
}

class Keeper implements TaskKeeper {
  readonly #upstream: Upstream;
  readonly #server: ServerHandle;

  constructor(upstream: Upstream, server: ServerHandle) {
    this.#upstream = upstream;
    this.#server = server;
  }

  async read(task: ForeignTask, ctx: Context): Promise<ForeignState> {
    let state: TaskState;
    try {
      state = readTask(await this.request("tasks/get", task, ctx), task.known);
    } catch (error) {
      const { code } = Object(error);
      if (code !== INVALID_PARAMS && code !== METHOD_NOT_FOUND) throw error;
      const words = `${this.#upstream.settings.name} has forgotten the task, such as after a restart`;
      return toFailed(task, `${words}; call the tool again if the call can safely be repeated`);
    }
    const { status, result = {}, error } = state;
    try {
      return {
        ...toShown(task, state),
        ...status === "input_required" && { inputRequests: this.#toQuestions(state) },
        ...status === "completed" && { result: toChecked(result) },
        ...status === "failed" && { error: this.#toFailure(error) },
      };
    } catch (error) {
      const { message } = Object(error);
      if (hasEnded(state)) return toFailed(task, message);
      // The task would wait for an answer that nobody gives.
      await this.request("tasks/cancel", task, ctx).catch(this.#server.report);
      return { ...toShown(task, state), status: "cancelled", statusMessage: message };
    }
  }

  #toQuestions({ inputRequests }: TaskState): TaskState["inputRequests"] {
    const { settings, settings: { name } } = this.#upstream;
    const questions = Object.entries(inputRequests).map(([key, { method, params }]) => {
      if (!findNeed(method, params)) throw new Error(`Cannot ask the client: a question of ${name} is invalid`);
      return [key, { method, params: toAsked(settings, method, params) }];
    });
    return Object.fromEntries(questions);
  }

  #toFailure(error: unknown): Params {
    const own = toOwn(error, { method: "tasks/get", params: {} });
    if (!isMcpError(own)) this.#server.report(own);
    const { code, message, data } = isMcpError(own) ? own : McpError.internalError("Internal error");
    return { code, message, ...data !== undefined && { data } };
  }

  async request(method: string, { known }: ForeignTask, ctx: Context, params: Params = {}): Promise<Result> {
    const { id, settings } = this.#upstream;
    const { timeoutMs = LIST_MS } = settings;
    try {
      const scope = await this.#upstream.scopeOf(ctx);
      const sent = { meta: withTasks(toHops(ctx, id), toAllowed(ctx.client.capabilities, settings)), timeoutMs };
      return await scope.request(method, { ...params, taskId: known }, sent, { ctx, isRepeatable: true });
    } catch (error) {
      throw isToolError(error) ? McpError.busy(error.message) : isRemoteError(error) ? toOwn(error, ctx) : error;
    }
  }
}

function toShown(task: ForeignTask, { statusMessage, ...state }: TaskState): Params {
  const text = statusMessage === undefined ? undefined : showInvisible(statusMessage);
  return toFields(task, { ...state, statusMessage: text });
}

/** Returns the result of a tool, as a call would return it. */
function toChecked(result: Result): Result {
  const { value, misfits: [misfit] } = fitResult("tools/call", { content: [], ...withoutReserved(result) });
  if (value && !misfit) return value;
  throw new Error(`Cannot send the result of the task: ${misfit?.place} ${misfit?.state}`);
}
