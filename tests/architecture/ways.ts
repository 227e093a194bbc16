// The ways to reach a handler. A way builds a server with the handler of a site, and reaches the handler once. Before the
// way does what a step must stop, it calls `site.close()`.
import {
  type Context,
  createServer,
  extension,
  type Handler,
  prompt,
  resource,
  resourceProvider,
  type Server,
  type ServerOptions,
  tool,
} from "../../mod.ts";
import { INVALID_PARAMS } from "../../src/core/protocol/errors.ts";
import type { Schema } from "../../src/core/schema/schema.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import type { ServerHandle } from "../../src/extensions/extension.ts";
import type { Layer } from "../../src/layers/layers.ts";
import type { CallEvent, StartEvent } from "../../src/observe/observe.ts";
import type { Observer } from "../../src/server/call/observer.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, type FakeClock, McpError } from "../../src/testing/testing.ts";
import { z } from "zod";
import { FENCE, fence, fenced, gate, until } from "../support/behaviour.ts";
import { type Answer, readAnswer, toRequest } from "../support/requests.ts";
import { openShared } from "../tasks/shared_store.ts";
import { ID as TASKS } from "../tasks/declared.ts";
import type { WayName } from "./way_table.ts";

/** The kind of the handler that a way reaches. */
export type Kind = "tool" | "prompt" | "resource" | "completion" | "provider";

/** What came back from the handler. */
export interface Outcome {
  /** Code of the error. {@linkcode TOOL_ERROR} for a result with `isError`. */
  readonly code?: number;
  readonly text?: string;
}

/** Code of an outcome that is a result with `isError`. */
export const TOOL_ERROR = 0;

/** The options of the handler, which are the same for all kinds, except for the schemas. */
export interface HandlerOptions {
  readonly allow?: (ctx: Context) => boolean | Promise<boolean>;
  readonly scopes?: readonly string[];
  readonly requires?: readonly "elicitation"[];
  readonly use?: readonly Layer[];
  /** For a resource, the schema of the variables. */
  readonly input?: Schema;
  /** Only for a tool. */
  readonly output?: Schema;
}

/** The schema of {@linkcode ARGUMENTS}. */
export const INPUT = z.object({ n: z.string() });

/** The arguments of each call. */
export const ARGUMENTS = { n: "1" };

/** What a step puts around the handler. */
export interface Plan {
  readonly handler?: (site: Site) => HandlerOptions;
  readonly server?: (site: Site) => Partial<ServerOptions>;
  /** What the handler does. */
  readonly run?: (ctx: Context, site: Site) => Promise<string | object | void> | object | void;
  /** Further handlers of the server. */
  readonly others?: (site: Site) => readonly Handler[];
  /** Called when the site closes. */
  readonly onClose?: (site: Site) => void;
  /** Whether `handler` returns other options after the site was closed, so that the handler must be made again. */
  readonly isRemade?: boolean;
  /** Whether the client declares elicitation, and answers each question. */
  readonly isAsking?: boolean;
  /** Whether the site must be closed before the first request that may wait for shared rules. */
  readonly isEarly?: boolean;
  /** The headers of requests. */
  readonly headers?: (site: Site) => Record<string, string>;
  /** The layers of the handler that makes an inner call. */
  readonly outerUse?: (site: Site) => readonly Layer[];
}

export const ADA = { id: "ada", scopes: ["use"] };
const VERSION = { name: "site", version: "1.0.0", secret: "a secret of at least thirty-two characters" };
const ANSWER = { action: "accept", content: { name: "Ada" } } as const;

/** A server with one handler, which a way reaches. */
export class Site implements AsyncDisposable {
  /** Whether the step must stop the handler. */
  isClosed = false;
  /** Number of times that the handler has run, or was shown. */
  ran = 0;
  readonly events: { readonly name: "start" | "call" | "around"; readonly event: StartEvent & Partial<CallEvent> }[] =
    [];
  readonly plan: Plan;
  readonly way: Way;
  /** What the step has noted since the server that runs the handler has started. */
  readonly trace: unknown[] = [];
  /** Number of values that runs of the handler have made, on all instances. */
  made = 0;
  readonly shared: Store = memoryStore();
  /** The clock of the server that runs the handler, if the test advances it. */
  clock?: FakeClock;
  handler!: Handler;
  server!: Server;
  /** Whether the handler waits for its cancellation at its end. */
  holds = false;
  isHeld = false;
  /** Whether the step or the handler waits for something that never happens. */
  hangs = false;
  /** Whether the store does not report which handlers are disabled. */
  isDown = false;
  /** Number of reads of the rules that the store has refused. */
  refusals = 0;
  /** Whether the resource that the handler has read is hidden. */
  isSecret = false;
  /** The task of the call. */
  taskId?: string;
  readonly #closes: boolean;
  readonly #stack = new AsyncDisposableStack();

