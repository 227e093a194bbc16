// The official tasks extension as a module on published entry points, which a test checks: tasks are records in the
// store of the server, and another instance takes over those of one that closes.
import { type ClientFacts, type Context, extension, McpError, type Params, type Principal, type Result } from "@x/mcp";
import type {
  Attribute,
  Extension,
  ExtensionServer,
  ExtensionStore,
  Redirect,
  RedirectedQuestion,
  WrappedCall,
} from "@x/mcp/extension";
import { memoryStore } from "@x/mcp/stores";
import { z } from "zod";

export const ID = "io.modelcontextprotocol/tasks";
const TTL_MS = 600_000;
const ENDED = ["completed", "cancelled", "failed"];

interface Question {
  readonly method: string;
  readonly params: Params;
}

/** A task in the store. */
interface TaskRecord {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled" | "failed";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly inputRequests: { readonly [key: string]: Question };
  readonly result?: Result;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  /** What another instance needs to go on. */
  readonly call: { readonly params: Params; readonly principal?: Principal; readonly client: ClientFacts };
  readonly instance?: string;
  readonly answers: { readonly [key: string]: unknown };
  readonly made: { readonly [key: string]: unknown };
}

const recorded = z.custom<TaskRecord>((value) => typeof value === "object" && value !== null && "taskId" in value);
const command = z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()).optional() });

export interface TaskOptions {
  readonly required?: boolean;
  /** Milliseconds to run inline before the call becomes a task. With 0, its questions belong to the task too. */
  readonly after?: number;
  readonly timeoutMs?: number;
}

export interface Tasks {
  readonly extension: Extension<"taskIds">;
  readonly attribute: (options?: TaskOptions) => Attribute;
}

