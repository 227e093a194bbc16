// A server for tests that can send any task state, including invalid states.
import { extension, type Params, tool } from "../../mod.ts";
import { z } from "zod";

/** A request that the server has received. */
export interface Sent {
  readonly method: string;
  readonly params: Params;
}

export interface Script {
  /** Additional fields for the result that starts the task. */
  readonly handle?: Params;
  /**
   * Returns the task's state for the poll with the number `poll`. If the function throws, the server responds with the
   * error.
   */
  readonly get: (poll: number, sent: readonly Sent[]) => Params | Promise<Params>;
  /** Receives the client's answers. */
  readonly update?: (responses: Params) => void;
  /** Whether the server accepts subscriptions to the task. */
  readonly listens?: boolean;
}

/** Creates a server whose tool `work` becomes the task `t1`. The `inline` tool never becomes a task. */
export function scriptTasks({ handle, get, update, listens }: Script) {
  const sent: Sent[] = [];
  let polls = 0;
  const taskId = z.looseObject({ taskId: z.string() });
  const note = (method: string, params: Params) => void sent.push({ method, params });
  const own = extension({
    id: "io.modelcontextprotocol/tasks",
    methods: {
      "tasks/get": {
        params: taskId,
        subject: "taskId",
        run(params, { client }) {
          note("tasks/get", { ...params, capabilities: Object.keys(client.capabilities) });
          return get(polls++, sent);
        },
      },
      "tasks/update": {
        params: taskId,
        subject: "taskId",
        run(params) {
          note("tasks/update", params);
          update?.(Object(params.inputResponses));
          return {};
        },
      },
      "tasks/cancel": {
        params: taskId,
        subject: "taskId",
        run(params) {
          note("tasks/cancel", params);
          return {};
        },
      },
    },
    listen: {
      taskIds: {
        filter: z.array(z.string()),
        grant(ids) {
          note("listen", { ids });
          return listens ? ids : [];
        },
      },
    },
  });
  const becomesTask = own.layer({
    around: (call, next) => call.declared ? call.result("task", { ...working(), ...handle }) : next(),
  });
  const handlers = [
    own,
    tool({ name: "work", use: [becomesTask], run: () => "without a task" }),
    tool({ name: "inline", run: () => "inline" }),
  ];
  const notify = (params: Params) => own.publish("taskIds", { topic: "t1", method: "notifications/tasks", params });
  return { handlers, sent, notify, count: (method: string) => sent.filter((each) => each.method === method).length };
}

/** Returns the state of the task `t1` while it is running. */
export function working(more: Params = {}): Params {
  const at = "2026-01-01T00:00:00Z";
  const common = { taskId: "t1", createdAt: at, lastUpdatedAt: at, ttlMs: null, pollIntervalMs: 1000 };
  return { ...common, status: "working", ...more };
}

/** Returns the state of the task after its completion with a text result. */
export function completed(text = "done", more: Params = {}): Params {
  return working({ status: "completed", result: { content: [{ type: "text", text }] }, ...more });
}

/**
 * Returns the state of the task while it waits for answers. Each key stands for an elicitation that asks for a name.
 */
export function asking(...keys: string[]): Params {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const ask = (key: string) => ({ method: "elicitation/create", params: { message: `${key}?`, requestedSchema } });
  return working({
    status: "input_required",
    inputRequests: Object.fromEntries(keys.map((key) => [key, ask(key)])),
  });
}