  /** `closes` states whether `close` has an effect. */
  constructor(way: Way, plan: Plan, { closes }: { readonly closes: boolean }) {
    this.way = way;
    this.plan = plan;
    this.#closes = closes;
  }

  close(): void {
    if (!this.#closes) return;
    const before = this.handler;
    this.isClosed = true;
    this.plan.onClose?.(this);
    if (!this.plan.isRemade) return;
    this.handler = this.make();
    this.server.handlers.remove(before);
    this.server.handlers.add(this.handler);
  }

  /** The handler's function. */
  async run(ctx: Context): Promise<string | object> {
    this.ran++;
    const value = await this.plan.run?.(ctx, this) ?? "done";
    if (this.holds) {
      this.isHeld = true;
      await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    }
    return value;
  }

  make(): Handler {
    const { use = [], ...options }: HandlerOptions = this.plan.handler?.(this) ?? {};
    return MAKE[this.way.kind](this, { ...options, use: [...use, ...this.way.use?.() ?? []] });
  }

  /** Starts a server with the handler. */
  serve(others: readonly Handler[] = [], own: Partial<ServerOptions> = {}): Server {
    const note = (name: "start" | "call") => (event: StartEvent) => void this.events.push({ name, event });
    const around: Observer["around"] = (event, run) => {
      this.events.push({ name: "around", event });
      return run();
    };
    const observer: Observer = { start: note("start"), call: note("call"), around, fault() {}, store() {} };
    const options = this.plan.server?.(this) ?? {};
    this.handler = this.make();
    this.server = createServer({
      ...VERSION,
      handlers: [...others, this.handler, ...this.plan.others?.(this) ?? []],
      observer,
      clock: this.clock,
      ...own,
      ...options,
      limits: { calls: { ...own.limits?.calls, ...options.limits?.calls } },
    });
    const { server } = this;
    this.#stack.defer(() => server.close());
    return server;
  }

  /** Starts another instance, which reaches the handler after work of the first instance. */
  restart(others: readonly Handler[], own: Partial<ServerOptions> = {}): Server {
    this.ran = this.events.length = this.trace.length = 0;
    return this.serve(others, own);
  }

  /** Closes a value before the server. */
  use<T extends AsyncDisposable>(value: T): T {
    return this.#stack.use(value);
  }

  /** Sends a request as a client of revision 2026-07-28, and answers its questions. */
  async send(method: string, params: object = {}, more: SendOptions = {}): Promise<Outcome> {
    const first = await this.post(method, params, more);
    return toOutcome(isQuestion(first) ? await this.post(method, { ...params, ...toAnswers(first) }, more) : first);
  }

  /** Sends a request as a client of revision 2026-07-28. */
  async post(method: string, params: object, { headers, extensions = {} }: SendOptions = {}): Promise<Answer> {
    const elicitation = this.plan.isAsking ? { elicitation: {} } : {};
    const _meta = { "io.modelcontextprotocol/clientCapabilities": { ...elicitation, extensions } };
    const request = toRequest(method, { ...params, _meta }, { ...this.plan.headers?.(this), ...headers });
    return await readAnswer(await this.server.fetch(request, { principal: ADA }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

interface SendOptions {
  readonly headers?: Record<string, string>;
  readonly extensions?: object;
}

const isQuestion = ({ result }: Answer) => result?.resultType === "input_required";

/** The parameters that answer the questions in a result. */
function toAnswers({ result: { inputRequests, requestState } }: Answer): object {
  const inputResponses = Object.fromEntries(Object.keys(Object(inputRequests)).map((key) => [key, ANSWER]));
  return { inputResponses, requestState };
}

function toOutcome({ result, error }: Pick<Answer, "result" | "error">): Outcome {
  if (error) return { code: error.code };
  const { content, contents, messages, completion, isError } = Object(result);
  const text = content?.[0]?.text ?? contents?.[0]?.text ?? messages?.[0]?.content?.text ?? completion?.values[0];
  return isError ? { code: TOOL_ERROR, text } : { text };
}

/** Returns the outcome of a promise that rejects with the error of the handler. */
async function toSettled(running: Promise<unknown>): Promise<Outcome> {
  try {
    const result = await running;
    return toOutcome({ result: Array.isArray(result) ? { contents: result } : result });
  } catch (error) {
    if (error instanceof McpError) return { code: error.code };
    throw error;
  }
}

export const URI = "work://item/1";

const MAKE: Readonly<Record<Kind, (site: Site, options: HandlerOptions) => Handler>> = {
  tool: (site, options) => tool({ name: "work", run: (_input: unknown, ctx: Context) => site.run(ctx), ...options }),
  prompt: (site, options) =>
    prompt({ name: "work", run: async (_input: unknown, ctx: Context) => `${await site.run(ctx)}`, ...options }),
  resource: (site, { input, ...options }) => {
    const read = async (_: unknown, ctx: Context) => `${await site.run(ctx)}`;
    if (!input) return resource({ uri: URI, name: "work", read, ...options });
    return resource({ uri: "work://item/{n}", variables: input, name: "work", read, ...options });
  },
  provider: (site, options) =>
    resourceProvider({ scheme: "work", name: "work", read: async (_, ctx) => `${await site.run(ctx)}`, ...options }),
  completion: (site, { input = INPUT, ...options }) =>
    prompt({
      name: "work",
      input,
      run: () => "",
      complete: { n: async (_value, _others, ctx) => [`${await site.run(ctx)}`] },
      ...options,
    }),
};

/** Milliseconds after which a task ends. */
export const TTL_MS = 60_000;

export const TOOL = { name: "work", arguments: ARGUMENTS };

const COMPLETED = { ref: { type: "ref/prompt", name: "work" }, argument: { name: "n", value: "" } } as const;

/** A way to reach a handler. */
export interface Way {
  readonly kind: Kind;
  /** Reaches the handler once. */
  reach(site: Site): Promise<Outcome>;
  /** The method of the call that reaches the handler. */
  readonly method: string;
  /** Layers that the way needs. They are inside of the layers of the step. */
  readonly use?: () => readonly Layer[];
  /** Whether the way only shows the handler, or checks its rights, and does not run it. */
  readonly isShown?: boolean;
  /** Code of the outcome for a hidden handler. `undefined` if the handler is only missing. */
  readonly hidden?: number;
}

/** Returns a way whose tool `outer` reaches the handler with `call`. */
function within(kind: Kind, method: string, call: (ctx: Context, site: Site) => Promise<unknown>): Way {
  return {
    kind,
    method,
    hidden: INVALID_PARAMS,
    async reach(site) {
      let inner: Outcome | undefined;
      const reach = async (ctx: Context) => {
        if (!site.isClosed) site.close();
        const calling = call(ctx, site);
        // A question must end the outer call, which runs again with the answer.
        if (site.plan.isAsking) await calling;
        inner = await toSettled(calling);
        return { content: [] };
      };
      const outer = tool({
        name: "outer",
        use: site.plan.outerUse?.(site),
        run: (_: unknown, ctx: Context) => reach(ctx),
      });
      // Requests for a method of an extension do not wait for shared rules.
      const byMethod = extension({
        id: "com.example/outer",
        undeclared: true,
        methods: { "outer/call": { run: (_: unknown, ctx: Context) => reach(ctx) } },
      });
      site.serve([outer, byMethod]);
      if (site.plan.isEarly) site.close();
      const outcome = site.plan.isEarly
        ? await site.send("outer/call")
        : await site.send("tools/call", { name: "outer", arguments: {} });
      // The outer call ends first if it times out.
      return inner ?? outcome;
    },
  };
}

/** Returns a way that calls a tool. */
function byCall(reach: Way["reach"], more: Pick<Way, "use"> = {}): Way {
  return { kind: "tool", method: "tools/call", hidden: INVALID_PARAMS, reach, ...more };
}

/** Returns a way that is a request. */
function byRequest(kind: Kind, method: string, params: object): Way {
  return {
    kind,
    method,
    hidden: INVALID_PARAMS,
    async reach(site) {
      site.serve();
      site.close();
      return await site.send(method, params);
    },
  };
}

const declared = { extensions: { [TASKS]: {} } };

/** Starts a task. Returns its id, or the outcome of a call that did not become a task. */
async function startTask(site: Site): Promise<{ readonly taskId: string } | Outcome> {
  const answer = await site.post("tools/call", TOOL, declared);
  site.taskId = answer.result?.taskId;
  return site.taskId === undefined ? toOutcome(answer) : { taskId: site.taskId };
}

/** Answers the questions of a task, and waits until the task has ended. */
async function untilEnded(site: Site, own: ReturnType<typeof tasks>, taskId: string): Promise<Outcome> {
  const isEnded = async () => {
    const { status } = await own.get(taskId) ?? {};
    if (status === "input_required") await answerTask(site, taskId);
    return status === "completed" || status === "failed";
  };
  await until(isEnded, "the end of the task", () => own.get(taskId));
  const { result, error } = await own.get(taskId) ?? {};
  return toOutcome({ result, error });
}

const toNamed = (taskId: string) => ({ ...declared, headers: { "mcp-name": taskId } });

async function answerTask(site: Site, taskId: string): Promise<void> {
  const { result } = await getTask(site, taskId);
  if (result?.status !== "input_required") return;
  const inputResponses = Object.fromEntries(Object.keys(Object(result.inputRequests)).map((key) => [key, ANSWER]));
  await site.post("tasks/update", { taskId, inputResponses }, toNamed(taskId));
}

export async function getTask(site: Site, taskId: string): Promise<Answer> {
  return await site.post("tasks/get", { taskId }, toNamed(taskId));
}

/** Opens a store for one of several instances. */
const shared = (site: Site): Partial<ServerOptions> => ({
  store: openShared(site.shared),
  limits: { calls: { closeMs: 1 } },
});

const taskLayer = () => [task({ resume: true, ttlMs: TTL_MS })];

/** Counts what the caller is shown as a run of the handler. */
function show(site: Site, isShown: boolean): Outcome {
  if (isShown) site.ran++;
  return {};
}

/** Returns a way that lists tools, of which `fillers` precede the tool. */
function byList(fillers: number): Way {
  return {
    kind: "tool",
    method: "tools/list",
    isShown: true,
    async reach(site) {
      const others = Array.from({ length: fillers }, (_, i) => tool({ name: `filler${i}`, run: () => "" }));
      site.serve(others);
      const list = async (params: object) => await site.post("tools/list", params);
      const first = fillers ? await list({}) : undefined;
      site.close();
      if (fillers) {
        // Another instance serves the next page. Closing waits until changed rules are stored.
        await site.server.close();
        site.restart(others);
      }
      const { result, error } = await list({ cursor: first?.result.nextCursor });
      if (error) return { code: error.code };
      return show(site, result.tools.some(({ name }: { readonly name: string }) => name === "work"));
    },
  };
}

/** Subscribes to the resource. */
async function subscribe(site: Site) {
  const client = site.use(await connectTest(site.server, { principal: ADA }));
  return await client.subscribe({ resourceSubscriptions: [URI, FENCE] });
}

export const WAYS: Readonly<Record<WayName, Way>> = {
  tool: byRequest("tool", "tools/call", TOOL),
  prompt: byRequest("prompt", "prompts/get", TOOL),
  resource: byRequest("resource", "resources/read", { uri: URI }),
  session: byCall(async (site) => {
    site.serve();
    if (site.plan.isEarly) site.close();
    const onElicit = () => ANSWER;
    const options = site.plan.isAsking ? { onElicit } : {};
    const client = site.use(
      await connectTest(site.server, { era: "legacy", transport: "http", principal: ADA, ...options }),
    );
    site.close();
    return await toSettled(client.request("tools/call", TOOL));
  }),
  innerCall: within("tool", "tools/call", (ctx) => ctx.callTool("work", ARGUMENTS, { raw: true })),
  innerPrompt: within("prompt", "prompts/get", (ctx) => ctx.getPrompt("work", ARGUMENTS)),
  innerRead: within("resource", "resources/read", (ctx) => ctx.readResource(URI)),
  innerCompletion: within("completion", "completion/complete", async (ctx) => ({
    completion: await ctx.complete(COMPLETED.ref, COMPLETED.argument),
  })),
  innerList: {
    ...within("tool", "tools/list", async (ctx, site) => {
      const tools = await ctx.list("tools");
      show(site, tools.some(({ name }) => name === "work"));
    }),
    isShown: true,
    hidden: undefined,
  },
  relay: {
    kind: "tool",
    method: "tools/call",
    // The tool of the search describes the error for the model.
    hidden: TOOL_ERROR,
    async reach(site) {
      site.serve([toolSearch()]);
      site.close();
      return await site.send("tools/call", { name: "call_tool", arguments: TOOL });
    },
  },
  task: byCall(async (site) => {
    const own = tasks();
    site.serve([own]);
    site.close();
    const started = await startTask(site);
    return "taskId" in started ? await untilEnded(site, own, started.taskId) : started;
  }, { use: taskLayer }),
  takeOver: byCall(async (site) => {
    const { clock } = site;
    site.clock = undefined;
    site.holds = true;
    const first = site.serve([tasks()], shared(site));
    const started = await startTask(site);
    if (!("taskId" in started)) return started;
    await until(async () => {
      if (!site.isHeld) await answerTask(site, started.taskId);
      return site.isHeld;
    }, "the first run");
    site.close();
    await first.close();
    const own = tasks();
    site.clock = clock;
    site.holds = false;
    await site.restart([own], shared(site)).ready();
    return await untilEnded(site, own, started.taskId);
  }, { use: taskLayer }),
  recheck: byCall(async (site) => {
    const { pass, open } = gate();
    let isHeld = false;
    const hold = tool({ name: "hold", run: async () => (isHeld = true, await pass) });
    const server = site.serve([hold], { limits: { calls: { running: 1, runningPerClient: 1 } } });
    const asked = site.plan.isAsking ? await site.post("tools/call", TOOL) : undefined;
    const held = site.post("tools/call", { name: "hold", arguments: {} });
    await until(() => isHeld, "another call holds the slot");
    const waiting = site.send("tools/call", { ...TOOL, ...asked && isQuestion(asked) && toAnswers(asked) });
    await until(() => server.stats().waiting === 1, "the call waits");
    site.close();
    open();
    await held;
    return await waiting;
  }),
  probe: {
    kind: "tool",
    method: "tasks/get",
    isShown: true,
    hidden: INVALID_PARAMS,
    use: taskLayer,
    async reach(site) {
      const own = tasks();
      const { clock } = site;
      site.clock = undefined;
      site.serve([own], shared(site));
      const started = await startTask(site);
      if (!("taskId" in started)) return started;
      await untilEnded(site, own, started.taskId);
      site.close();
      await site.server.close();
      site.clock = clock;
      site.restart([tasks()], shared(site));
      const { result, error } = await getTask(site, started.taskId);
      return error ? { code: error.code } : show(site, result.status === "completed");
    },
  },
  completion: byRequest("completion", "completion/complete", COMPLETED),
  chain: {
    kind: "provider",
    method: "resources/read",
    hidden: INVALID_PARAMS,
    async reach(site) {
      // The first provider of the scheme does not have the resource.
      site.serve([resourceProvider({ scheme: "work", name: "first", read: () => undefined })]);
      site.close();
      return await site.send("resources/read", { uri: URI });
    },
  },
  listen: {
    kind: "resource",
    method: "subscriptions/listen",
    isShown: true,
    async reach(site) {
      site.serve([fenced]);
      site.close();
      const subscribing = subscribe(site);
      const outcome = await toSettled(subscribing.then(() => ({})));
      if (outcome.code !== undefined) return outcome;
      const { granted } = await subscribing;
      return show(site, !!granted.resourceSubscriptions?.includes(URI));
    },
  },
  notification: {
    kind: "resource",
    method: "subscriptions/listen",
    isShown: true,
    async reach(site) {
      site.serve([fenced]);
      const subscription = await subscribe(site);
      site.close();
      site.server.resourceUpdated(URI);
      await fence(site.server, subscription);
      return show(site, subscription.received.some(({ params }) => params.uri === URI));
    },
  },
  list: byList(0),
  page: byList(250),
  extension: byCall(async (site) => {
    let handle: ServerHandle | undefined;
    site.serve([extension({ id: "com.example/own", start: (started) => void (handle = started) })]);
    await site.server.ready();
    site.close();
    const client = { version: "2026-07-28", capabilities: {} };
    const request = { method: "tools/call", params: TOOL, principal: ADA, client };
    return await toSettled(Promise.resolve(handle?.call(request)));
  }),
};
