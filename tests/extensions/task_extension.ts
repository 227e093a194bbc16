// A task extension that uses only the public contract. A tool returns a handle, continues in the background, asks
// questions, can be cancelled, and has subscribers. A test checks that this file imports only published entries.
import { type Context, extension, McpError, type Params, type Result } from "@x/mcp";
import type { Extension, RedirectedQuestion, WrappedCall } from "@x/mcp/extension";
import type { Layer } from "@x/mcp/layers";
import { type ClientExtension, clientExtension } from "@x/mcp/client";
import { z } from "zod";

export const ID = "com.example/tasks";

/** A question that is waiting for its answer. */
interface Open extends RedirectedQuestion {
  readonly answer: (value: unknown) => void;
}

interface Task {
  readonly taskId: string;
  readonly owner?: string;
  readonly open: Map<string, Open>;
  readonly cancel: () => void;
  status: "working" | "input_required" | "completed" | "cancelled" | "failed";
  statusMessage?: string;
  result?: Result;
  error?: { readonly code: number; readonly message: string };
}

export interface TaskOptions {
  readonly required?: boolean;
  /** Time in milliseconds after which a running call becomes a task. */
  readonly after?: number;
  readonly timeoutMs?: number;
}

export interface Tasks {
  readonly extension: Extension<"taskIds">;
  readonly layer: (options?: TaskOptions) => Layer;
  /** Returns the number of tasks. */
  readonly count: () => number;
}

/** Creates the extension, and the layer that turns calls into tasks. */
export function createTasks(): Tasks {
  const tasks = new Map<string, Task>();

  // Another caller's task does not exist for this caller.
  function find(taskId: string, { principal }: Context): Task {
    const task = tasks.get(taskId);
    if (task && task.owner === principal?.id) return task;
    throw McpError.invalidParams("Unknown task");
  }

  function show({ taskId, status, statusMessage, open, result, error }: Task): Params {
    const inputRequests = Object.fromEntries([...open].map(([key, { method, params }]) => [key, { method, params }]));
    return { taskId, status, statusMessage, result, error, ...open.size && { inputRequests } };
  }

  const own = extension({
    id: ID,
    settings: { version: 1 },
    methods: {
      "tasks/get": {
        params: z.object({ taskId: z.string() }),
        subject: "taskId",
        run: ({ taskId }, ctx) => show(find(taskId, ctx)),
      },
      "tasks/update": {
        params: z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()) }),
        subject: "taskId",
        async run({ taskId, inputResponses }, ctx) {
          const task = find(taskId, ctx);
          for (const [key, value] of Object.entries(inputResponses)) {
            const question = task.open.get(key);
            if (!question || await question.check(value) !== undefined) continue;
            task.open.delete(key);
            question.answer(value);
          }
          if (!task.open.size && task.status === "input_required") change(task, { status: "working" });
          return {};
        },
      },
      "tasks/cancel": {
        params: z.object({ taskId: z.string() }),
        subject: "taskId",
        run({ taskId }, ctx) {
          find(taskId, ctx).cancel();
          return {};
        },
      },
    },
    listen: {
      taskIds: {
        filter: z.array(z.string()).max(100),
        grant: (ids, { principal }) => ids.filter((id) => tasks.has(id) && tasks.get(id)?.owner === principal?.id),
      },
    },
  });

  function change(task: Task, to: Partial<Task>): void {
    if (task.status === "completed" || task.status === "cancelled" || task.status === "failed") return;
    Object.assign(task, to);
    own.publish("taskIds", { topic: task.taskId, method: "notifications/tasks", params: show(task) });
  }

  function wait(task: Task, question: RedirectedQuestion): Promise<unknown> {
    const { promise, resolve: answer } = Promise.withResolvers<unknown>();
    task.open.set(question.key, { ...question, answer });
    change(task, { status: "input_required" });
    return promise;
  }

  const layer = ({ required, after = 0, timeoutMs }: TaskOptions = {}) =>
    own.layer({
      required,
      list: { [ID]: { after } },
      async around(call, next) {
        if (!call.declared) return await next();
        const state: { task?: Task } = {};
        const ending = next({
          progress: (_progress, { message }, direct) =>
            void (state.task ? change(state.task, { statusMessage: message }) : direct()),
          ask: (question, direct) => state.task ? wait(state.task, question) : direct(),
        });
        // A call with invalid input, or with a quick result, does not need a task. Questions that the handler asks
        // before the task exists are rounds of the call.
        if (!await isLong(call, ending, after) || call.isAsking) return await ending;
        const { principal } = call.ctx;
        const cancel = () => {
          change(started, { status: "cancelled" });
          call.cancel("The task was cancelled");
        };
        const taskId = crypto.randomUUID();
        const started: Task = { taskId, owner: principal?.id, open: new Map(), cancel, status: "working" };
        call.detach({ timeoutMs });
        state.task = started;
        tasks.set(taskId, started);
        ending.then(
          (result) => change(started, { status: "completed", result }),
          ({ code, message }) =>
            call.why && call.why !== "timeout"
              ? change(started, { status: "cancelled" })
              : change(started, { status: "failed", error: { code, message } }),
        );
        return call.result("task", show(started));
      },
    });

  return { extension: own, layer, count: () => tasks.size };
}

/** Returns whether the handler is still running after `ms` milliseconds. */
async function isLong(call: WrappedCall, ending: Promise<Result>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let timer;
  call.untilRun().then(() => timer = setTimeout(() => resolve(true), ms));
  ending.then(() => resolve(false), () => resolve(false));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

/** Creates the client extension, which polls tasks and answers their questions. */
export function createTaskClient(onChange: (params: Params) => void = () => {}): ClientExtension {
  const detailed = z.looseObject({
    status: z.enum(["working", "input_required", "completed", "cancelled", "failed"]),
    inputRequests: z.record(z.string(), z.object({ method: z.string(), params: z.record(z.string(), z.unknown()) }))
      .default({}),
    result: z.record(z.string(), z.unknown()).default({}),
    error: z.object({ code: z.number(), message: z.string() }).optional(),
  });
  return clientExtension({
    id: ID,
    subjects: { "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" },
    results: {
      task: {
        schema: z.object({ taskId: z.string(), status: z.string() }),
        async finish({ taskId }, { request, answer, signal }) {
          while (true) {
            if (signal.aborted) await request("tasks/cancel", { taskId });
            signal.throwIfAborted();
            const { status, inputRequests, result, error } = detailed.parse(await request("tasks/get", { taskId }));
            if (status === "completed") return result;
            if (status === "failed" || status === "cancelled") throw new Error(error?.message ?? status);
            for (const [key, question] of Object.entries(inputRequests)) {
              await request("tasks/update", { taskId, inputResponses: { [key]: await answer(question) } });
            }
            await new Promise((resolve) => setTimeout(resolve, 0));
          }
        },
      },
    },
    notifications: {
      "notifications/tasks": { params: z.looseObject({ taskId: z.string() }), receive: onChange },
    },
  });
}