/** Creates the extension, and the attribute that makes tasks of calls. */
export function createTasks(): Tasks {
  const instance = crypto.randomUUID();
  const running = new Map<string, RunningTask>();
  let store: ExtensionStore;
  let server: ExtensionServer;
  const toKey = (taskId: string) => `task-${taskId}`;

  async function load(taskId: string) {
    const found = /^[\w-]{1,64}$/.test(taskId) ? await store.get(toKey(taskId)) : undefined;
    return found && { record: recorded.parse(JSON.parse(found.value)), version: found.version };
  }

  // A task of somebody else is unknown.
  async function find(taskId: string, { principal }: Context): Promise<TaskRecord> {
    const found = await load(taskId);
    if (found && found.record.call.principal?.id === principal?.id) return found.record;
    throw McpError.invalidParams("Unknown task");
  }

  /** A task that runs at this instance. Its changes are written one after another. */
  class RunningTask {
    record: TaskRecord;
    #version?: string;
    #writing: Promise<unknown> = Promise.resolve();
    readonly #open = new Map<string, RedirectedQuestion & { readonly answer: (value: unknown) => void }>();
    readonly asked = Promise.withResolvers<void>();
    readonly ended = Promise.withResolvers<void>();
    /** Cancels the handler. */
    cancel: (message: string) => void = () => {};

    constructor(record: TaskRecord, version?: string) {
      this.record = record;
      this.#version = version;
    }

    /** Writes a change. Rejects if another instance has taken the task over. */
    change(to: Partial<TaskRecord>): Promise<void> {
      if (ENDED.includes(this.record.status)) return Promise.resolve();
      const before = this.record.status;
      const record = this.record = { ...this.record, ...to, lastUpdatedAt: new Date().toISOString() };
      const written = this.#writing.then(async () => {
        const version = this.#version ?? null;
        this.#version = await store.set(toKey(record.taskId), JSON.stringify(record), { ttlMs: TTL_MS, version });
        if (this.#version === undefined) throw new Error(`Cannot change task ${record.taskId}: it runs elsewhere`);
        if (record.status === before) return;
        own.publish("taskIds", { topic: record.taskId, method: "notifications/tasks", params: show(record) });
      });
      this.#writing = written.catch(() => {});
      return written;
    }

    async ask(question: RedirectedQuestion): Promise<unknown> {
      const { key, method, params } = question;
      if (key in this.record.answers) return this.record.answers[key];
      const { promise, resolve: answer } = Promise.withResolvers<unknown>();
      this.#open.set(key, { ...question, answer });
      const inputRequests = { ...this.record.inputRequests, [key]: { method, params } };
      this.asked.resolve();
      await this.change({ status: "input_required", inputRequests });
      return await promise;
    }

    /** Gives answers to the questions that they fit. */
    async answer(responses: Params): Promise<void> {
      for (const [key, value] of Object.entries(responses)) {
        const question = this.#open.get(key);
        if (!question || await question.check(value) !== undefined || !this.#open.delete(key)) continue;
        const { [key]: _, ...inputRequests } = this.record.inputRequests;
        const status = this.#open.size ? "input_required" : "working";
        await this.change({ status, inputRequests, answers: { ...this.record.answers, [key]: value } });
        question.answer(value);
      }
    }

    async once(key: string, make: () => unknown): Promise<unknown> {
      if (!(key in this.record.made)) {
        const value: unknown = JSON.parse(JSON.stringify(await make()) ?? "null");
        await this.change({ made: { ...this.record.made, [key]: value } });
      }
      return this.record.made[key];
    }

    readonly redirect: Redirect = {
      progress: (_progress, { message }) => void this.change({ statusMessage: message }).catch(() => {}),
      log() {},
      ask: (question) => this.ask(question),
      once: (key, make) => this.once(key, make),
    };

    /** Writes how the handler has ended. A server that closes leaves the task to another instance. */
    async follow(ending: Promise<Result>): Promise<void> {
      running.set(this.record.taskId, this);
      try {
        const result = await ending;
        await this.change({ status: "completed", result, inputRequests: {} });
      } catch (error) {
        const { code = -32603, message, data, why } = Object(error);
        if (why === "closing") await this.change({ instance: undefined, status: "working", inputRequests: {} });
        else if (why === "extension") await this.change({ status: "cancelled", inputRequests: {} });
        else await this.change({ status: "failed", statusMessage: message, error: { code, message, data } });
        if (why === "closing") await store.publish("orphans", this.record.taskId);
      } finally {
        running.delete(this.record.taskId);
        this.ended.resolve();
      }
    }
  }

  async function takeOver(taskId: string): Promise<void> {
    const found = server.signal.aborted ? undefined : await load(taskId);
    if (!found || found.record.instance !== undefined || ENDED.includes(found.record.status)) return;
    const task = new RunningTask(found.record, found.version);
    // Only one instance succeeds.
    await task.change({ instance });
    const stop = new AbortController();
    task.cancel = (message) => stop.abort(new Error(message));
    const { params, principal, client } = task.record.call;
    const { signal } = stop;
    await task.follow(server.call({ method: "tools/call", params, principal, client, data: task, signal }));
  }

  async function obey(text: string): Promise<void> {
    const { taskId, inputResponses } = command.parse(JSON.parse(text));
    const task = running.get(taskId);
    if (inputResponses) await task?.answer(inputResponses);
    else task?.cancel("The task was cancelled");
  }

  async function send(taskId: string, inputResponses?: Params): Promise<Result> {
    const text = JSON.stringify({ taskId, inputResponses });
    await (running.has(taskId) ? obey(text) : store.publish("commands", text));
    return {};
  }

  const own: Extension<"taskIds"> = extension({
    id: ID,
    methods: {
      "tasks/get": {
        params: z.object({ taskId: z.string() }),
        subject: "taskId",
        run: async ({ taskId }, ctx) => show(await find(taskId, ctx)),
      },
      "tasks/update": {
        params: z.object({ taskId: z.string(), inputResponses: z.record(z.string(), z.unknown()) }),
        subject: "taskId",
        run: async ({ taskId, inputResponses }, ctx) => send((await find(taskId, ctx)).taskId, inputResponses),
      },
      "tasks/cancel": {
        params: z.object({ taskId: z.string() }),
        subject: "taskId",
        run: async ({ taskId }, ctx) => send((await find(taskId, ctx)).taskId),
      },
    },
    listen: {
      taskIds: {
        filter: z.array(z.string()).max(100),
        async grant(ids, ctx) {
          const found = await Promise.all(ids.map((id) => find(id, ctx).then(() => [id], () => [])));
          return found.flat();
        },
      },
    },
    async start(started) {
      server = started;
      store = started.store ?? memoryStore();
      const stops = await Promise.all([
        store.subscribe("commands", (text) => void obey(text).catch(() => {})),
        store.subscribe("orphans", (taskId) => void takeOver(taskId).catch(() => {})),
      ]);
      return async () => {
        stops.forEach((stop) => stop());
        await Promise.all([...running.values()].map(({ ended }) => ended.promise));
      };
    },
  });

  const attribute = ({ required, after = 0, timeoutMs }: TaskOptions = {}) =>
    own.attribute({
      required,
      async wrap(call, next) {
        // Another instance has begun it.
        if (call.internal?.data instanceof RunningTask) return await next(call.internal.data.redirect);
        if (!call.declared) return await next();
        const { params, principal, client } = call.ctx;
        const at = new Date().toISOString();
        const task = new RunningTask({
          ...{ taskId: crypto.randomUUID(), status: "working", createdAt: at, lastUpdatedAt: at, inputRequests: {} },
          ...{ call: { params, principal, client }, instance, answers: {}, made: {} },
        });
        task.cancel = (message) => call.cancel(message);
        let isTask = after === 0;
        const { progress, ask, once } = task.redirect;
        const ending = next({
          progress: (value, options, direct) => isTask ? progress?.(value, options, direct) : void direct(),
          log: (_level, _data, _logger, direct) => void (isTask || direct()),
          ask: (question, direct) => isTask ? ask!(question, direct) : direct(),
          once: (key, make, direct) => isTask ? once!(key, make, direct) : direct(),
        });
        // Input that is not valid, and a result that is there soon, need no task. Questions before it are rounds.
        const begins = isTask ? Promise.race([call.untilRun(), task.asked.promise]) : untilLong(call, after);
        if (!await Promise.race([begins.then(() => true), ending.then(() => false)])) return await ending;
        if (call.isAsking) return await ending;
        call.detach({ timeoutMs });
        isTask = true;
        void task.follow(ending).catch(() => {});
        await task.change({});
        return call.result("task", show({ ...task.record, status: "working", inputRequests: {} }));
      },
    });

  return { extension: own, attribute };
}

async function untilLong(call: WrappedCall, ms: number): Promise<void> {
  await call.untilRun();
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** What clients see of a task. */
function show(
  { taskId, status, statusMessage, createdAt, lastUpdatedAt, inputRequests, result, error }: TaskRecord,
): Params {
  const shown = { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs: TTL_MS, pollIntervalMs: 100 };
  return { ...shown, ...status === "input_required" ? { inputRequests } : {}, result, error };
}
