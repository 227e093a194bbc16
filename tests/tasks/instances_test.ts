// Tasks on several instances. Any instance responds to requests about a task, and if a task's instance ends, another
// instance continues the task.
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { type Context, McpError, type Server, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, type Tasks, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, textOf, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { toStoredKey, toStoredLog } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { closeAtEnd } from "../support/running.ts";
import { untilAborted } from "./requests.ts";

const declared = { ...asking, principal: { id: "ada", scopes: ["pay"] } };
const form = z.object({ name: z.string() });
const LEASE_MS = 1500;

type Run = (ctx: Context) => unknown;

/** An instance of a server. */
interface Instance {
  readonly server: Server;
  readonly client: Connection;
  readonly jobs: Tasks;
  /** The store operations so far, except operations for the lease and polling for tasks and changes. */
  readonly operations: string[];
  /** Whether the instance is cut off from the store. */
  isCut: boolean;
  /** If set, runs each store operation. */
  around?: (operation: string, run: () => unknown, value: unknown) => unknown;
  close(): Promise<void>;
}

interface Options {
  readonly options?: TaskOptions;
  readonly principal?: { readonly id: string; readonly scopes?: readonly string[]; readonly expiresAt?: number };
  readonly input?: z.ZodType;
  /** Milliseconds after which a store operation times out and is repeated. */
  readonly timeoutMs?: number;
  readonly leaseMs?: number;
  /** The maximum number of tasks that run concurrently. */
  readonly detached?: number;
  readonly valueBytes?: number;
}

async function startInstance(
  shared: Store,
  run: Run,
  { options, principal, input, timeoutMs = 1000, leaseMs = LEASE_MS, detached = 100, valueBytes }: Options = {},
): Promise<Instance> {
  const instance: Pick<Instance, "isCut" | "operations" | "around"> = { isCut: false, operations: [] };
  const store = customStore(async () => {
    const engine = await shared[INTERNALS].connect();
    return wrapEngine(engine, ({ name, args: [key, value], run }) => {
      if (instance.isCut) throw new Error("no route to the store");
      const isRoutine = ["read", "heads", "list"].includes(name) || /-i-[\w-]{8,16}$|^[\w-]{43}$/.test(String(key));
      if (!isRoutine) instance.operations.push(`${name} ${key}`);
      return instance.around ? instance.around(`${name} ${key}`, run, value) : run();
    });
  }, { leaseMs, pollMs: 20, timeoutMs, ...valueBytes && { valueBytes } });
  const work = tool({
    name: "work",
    input: input ?? z.object({}),
    use: [task(options ?? { resume: true })],
    run: async (_input, ctx) => await run(ctx) as ToolReturn,
  });
  const jobs = tasks();
  const server = openServer({ handlers: [jobs, work], store, limits: { calls: { closeMs: 20, detached } } });
  await server.ready();
  const client = closeAtEnd(await connectTest(server, { ...declared, ...principal && { principal } }));
  return Object.assign(instance, {
    server,
    client,
    jobs,
    async close() {
      await client.close();
      await server.close();
    },
  });
}

const start = async ({ client }: Instance) =>
  String((await client.request("tools/call", { name: "work", arguments: {} }, { finish: false })).taskId);
const get = async ({ client }: Instance, taskId: string) => await client.request("tasks/get", { taskId });
const update = async ({ client }: Instance, taskId: string, inputResponses: object) =>
  await client.request("tasks/update", { taskId, inputResponses });

async function reach(instance: Instance, taskId: string, status: string) {
  let task = await get(instance, taskId);
  await until(async () => (task = await get(instance, taskId)).status === status, `${status}, ${JSON.stringify(task)}`);
  return task;
}

const answer = (name: string) => ({ action: "accept", content: { name } });

/** Creates a handler with three steps and a question between the steps, and a record of the steps. */
function threeSteps() {
  const made: string[] = [];
  const { pass, open } = gate();
  const run = async (ctx: Context) => {
    const first = await ctx.once("first", () => made.push("first"));
    const { content } = await ctx.elicit("name", { message: "Who?", schema: form });
    const second = await ctx.once("second", () => made.push("second"));
    await Promise.race([pass, untilAborted(ctx)]);
    const third = await ctx.once("third", () => made.push("third"));
    return `${content?.name} ${first}${second}${third} ${ctx.principal?.id} ${ctx.principal?.scopes}`;
  };
  return { run, made, open };
}

Deno.test("any instance responds to requests about a task, whichever instance runs the task", async () => {
  const { run, open } = threeSteps();
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  const { inputRequests } = await reach(b, id, "input_required");
  assertEquals(Object.keys(Object(inputRequests)), ["name"]);
  await update(b, id, { name: { action: "accept", content: { name: 7 } }, other: 1 });
  // The instance that runs the handler validates the answer, and opens the question again.
  await reach(b, id, "input_required");
  await update(b, id, { name: answer("Ada") });
  assertEquals((await get(b, id)).status, "working");
  open();
  const { result } = await reach(b, id, "completed");
  assertEquals(textOf(Object(result)), "Ada 123 ada pay");
});

Deno.test("a valid answer is accepted right after an invalid answer, whichever instances get the answers", async () => {
  const wrong = { name: { action: "accept", content: { name: 7 } } };
  for (const places of [["b", "b"], ["a", "b"], ["b", "a"], ["b", "c"]]) {
    const { run, made, open } = threeSteps();
    const shared = memoryStore();
    const names = ["a", "b", "c"];
    const instances = await Promise.all(names.map(() => startInstance(shared, run)));
    const [first, second] = places.map((name) => instances[names.indexOf(name)]);
    const id = await start(instances[0]);
    await reach(instances[0], id, "input_required");
    await update(first, id, wrong);
    await update(second, id, { name: answer("Ada") });
    // The status cannot show that the answer was accepted, because it is also "working" while the wrong answer is
    // checked.
    await until(() => made.includes("second"), "the handler continues");
    // An answer that arrives later changes nothing.
    await update(first, id, { name: answer("Bo") });
    open();
    const { result } = await reach(instances[1], id, "completed");
    assertEquals(textOf(Object(result)), "Ada 123 ada pay", places.join());
    for (const instance of instances) await instance.close();
  }
});

Deno.test("the first valid answer counts, even if the task's instance learns of it only after a further answer", async () => {
  for (const first of ["Ada", 7]) {
    const shared = memoryStore();
    const run: Run = async (ctx) => {
      const ask = async (key: string) => (await ctx.elicit(key, { message: key, schema: form })).content?.name;
      return (await Promise.all([ask("a"), ask("b")])).join();
    };
    const [a, b] = [await startInstance(shared, run), await startInstance(shared, run, { timeoutMs: 60_000 })];
    const id = await start(a);
    await until(async () => Object.keys(Object((await get(b, id)).inputRequests)).length === 2, "both questions");
    // The message of this instance to the task's instance is delayed.
    const { pass, open } = gate();
    b.around = (operation, run) => operation.startsWith("append") ? pass.then(run) : run();
    const updating = update(b, id, { a: { action: "accept", content: { name: first } } });
    await until(async () => Object.keys(Object((await get(b, id)).inputRequests)).join() === "b", "it is answered");
    await update(a, id, { a: answer("late"), b: answer("Bo") });
    const { result } = await reach(a, id, "completed");
    assertEquals(textOf(Object(result)), first === "Ada" ? "Ada,Bo" : "late,Bo");
    open();
    await updating;
  }
});

Deno.test("of two concurrent answers, the handler gets the answer that is stored", async () => {
  for (const places of [["a", "a"], ["a", "b"], ["b", "a"]]) {
    const got: unknown[] = [];
    const shared = memoryStore();
    const run: Run = async (ctx) => {
      got.push((await ctx.elicit("name", { message: "Who?", schema: form })).content?.name);
      await untilAborted(ctx);
    };
    const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
    const id = await start(a);
    await reach(a, id, "input_required");
    const [first, second] = places.map((name) => name === "a" ? a : b);
    await Promise.all([update(first, id, { name: answer("Ada") }), update(second, id, { name: answer("Bo") })]);
    await until(() => got.length === 1, "the answer");
    await a.close();
    await until(() => got.length === 2, "the handler is running again");
    assertEquals(got[1], got[0], places.join());
  }
});

Deno.test("a task is found after its process has ended, even if the store failed when the process registered", async () => {
  const shared = memoryStore();
  const { run, open } = threeSteps();
  const a = await startInstance(shared, run);
  a.around = (operation, run) => {
    if (/^set .*-i-/.test(operation)) throw new Error("no route to the store");
    return run();
  };
  await assertRejects(() => start(a), Error, sentence());
  a.around = undefined;
  const id = await start(a);
  await reach(a, id, "input_required");
  a.isCut = true;
  const b = await startInstance(shared, run);
  await update(b, id, { name: answer("Ada") });
  open();
  await reach(b, id, "completed");
  a.isCut = false;
});

Deno.test("if a task cannot be created, its handler ends and its slot is free", async () => {
  const ended: string[] = [];
  const shared = memoryStore();
  const a = await startInstance(shared, async (ctx) => {
    try {
      return await ctx.once("one", () => "1");
    } catch (error) {
      ended.push(Object(error).message);
      throw error;
    }
  }, { detached: 4 });
  a.around = (operation, run) => {
    if (/^set .*-i-/.test(operation)) throw new Error("no route to the store");
    return run();
  };
  for (let i = 1; i <= 8; i++) {
    await assertRejects(() => start(a), Error, sentence());
    await until(() => ended.length === i, "the handler ends");
  }
  a.around = undefined;
  assertEquals(textOf(Object((await reach(a, await start(a), "completed")).result)), "1");
});

Deno.test("a task is not created twice if the store confirms the write too late", async () => {
  const begun: string[] = [];
  const shared = memoryStore();
  const run = (name: string): Run => async (ctx) => {
    begun.push(name);
    await untilAborted(ctx);
  };
  const a = await startInstance(shared, run("a"));
  a.around = async (operation, run) => {
    const result = await run();
    if (/^set .*-t-/.test(operation)) throw new Error("no route to the store");
    return result;
  };
  await assertRejects(() => start(a), Error, sentence());
  a.around = undefined;
  await until(async () => {
    for await (const { status } of a.jobs.list()) if (status === "working") return false;
    return true;
  }, "the task has ended");
  await a.close();
  const b = await startInstance(shared, run("b"));
  const id = await start(b);
  await b.client.request("tasks/cancel", { taskId: id });
  assertEquals(begun, ["a", "b"]);
});

Deno.test("a task that is too large to be taken over fails, and does not block other tasks", async () => {
  const shared = memoryStore();
  const run: Run = async (ctx) => {
    await untilAborted(ctx);
  };
  const options = { input: z.object({ text: z.string().default("") }), valueBytes: 20_000 };
  const a = await startInstance(shared, run, options);
  const begin = async (text: string) => {
    const call = { name: "work", arguments: { text } };
    return String((await a.client.request("tools/call", call, { finish: false })).taskId);
  };
  // Find the largest task that the store can hold.
  let [fits, no] = [0, 20_000];
  let large = "";
  while (no - fits > 1) {
    const length = Math.floor((fits + no) / 2);
    const id = await begin("x".repeat(length)).catch(() => undefined);
    if (id && large) await a.client.request("tasks/cancel", { taskId: large });
    large = id ?? large;
    if (id) fits = length;
    else no = length;
  }
  const small = [await begin(""), await begin(""), await begin("")];
  await a.close();
  const b = await startInstance(shared, run, options);
  assertEquals((await reach(b, large, "failed")).statusMessage, sentence("20000"));
  await until(
    () => small.every((id) => b.operations.some((each) => /^set /.test(each) && each.endsWith(toStoredKey(id)))),
    "all",
  );
});

Deno.test("if the next process has no free slot for a task, the task continues when a slot is free", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const run: Run = async (ctx) => {
    await Promise.race([pass, untilAborted(ctx)]);
    return "done";
  };
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run, { detached: 4 })];
  const ids = [await start(a), await start(a), await start(b)];
  await a.close();
  const isRefused = (id: string) =>
    b.operations.filter((each) => each.includes(`set `) && each.includes(toStoredKey(id))).length >= 2;
  await until(() => ids.some(isRefused), "a refusal");
  open();
  for (const id of ids) assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "done");
});

