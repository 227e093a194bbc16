/**
 * Tasks: the server responds to a tool call before the result is available, and the client requests the result later.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { task, tasks } from "@x/mcp/tasks";
 *
 * const report = tool({
 *   name: "report",
 *   use: [task({ after: 2000 })],
 *   async run(_input, ctx) {
 *     await ctx.progress(1, { total: 2, message: "half" });
 *     return "The report";
 *   },
 * });
 * export default createServer({ name: "office", version: "1.0.0", handlers: [tasks(), report] });
 * ```
 *
 * @see ext-tasks specification/draft/tasks
 * @module
 */
import { hashCaller, isForNobody } from "../../server/call/reads.ts";
import { type Context, McpError, type Params, type Result } from "../../library.ts";
import type { Layer } from "../../layers/layers.ts";
import type { Extension, ExtensionEvent, Next, ServerHandle, WrappedCall } from "../extension.ts";
import { type Caller, isTaskId, Jobs } from "./jobs.ts";
import { RunningTask, toFull } from "./running_task.ts";
import { createTaskExtension, ID } from "./task_methods.ts";
import { readTaskOptions, type TaskOptions, type TaskRules } from "./task_options.ts";
import {
  findStoreProblem,
  type TaskFailure,
  type TaskRecord,
  type TaskStatus,
  type TaskWork,
  toDetailed,
  toTask,
  toTimeLeft,
} from "./task_record.ts";
import { addTaskSource, checkTool, type TaskSource, toUngranted } from "./task_source.ts";

export type { ResumeOptions, TaskOptions } from "./task_options.ts";
export type { TaskFailure, TaskStatus } from "./task_record.ts";

/** A task, as operators of the server see it. */
export interface TaskInfo {
  /** Id of the task. */
  readonly id: string;
  /** Name of the tool. */
  readonly tool: string;
  /** Status of the task. */
  readonly status: TaskStatus;
  /** The latest progress message of the handler, or the error message of a failed task. */
  readonly statusMessage?: string;
  /** Id of the caller's principal. `undefined` if the caller has no principal. */
  readonly owner?: string;
  /** Time of creation. */
  readonly createdAt: Date;
  /** Time of the last change. */
  readonly updatedAt: Date;
  /** Milliseconds after its creation for which the server keeps the task. */
  readonly ttlMs: number;
  /** The result of a completed task. */
  readonly result?: Result;
  /** The error of a failed task. */
  readonly error?: TaskFailure;
}

/** The extension that {@linkcode tasks} returns. Its methods are for operators of the server. */
export interface Tasks extends Extension<"taskIds"> {
  /** Returns all tasks in the store, from all instances. Empty before the server has started. */
  list(): AsyncIterable<TaskInfo>;
  /** Returns a task of any caller. Returns `undefined` if the task does not exist or has expired. */
  get(id: string): Promise<TaskInfo | undefined>;
  /** Cancels a task of any caller, on any instance. Returns `false` if the task does not exist or has ended. */
  cancel(id: string): Promise<boolean>;
}

/** The tasks of each server whose extension has started. */
const allJobs = new WeakMap<ServerHandle, Jobs>();

/**
 * Creates the extension that tools with {@linkcode task} need. Create an extension for each server.
 *
 * If the server has a store, tasks are still available after their process has ended, and clients can request them from
 * any instance. Without a store, tasks exist only in memory.
 *
 * @see ext-tasks specification/draft/tasks
 */
export function tasks(): Tasks {
  const started = new Set<Jobs>();
  const announce = (record: TaskRecord) => own.publish("taskIds", toEvent(record));
  const own: Extension<"taskIds"> = createTaskExtension((server) => {
    const jobs = new Jobs(server, announce);
    allJobs.set(server, jobs);
    started.add(jobs);
    const remove = addTaskSource(server, new OwnTasks(jobs));
    return async () => {
      remove();
      started.delete(jobs);
      await jobs.stop();
    };
  }, 0);
  const find = async (id: string) => {
    for (const jobs of started) {
      const record = await jobs.find(id);
      if (record) return { jobs, record };
    }
  };
  return {
    ...own,
    async *list() {
      for (const jobs of started) for await (const record of jobs.list()) yield toInfo(record);
    },
    async get(id) {
      const found = await find(id);
      return found && toInfo(found.record);
    },
    async cancel(id) {
      const found = await find(id);
      return !!found?.record.work && await found.jobs.cancel(id);
    },
  };
}

