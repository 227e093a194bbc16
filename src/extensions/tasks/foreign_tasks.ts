/**
 * Tasks that another server keeps. Their ids contain sealed what is known about them, so this server keeps nothing.
 */
import type { ExtensionEvent, ServerHandle } from "../extension.ts";
import { type Context, McpError, type Params } from "../../library.ts";
import { checkTool, type TaskSource, toAnswerable, toUngranted } from "./task_source.ts";

/** Maximum length of an id of the other server, which can contain the ids of several servers. */
export const MAX_ID = 4096;
/** Maximum number of tasks in one subscription, because each of them is requested again and again. */
const MAX_WATCHED = 8;
const MIN_POLL_MS = 1000;
/** Distinguishes the ids from other values that a part of the server has sealed. */
const TASK = "task";

export interface ForeignTask {
  /** The id for callers. */
  readonly id: string;
  /** The id of the other server. */
  readonly known: string;
  /** The name of the tool for callers. */
  readonly tool: string;
  /** Time at which the task began, in milliseconds since 1970. */
  readonly at: number;
}

/** The result of `tasks/get`, with all questions. */
export interface ForeignState extends Params {
  readonly inputRequests?: { readonly [key: string]: { readonly method: string } };
}

/** Sends requests to the other server. Each rejects with the error for the client. */
export interface TaskKeeper {
  /** Returns the state of a task for callers. */
  read(task: ForeignTask, ctx: Context): Promise<ForeignState>;
  /** Sends a request about a task. */
  request(method: string, task: ForeignTask, ctx: Context, params?: Params): Promise<unknown>;
}

export class ForeignTasks implements TaskSource {
  readonly #server: ServerHandle;
  readonly #keeper: TaskKeeper;

  /** The handle seals the ids, so it must belong to the same part of the server on each instance. */
  constructor(server: ServerHandle, keeper: TaskKeeper) {
    this.#server = server;
    this.#keeper = keeper;
  }

  /** Returns a new task, which belongs to the caller of a tool. */
  async begin(known: string, ctx: Context): Promise<ForeignTask> {
    const [tool, at] = [String(ctx.params.name), this.#server.clock.date()];
    return { id: await this.#server.seal([TASK, known, tool, toOwner(ctx), at]), known, tool, at };
  }

  async get(id: string, ctx: Context): Promise<Params | undefined> {
    const task = await this.#open(id, ctx);
    const state = task && await this.#keeper.read(task, ctx);
    const { inputRequests } = state ?? {};
    return inputRequests ? { ...state, inputRequests: toAnswerable(inputRequests, ctx.client.capabilities) } : state;
  }

  async answer(id: string, inputResponses: Params, ctx: Context): Promise<boolean> {
    const task = await this.#open(id, ctx);
    if (task) await this.#keeper.request("tasks/update", task, ctx, { inputResponses });
    return task !== undefined;
  }

  async cancel(id: string, ctx: Context): Promise<boolean> {
    const task = await this.#open(id, ctx);
    if (task) await this.#keeper.request("tasks/cancel", task, ctx);
    return task !== undefined;
  }

  async grant(ids: readonly string[], ctx: Context): Promise<readonly string[]> {
    const granted: string[] = [];
    for (const id of ids) {
      if (granted.length < MAX_WATCHED && await this.#open(id, ctx).catch(toUngranted)) granted.push(id);
    }
    return granted;
  }

  /** Requests the state again and again, because the other server need not notify of changes. */
  async watch(id: string, ctx: Context, publish: (event: ExtensionEvent) => void): Promise<(() => void) | undefined> {
    const task = await this.#unseal(id, ctx);
    if (!task) return;
    let last: string | undefined;
    let isOver = false;
    let stop = () => {};
    const poll = async () => {
      // The next request may succeed.
      const state = await this.#keeper.read(task, ctx).catch(() => undefined);
      const text = state && JSON.stringify(state);
      if (isOver) return;
      if (state && last !== undefined && text !== last) publish(toEvent(task, state));
      last = text ?? last;
      if (ENDED.includes(String(state?.status))) return;
      const ms = Math.max(MIN_POLL_MS, Number(state?.pollIntervalMs ?? 0));
      stop = this.#server.clock.start(() => void poll(), ms, { background: true });
    };
    await poll();
    return () => {
      isOver = true;
      stop();
    };
  }

  async load(id: string, ctx: Context): Promise<ExtensionEvent | undefined> {
    const task = await this.#unseal(id, ctx);
    return task && toEvent(task, await this.#keeper.read(task, ctx));
  }

  /** Returns a task of the caller. Throws if the caller must not use its tool now. */
  async #open(id: string, ctx: Context): Promise<ForeignTask | undefined> {
    const task = await this.#unseal(id, ctx);
    if (task) await checkTool(this.#server, ctx, toToolCall(task));
    return task;
  }

  async #unseal(id: string, ctx: Context): Promise<ForeignTask | undefined> {
    const opened = id.length <= 2 * MAX_ID ? await this.#server.open(id) : undefined;
    const [kind, known, tool, owner, at] = Array.isArray(opened) ? opened : [];
    if (kind === TASK && owner === toOwner(ctx)) return { id, known, tool, at };
  }
}

const ENDED: readonly string[] = ["completed", "failed", "cancelled"];

/** Ids of the connections of callers without a principal. */
const connections = new WeakMap<object, string>();

function toOwner({ caller }: Context): string | null {
  if (typeof caller !== "object") return caller ?? null;
  const id = connections.get(caller) ?? crypto.randomUUID();
  connections.set(caller, id);
  return id;
}

function toToolCall({ tool }: ForeignTask) {
  return { method: "tools/call", params: { name: tool } };
}

function toEvent(task: ForeignTask, params: Params): ExtensionEvent {
  return { topic: task.id, method: "notifications/tasks", params, handler: toToolCall(task) };
}

/** Returns the fields that all results about a task contain. `state` is what the other server knows. */
export function toFields({ id, at }: ForeignTask, state: Params): Params {
  const { status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = state;
  const began = toTime(createdAt, new Date(at).toISOString());
  return {
    taskId: id,
    status,
    ...statusMessage !== undefined && { statusMessage },
    createdAt: began,
    lastUpdatedAt: toTime(lastUpdatedAt, began),
    ttlMs: typeof ttlMs === "number" ? Math.ceil(ttlMs) : null,
    ...typeof pollIntervalMs === "number" && { pollIntervalMs: Math.ceil(pollIntervalMs) },
  };
}

/** Returns the state of a task that has failed, with the reason. */
export function toFailed(task: ForeignTask, message: string): ForeignState {
  const { code } = McpError.internalError(message);
  return { ...toFields(task, { status: "failed", statusMessage: message }), error: { code, message } };
}

function toTime(value: unknown, otherwise: string): string {
  const time = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? otherwise : new Date(time).toISOString();
}