Deno.test("a subscription continues after a concurrent change by another instance", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const { pass: step, open: next } = gate();
  const run: Run = async (ctx) => {
    const asked = ctx.elicit("name", { message: "Who?", schema: form });
    await step;
    await ctx.progress(1, { message: "half" });
    await pass;
    return `Hello ${(await asked).content?.name}`;
  };
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  await reach(a, id, "input_required");
  const { received } = await a.client.subscribe({ extensions: { taskIds: [id] } });
  // The notification of the answer is lost, so this instance's next write of the task fails because the version has
  // changed.
  const lost = `append ${await toStoredLog(`c-${id.slice(0, 8)}`)}`;
  b.around = (operation, run) => operation === lost ? Promise.reject(new Error("lost")) : run();
  await update(b, id, { name: answer("Ada") }).catch(() => {});
  b.around = undefined;
  next();
  open();
  await reach(a, id, "completed");
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
});

Deno.test("a task can be cancelled through any instance, and subscribers on each instance are notified", async () => {
  const reasons: unknown[] = [];
  const run: Run = async (ctx) => {
    ctx.signal.addEventListener("abort", () => reasons.push(Object(ctx.signal.reason).message));
    await untilAborted(ctx);
  };
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  const [near, far] = await Promise.all(
    [a, b].map(({ client }) => client.subscribe({ extensions: { taskIds: [id] } })),
  );
  await b.client.request("tasks/cancel", { taskId: id });
  await reach(b, id, "cancelled");
  await until(() => reasons.length === 1, "the handler was cancelled");
  for (const { received } of [near, far]) {
    await until(() => received.some(({ params }) => params.status === "cancelled"), "the notification");
  }
  await reach(a, id, "cancelled");
});

