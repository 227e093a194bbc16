// A server that sends any state of a task, including states that no server should send.
import { extension, type Params, tool } from "../../mod.ts";
import { z } from "zod";

/** The requests that the server received, in order. */
export interface Sent {
  readonly method: string;
  readonly params: Params;
}

export interface Script {
  /** The fields of the handle. */
  readonly handle?: Params;
  /** The state for each poll, by its number. A thrown error is sent as the response. */
  readonly get: (poll: number, sent: readonly Sent[]) => Params | Promise<Params>;
  /** Called with the answers of the client. */
  readonly update?: (responses: Params) => void;
  /** Whether the server supports subscriptions to changes. */
  readonly listens?: boolean;
}

/** Creates a server whose tool `work` becomes the task `t1`. The tool `inline` never becomes a task. */
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
  const becomesTask = own.attribute({
    wrap: (call, next) => call.declared ? call.result("task", { ...working(), ...handle }) : next(),
  });
  const handlers = [
    own,
    tool({ name: "work", extensions: [becomesTask], run: () => "without a task" }),
    tool({ name: "inline", run: () => "inline" }),
  ];
  const notify = (params: Params) => own.publish("taskIds", { topic: "t1", method: "notifications/tasks", params });
  return { handlers, sent, notify, count: (method: string) => sent.filter((each) => each.method === method).length };
}

/** The state of the task `t1` while it is running. */
export function working(more: Params = {}): Params {
  const at = "2026-01-01T00:00:00Z";
  const common = { taskId: "t1", createdAt: at, lastUpdatedAt: at, ttlMs: null, pollIntervalMs: 1000 };
  return { ...common, status: "working", ...more };
}

/** The state of the task when it is completed with a text. */
export function completed(text = "done", more: Params = {}): Params {
  return working({ status: "completed", result: { content: [{ type: "text", text }] }, ...more });
}

/** Questions for a name, by key. */
export function asking(...keys: string[]): Params {
  const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const ask = (key: string) => ({ method: "elicitation/create", params: { message: `${key}?`, requestedSchema } });
  return working({
    status: "input_required",
    inputRequests: Object.fromEntries(keys.map((key) => [key, ask(key)])),
  });
}