/**
 * Creates a layer that turns calls to a tool into tasks. Pass the layer in `use` of the tool, a group or a server, and
 * add {@linkcode tasks} to the server's handlers. In sessions, and for clients that do not declare the extension, the
 * handler runs as part of the call.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { task } from "@x/mcp/tasks";
 *
 * const encode = tool({
 *   name: "encode",
 *   use: [task({ ttlMs: 86_400_000, resume: true })],
 *   async run(_input, ctx) {
 *     const id = await ctx.once("job", () => crypto.randomUUID()); // the same when the handler runs again
 *     return `encoded as ${id}`;
 *   },
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function task(options: TaskOptions = {}): Layer {
  const rules = readTaskOptions(options);
  return template.layer({
    around: (call, next) => runTask(call, next, rules),
    verify({ handler: { kind }, has }) {
      if (kind !== "tool") return "only a tool can become a task";
      return has("extension", ID)
        ? undefined
        : "the server has no tasks(); write handlers: [tasks(), …] in createServer";
    },
    warn: ({ run }) => rules.resume && !/\bonce\b/.test(String(run)) ? NO_ONCE : undefined,
  });
}

const NO_ONCE =
  "the task can resume, but the handler does not use ctx.once, so resuming repeats all effects; run each effect " +
  "in ctx.once(key, make), and test the handler with testTask";

/** Only creates layers, so it never starts. */
const template = createTaskExtension(() => {}, 0);

/** The tasks that this server runs. */
class OwnTasks implements TaskSource {
  readonly #jobs: Jobs;

  constructor(jobs: Jobs) {
    this.#jobs = jobs;
  }

  async get(id: string, ctx: Context): Promise<Params | undefined> {
    const record = await this.#jobs.find(id, this.#toChecked(ctx));
    return record && toDetailed(record, ctx.client.capabilities);
  }

  async answer(id: string, responses: Params, ctx: Context): Promise<boolean> {
    const answering = this.#jobs.answer(id, responses, this.#toChecked(ctx));
    return await answering.catch((error) => Promise.reject(toAnswerError(error)));
  }

  // The owner may cancel a task even without the right to call its tool, because this only ends the work.
  async cancel(id: string, ctx: Context): Promise<boolean> {
    return await this.#jobs.cancel(id, this.#toCaller(ctx));
  }