Deno.test("subscribers on one instance are notified of each change on another instance", async () => {
  const { run, open } = threeSteps();
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
  await until(() => received.some(({ params }) => params.status === "input_required"), "the question");
  await update(b, id, { name: answer("Ada") });
  open();
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
  assertEquals(textOf(Object(received.at(-1)?.params.result)), "Ada 123 ada pay");
});

Deno.test("subscriptions to a large task write little to the store, and get the whole task on each instance", async () => {
  const message = "?".repeat(100_000);
  const run: Run = (ctx) => ctx.elicit("name", { message, schema: form });
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  await reach(a, id, "input_required");
  const sizes: number[] = [];
  let announced = 0;
  for (const each of [a, b]) {
    each.around = (operation, run, value) => {
      if (operation.startsWith("append")) sizes.push(String(value).length);
      if (/^append [\w-]{43}$/.test(operation)) announced++;
      return run();
    };
  }
  for (const { client } of [a, b, a, b, a, b]) {
    await using subscription = await client.subscribe({ extensions: { taskIds: [id] } });
    const asked = () => subscription.received.at(-1)?.params.inputRequests;
    await until(() => asked() !== undefined, "the question");
    assertEquals(Object(asked()).name.params.message, message);
  }
  const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
  // The task has not changed, so nothing was announced.
  assertEquals(announced, 0);
  await update(a, id, { name: answer("Ada") });
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
  assert(sizes.length > 0 && sizes.every((size) => size < 2000), `${sizes}`);
});

Deno.test("a server that is closing hands over its tasks, and another server continues them with their values and answers", async () => {
  const { run, made, open } = threeSteps();
  const shared = memoryStore();
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const [asking, answered] = [await start(a), await start(a)];
  for (const id of [asking, answered]) await reach(a, id, "input_required");
  await update(a, answered, { name: answer("Ada") });
  await until(() => made.includes("second"), "the second step");
  await a.close();
  assertEquals((await get(b, asking)).status, "input_required");
  // The handler asks the question again with the same key, and gets the earlier answer.
  await update(b, asking, { name: answer("Bo") });
  await until(
    () => made.filter((step) => step === "second").length === 2,
    "the other handler has reached its second step",
  );
  open();
  const results = await Promise.all([asking, answered].map((id) => reach(b, id, "completed")));
  assertEquals(results.map(({ result }) => textOf(Object(result)).split(" ")[0]), ["Bo", "Ada"]);
  for (const step of ["first", "second", "third"]) assertEquals(made.filter((each) => each === step).length, 2, step);
});

Deno.test("a handler that continues after its server has closed no longer affects its task", async () => {
  const made: string[] = [];
  const errors: string[] = [];
  const { pass, open } = gate();
  const shared = memoryStore();
  const run = (name: string): Run => async (ctx) => {
    await ctx.once("first", () => made.push(`${name} first`));
    // On this instance, the handler ignores its signal.
    if (name === "a") await pass;
    try {
      await ctx.once("second", () => made.push(`${name} second`));
    } catch (error) {
      errors.push(Object(error).message);
      throw error;
    }
    return "done";
  };
  const [a, b] = [await startInstance(shared, run("a")), await startInstance(shared, run("b"))];
  const id = await start(a);
  await until(() => made.length === 1, "the first step");
  await a.close();
  await reach(b, id, "completed");
  open();
  await until(() => errors.length === 1, "the handler of the closed server has ended");
  assertEquals(made, ["a first", "b second"]);
  assertEquals(errors, [sentence()]);
});