  async grant(ids: readonly string[], ctx: Context): Promise<readonly string[]> {
    const caller = this.#toChecked(ctx);
    const known: string[] = [];
    // Read a few tasks at a time, so that one request does not take the client's whole share of the store.
    for (let at = 0; at < ids.length; at += MAX_READS) {
      const some = ids.slice(at, at + MAX_READS);
      const records = await Promise.all(some.map((id) => this.#jobs.find(id, caller).catch(toUngranted)));
      known.push(...some.filter((_, index) => records[index]));
    }
    return known;
  }

  async watch(id: string, ctx: Context): Promise<(() => void) | undefined> {
    if (!isTaskId(id)) return;
    await this.#jobs.watch(id, this.#toCaller(ctx)).catch(throwUnavailable);
    return () => {};
  }

  async load(id: string, ctx: Context): Promise<ExtensionEvent | undefined> {
    const record = await this.#jobs.load(id, this.#toCaller(ctx)).catch(throwUnavailable);
    return record && toEvent(record);
  }

  #toCaller(ctx: Context): Caller {
    const { store, server } = this.#jobs;
    return { owner: ctx.principal?.id, store: store.by(ctx), keep: (bytes) => server.keep(ctx, bytes) };
  }

  /**
   * Returns the caller, who may use only tasks of the tools that the caller may call now, and of the resources that these
   * tools have read.
   */
  #toChecked(ctx: Context): Caller {
    // Bound: a request has at most 100 task ids.
    const checks = new Map<string, Promise<void>>();
    return {
      ...this.#toCaller(ctx),
      // Repeat no check within a request, because a request to subscribe names many tasks.
      check: async (record) => {
        const key = JSON.stringify([record.tool, record.reads]);
        const checking = checks.get(key) ?? checkTool(this.#jobs.server, ctx, toToolCall(record));
        checks.set(key, checking);
        await checking;
      },
    };
  }
}

function toJobs(server: ServerHandle | undefined): Jobs {
  const jobs = server && allJobs.get(server);
  if (!jobs) throw McpError.internalError("Cannot use tasks: the extension has not started; add tasks() to handlers");
  return jobs;
}

function toEvent(record: TaskRecord) {
  const params = toDetailed(record);
  return { topic: record.id, method: "notifications/tasks", params, handler: toToolCall(record) };
}

function toToolCall({ tool, reads }: TaskRecord) {
  return { method: "tools/call", params: { name: tool }, reads };
}

// The server calls the function again. It reports no error with this code, because the store reports its failures.
function throwUnavailable(): never {
  throw McpError.busy("Cannot read the task: the store has failed; the server tries again");
}

async function runTask(call: WrappedCall, next: Next, rules: TaskRules): Promise<Result> {
  const { internal, declared } = call;
  // Within a task that runs again, inner calls have its data too.
  if (internal?.data instanceof RunningTask && !call.isInner) {
    return await runAgain(call, next, { task: internal.data, rules });
  }
  if (declared) return await begin(call, next, rules);
  // An inner call runs to its end, because its handler waits for its result.
  return rules.required && !call.isInner ? refuse(call) : await next();
}

function refuse({ handler, hasSession }: WrappedCall): Result {
  const remedy = `it runs only as a task; use a client that declares the extension ${ID}`;
  const text = `Cannot call ${handler.name}: ${remedy}`;
  // In a session, no client can declare the extension. Return a result instead of an error, because the model can read
  // the result and explain it to the user.
  if (hasSession) return { content: [{ type: "text", text }], isError: true };
  throw McpError.missingCapability(text, { requiredCapabilities: { extensions: { [ID]: {} } } });
}

/** Runs the handler of a call that can become a task. */
async function begin(call: WrappedCall, next: Next, rules: TaskRules): Promise<Result> {
  const jobs = toJobs(call.server);
  const record = await toRecord(call, rules, jobs);
  const store = jobs.store.by(call.ctx);
  const task = new RunningTask({ host: jobs, store, record, version: null }, { isTask: rules.after === 0 });
  await attach(task, call);
  const { clock } = jobs.server;
  const late = Promise.withResolvers<void>();
  const stop = clock.start(late.resolve, rules.after || SLOW_MS);
  let hasRun = false;
  const running = call.untilRun().then(() => void (hasRun = true));
  const ending = next(task.redirect);
  // A call does not become a task if its input is invalid, or if it ends within `after`.
  const ended = ending.then(() => {}, () => {}).then(() => !rules.after && hasRun);
  const isDue = rules.after ? late.promise : Promise.race([running, task.asked, late.promise]);
  const isTask = await Promise.race([isDue.then(() => true), ended]);
  stop();
  if (!isTask || call.isAsking || cannotShare(call, jobs)) return await ending;
  return await detach(call, task, { ending, jobs });
}

/**
 * Tests whether no request could get the task, because output guards have checked it for a caller that cannot be
 * compared with other callers.
 */
function cannotShare({ handler: { name }, reads }: WrappedCall, jobs: Jobs): boolean {
  if (!isForNobody(reads)) return false;
  jobs.reportOnce(
    name,
    `Cannot make tasks of the tool ${JSON.stringify(name)}: it has output guards, and the caller's principal is not ` +
      "plain JSON data, so no request could get the task; return a principal of plain JSON data",
  );
  return true;
}

function toAnswerError(error: unknown): unknown {
  if (isFull(error)) return McpError.busy("Cannot store the answers: the store is full; try again later");
  if (!(error instanceof RangeError)) return error;
  return McpError.invalidParams("Cannot store the answers: they are too large for the store; send shorter answers");
}

/** Tests whether a store has rejected a value because of its total size. */
function isFull(error: unknown): boolean {
  return error instanceof RangeError && Reflect.get(error, "isFull") === true;
}

interface Detaching {
  readonly ending: Promise<Result>;
  readonly jobs: Jobs;
}

/** Returns the new task as the result of the call. Cancels the handler if the task cannot begin. */
async function detach(call: WrappedCall, task: RunningTask, { ending, jobs }: Detaching): Promise<Result> {
  task.cancelHandler = (message) => call.cancel(message);
  task.hasRun = true;
  try {
    if (!task.charge(call.keep)) throw toFull();
    call.detach({ timeoutMs: toTimeLeft(task.record, jobs.server.clock.date()) });
    await jobs.begin(task).catch((cause) => {
      if (cause instanceof McpError) throw cause;
      const state = isFull(cause)
        ? "the store is full; try again later"
        : cause instanceof RangeError
        ? "it is too large for the store; send shorter arguments"
        : "the store has failed; try again";
      throw McpError.busy(`Cannot begin a task: ${state}`);
    });
  } catch (error) {
    task.abandon(error);
    call.cancel("Cannot continue the handler: the task could not begin");
    throw error;
  }
  const { record } = task;
  void task.follow(ending);
  return call.result("task", toTask(record, "working"));
}

interface Again {
  readonly task: RunningTask;
  readonly rules: TaskRules;
}

async function runAgain(call: WrappedCall, next: Next, { task, rules }: Again): Promise<Result> {
  const { work } = task.record;
  const jobs = toJobs(call.server);
  const isKnown = work && (await toHash(call, rules) === work.hash || rules.resume?.from.includes(work.version));
  if (!rules.resume || !isKnown) {
    throw McpError.internalError(
      `Cannot resume the task: ${call.handler.name} has changed since the task began; call the tool again if the call can safely be repeated`,
    );
  }
  await task.load(jobs.store.by(call.ctx), call.keep).catch((error) => {
    // The client can read the reason. It is no unexpected error of the server.
    throw McpError.internalError(error.message);
  });
  task.hasRun = true;
  await attach(task, call);
  return await next(task.redirect);
}

/** Connects a task to the call in which its handler will run. */
async function attach(task: RunningTask, call: WrappedCall): Promise<void> {
  task.toReads = () => call.reads;
  task.caller = await hashCaller(call.ctx.principal);
}

async function toRecord(call: WrappedCall, rules: TaskRules, jobs: Jobs): Promise<TaskRecord> {
  const { ctx, handler } = call;
  const { name, arguments: given, _meta } = ctx.params;
  const { ttlMs, pollIntervalMs, version, resume } = rules;
  const now = jobs.server.clock.date();
  const resumable = await toResumable(call, rules, jobs);
  return {
    id: jobs.makeId(),
    tool: handler.name,
    status: "working",
    createdAt: now,
    updatedAt: now,
    ttlMs,
    pollIntervalMs,
    owner: ctx.principal?.id,
    by: jobs.store.lease.id,
    crew: jobs.prefix,
    run: 1,
    mark: resumable.canResume && jobs.store.isShared ? crypto.randomUUID() : undefined,
    work: {
      params: { name, arguments: given, _meta },
      ...resumable,
      client: ctx.client,
      hash: await toHash(call, rules),
      version,
      afterExpiry: resume?.afterExpiry === true,
      made: [],
      questions: {},
      answers: {},
    },
  };
}

/** Returns what a further run needs to have the same caller. */
async function toResumable(
  { ctx, handler, hasAllScopes, account, sealAttached }: WrappedCall,
  { resume }: TaskRules,
  jobs: Jobs,
): Promise<Pick<TaskWork, "canResume" | "caller" | "attached" | "hasAllScopes" | "account" | "session">> {
  // Without a shared store, the task ends with its process.
  if (!resume || !jobs.store.isShared) return { canResume: resume !== undefined };
  const { principal: caller } = ctx;
  const attached = await sealAttached();
  const problem = caller && findStoreProblem(caller, attached);
  if (problem === undefined) {
    return { canResume: true, caller, attached, hasAllScopes, account, session: readSession(ctx) };
  }
  jobs.reportOnce(
    handler.name,
    `Cannot resume tasks of the tool ${
      JSON.stringify(handler.name)
    }: the caller's principal cannot be stored: ${problem}; ` +
      "return a principal of plain JSON data, and load other data in the handler",
  );
  return { canResume: false };
}

// A further run has no HTTP request from which the server's `sessionData` function could compute the value.
function readSession(ctx: Context): readonly [unknown?] | undefined {
  try {
    const value = ctx.session();
    return value === undefined ? [] : [value];
  } catch {
    // The handler gets the same error when it reads the value.
  }
}

const hashes = new WeakMap<object, Promise<string>>();

function toHash({ handler: { name, inputSchema, outputSchema }, handler }: WrappedCall, { version }: TaskRules) {
  const known = hashes.get(handler);
  if (known) return known;
  const bytes = new TextEncoder().encode(JSON.stringify([name, inputSchema, outputSchema, version]));
  const hash = crypto.subtle.digest("SHA-256", bytes).then((digest) => new Uint8Array(digest).join("-"));
  hashes.set(handler, hash);
  return hash;
}

function toInfo(record: TaskRecord): TaskInfo {
  const { id, tool, status, statusMessage, owner, createdAt, updatedAt, ttlMs, result, error } = record;
  const times = { createdAt: new Date(createdAt), updatedAt: new Date(updatedAt), ttlMs };
  return { id, tool, status, statusMessage, owner, ...times, result, error };
}

/** Number of tasks that a request to subscribe reads at the same time. */
const MAX_READS = 4;

/** Milliseconds after which a call becomes a task, even if middleware has not called the handler yet. */
const SLOW_MS = 100;