Deno.test("a task continues after its only instance has restarted", async () => {
  const { run, made, open } = threeSteps();
  const shared = memoryStore();
  const a = await startInstance(shared, run);
  const id = await start(a);
  await reach(a, id, "input_required");
  await a.close();
  const b = await startInstance(shared, run);
  await update(b, id, { name: answer("Ada") });
  open();
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada 123 ada pay");
  assertEquals(made, ["first", "second", "third"]);
});

Deno.test("an answer that arrives before the handler has asked its question again is kept", async () => {
  for (const place of ["b", "c"]) {
    const { pass, open } = gate();
    let runs = 0;
    const run: Run = async (ctx) => {
      if (++runs > 2) await pass;
      return String((await ctx.elicit("name", { message: "Who?", schema: form })).content?.name);
    };
    const shared = memoryStore();
    const a = await startInstance(shared, run);
    const [valid, invalid] = [await start(a), await start(a)];
    for (const id of [valid, invalid]) await reach(a, id, "input_required");
    await a.close();
    const b = await startInstance(shared, run);
    await until(() => runs === 4, "the other instance runs both handlers again");
    const c = await startInstance(shared, run);
    const answering = place === "b" ? b : c;
    await update(answering, valid, { name: answer("Ada"), other: 1 });
    await update(answering, invalid, { name: { action: "accept", content: { name: 7 } } });
    for (const id of [valid, invalid]) assertEquals((await get(answering, id)).status, "working", place);
    // The second answer changes nothing.
    await update(answering, valid, { name: answer("Bo") });
    open();
    assertEquals(textOf(Object((await reach(b, valid, "completed")).result)), "Ada", place);
    // The handler validates the answer, and opens the question again.
    await reach(b, invalid, "input_required");
    await update(answering, invalid, { name: answer("Bo") });
    assertEquals(textOf(Object((await reach(b, invalid, "completed")).result)), "Bo", place);
    for (const instance of [b, c]) await instance.close();
  }
});

Deno.test("an instance that other instances consider dead writes no further state, and its handler is cancelled", async () => {
  const reasons: string[] = [];
  const { run, made, open } = threeSteps();
  const shared = memoryStore();
  const a = await startInstance(shared, async (ctx) => {
    ctx.signal.addEventListener("abort", () => reasons.push(Object(ctx.signal.reason).message));
    return await run(ctx);
  });
  const b = await startInstance(shared, run);
  const id = await start(a);
  await reach(a, id, "input_required");
  a.isCut = true;
  await update(b, id, { name: answer("Ada") });
  await until(() => made.includes("second"), "the other instance continues the task");
  a.isCut = false;
  open();
  assertEquals(textOf(Object((await reach(b, id, "completed")).result)), "Ada 123 ada pay");
  assertEquals(made, ["first", "second", "third"]);
  await a.close();
  await b.close();
  assertEquals(reasons.length, 1, reasons.join());
});

Deno.test("without `resume`, a task fails within two lease periods after its instance has ended, even if no client polls", async () => {
  const shared = memoryStore();
  const options = { options: {} };
  const [a, b] = [
    await startInstance(shared, untilAborted, options),
    await startInstance(shared, untilAborted, options),
  ];
  const id = await start(a);
  const subscription = await b.client.subscribe({ extensions: { taskIds: [id] } });
  const since = performance.now();
  a.isCut = true;
  await until(() => subscription.received.some(({ params }) => params.status === "failed"), "the failure");
  const leases = (performance.now() - since) / LEASE_MS;
  const { error, statusMessage } = await get(b, id);
  assertEquals(statusMessage, sentence());
  assertEquals(Object(error).code, -32603);
  // The limit is higher, because a loaded machine takes longer.
  assert(leases < 10, `${leases} leases`);
  a.isCut = false;
  let closing = "";
  await until(async () => (closing = await start(a).catch(() => "")) !== "", "the store is available again");
  await a.close();
  assertEquals((await get(b, closing)).statusMessage, sentence());
});

Deno.test("a task is resumed by another version only if that version accepts the task", async () => {
  const versions = [
    [{ resume: true, version: "2" }, z.object({}), true],
    [{ resume: true, version: "1" }, z.object({ more: z.string().optional() }), true],
    [{ version: "1" }, z.object({}), true],
    [{ resume: { from: ["0"] }, version: "2" }, z.object({}), true],
    [{ resume: { from: ["0", "1"] }, version: "2" }, z.object({ more: z.string().optional() }), false],
    [{ resume: true, version: "1" }, z.object({}), false],
  ] as const;
  for (const [options, input, isRefused] of versions) {
    const { run, open } = threeSteps();
    const shared = memoryStore();
    const a = await startInstance(shared, run, { options: { resume: true, version: "1" } });
    const id = await start(a);
    await reach(a, id, "input_required");
    await update(a, id, { name: answer("Ada") });
    await a.close();
    const b = await startInstance(shared, run, { options, input });
    open();
    const { statusMessage } = await reach(b, id, isRefused ? "failed" : "completed");
    if (isRefused) assertEquals(statusMessage, sentence("work"));
  }
});

Deno.test("if a caller's credentials have expired, the caller's task is resumed only if the task's options allow this", async () => {
  for (const afterExpiry of [false, true]) {
    const shared = memoryStore();
    const { pass, open } = gate();
    const run: Run = async (ctx) => {
      await Promise.race([pass, untilAborted(ctx)]);
      return `${ctx.principal?.id} ${ctx.principal?.scopes}`;
    };
    const options = { resume: { afterExpiry } };
    const expiresAt = Date.now() + 2000;
    const a = await startInstance(shared, run, { options, principal: { id: "ada", scopes: ["pay"], expiresAt } });
    const id = await start(a);
    a.isCut = true;
    await until(() => Date.now() > expiresAt, "the credentials expire");
    const b = await startInstance(shared, run, { options, principal: { id: "ada" } });
    open();
    const { statusMessage, result } = await reach(b, id, afterExpiry ? "completed" : "failed");
    if (afterExpiry) assertEquals(textOf(Object(result)), "ada pay");
    else assertEquals(statusMessage, sentence());
    a.isCut = false;
  }
});

Deno.test("values that tasks write to the store are sealed and bound to their task", async () => {
  const { run } = threeSteps();
  const shared = memoryStore();
  const a = await startInstance(shared, run);
  const ids = [await start(a), await start(a)];
  for (const id of ids) await reach(a, id, "input_required");
  const values = await shared.list("", { limit: 1000 });
  const records = ids.map((id) => values.find(({ key }) => key.endsWith(toStoredKey(`t-${id}`))));
  assert(records[0] && records[1]);
  // Compare the words with their quotation marks, because sealed text never contains quotation marks, but could contain
  // the words by chance.
  for (const { value } of values) assertMatch(value, /^[\w-]+$/);
  // A record that is copied to another task's key is not valid there.
  await shared.set(records[1].key, records[0].value, { ttlMs: 60_000 });
  const b = await startInstance(shared, run);
  assertEquals((await get(b, ids[0])).status, "input_required");
  await assertRejects(() => get(b, ids[1]), McpError, sentence());
});

Deno.test("a subscriber is notified of a task that ended before its process learned of the subscriber", async () => {
  const shared = memoryStore();
  const { pass, open } = gate();
  const run: Run = async () => {
    await pass;
    return "done";
  };
  const [a, b] = [await startInstance(shared, run), await startInstance(shared, run)];
  const id = await start(a);
  const { pass: mayTell, open: tell } = gate();
  let isTelling = false;
  const told = `append ${await toStoredLog(`c-${id.slice(0, 8)}`)}`;
  b.around = async (operation, run) => {
    if (operation === told) {
      isTelling = true;
      await mayTell;
    }
    return run();
  };
  const { received } = await b.client.subscribe({ extensions: { taskIds: [id] } });
  await until(() => isTelling, "the message about the subscriber");
  open();
  await reach(a, id, "completed");
  tell();
  await until(() => received.some(({ params }) => params.status === "completed"), "the end");
});

Deno.test("a task takes a limited number of store operations", async () => {
  const { run, made, open } = threeSteps();
  const shared = memoryStore();
  // With these times, no operation is repeated and no instance is considered dead, however slow the machine is.
  const slow = { timeoutMs: 10_000, leaseMs: 60_000 };
  const [a, b] = [await startInstance(shared, run, slow), await startInstance(shared, run, slow)];
  // A process registers with its first task, which therefore takes more operations.
  const first = await start(a);
  await reach(a, first, "input_required");
  const untilDeleted = async (taskId: string) => {
    const deletion = `trim ${await toStoredLog(`j-${taskId}`)}`;
    await until(() => a.operations.includes(deletion), "the deletion of the journal");
  };
  await b.client.request("tasks/cancel", { taskId: first });
  await reach(a, first, "cancelled");
  await untilDeleted(first);
  const counts: Record<string, number> = {};
  const count = async (what: string, run: () => Promise<unknown>) => {
    const before = a.operations.length + b.operations.length;
    await run();
    counts[what] = a.operations.length + b.operations.length - before;
  };
  let id = "";
  await count("create, once and question", async () => {
    made.length = 0;
    id = await start(a);
    await reach(a, id, "input_required");
  });
  await count("poll where it runs", () => get(a, id));
  await count("poll elsewhere", () => get(b, id));
  await count("answer elsewhere, two values and complete", async () => {
    await update(b, id, { name: answer("Ada") });
    open();
    await until(async () => (await get(a, id)).status === "completed", "the end");
    await untilDeleted(id);
  });
  await count("poll where it ran", () => get(a, id));
  await count("cancel elsewhere", async () => {
    const other = await start(a);
    await reach(a, other, "input_required");
    const before = a.operations.length + b.operations.length;
    await b.client.request("tasks/cancel", { taskId: other });
    await untilDeleted(other);
    counts.cancel = a.operations.length + b.operations.length - before;
  });
  delete counts["cancel elsewhere"];
  // The operations of the answer are a read, a write and a notification. Then the task is read and the journal is
  // written twice, the end once, or twice if the answer's notification arrives late, the mark of the end once, and the
  // journal is deleted. A cancellation is a read, two writes, a notification, and the deletion of the journal.
  const { "answer elsewhere, two values and complete": answered, ...exact } = counts;
  assert(answered <= 11, `${answered} operations`);
  assertEquals(exact, {
    "create, once and question": 3,
    "poll where it runs": 0,
    "poll elsewhere": 1,
    "poll where it ran": 0,
    cancel: 5,
  });
});
