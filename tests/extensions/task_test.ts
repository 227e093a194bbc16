// A task extension that imports only published entries: over every transport, with clients that declare the extension
// and clients that do not.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { type Context, type Observer, type Result, type ServerOptions, tool, type ToolReturn } from "../../mod.ts";
import { type Connection, connectTest, McpError } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, textOf, turn, until } from "../support/behaviour.ts";
import { LATE_STREAMS, testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { testClient, testServer } from "../support/test_server.ts";
import { createTaskClient, createTasks, ID, type TaskOptions } from "./task_extension.ts";

const modern = { eras: ["modern"] } as const;

/** Creates handlers with one tool whose calls become tasks. */
function setUp(run: Parameters<typeof tool>[0]["run"], options?: TaskOptions) {
  const tasks = createTasks();
  const work = tool({
    name: "work",
    input: z.object({ n: z.number().default(1) }),
    use: [tasks.layer(options)],
    run,
  });
  return { tasks, handlers: [tasks.extension, work] };
}

/** Creates the same handlers, but the tool starts its work only after its call has become a task. */
function setUpTask(run: (input: unknown, ctx: Context) => unknown) {
  let begun = 0;
  const all = setUp(async (input, ctx) => {
    const count = ++begun;
    await until(() => all.tasks.count() >= count, "the task");
    return run(input, ctx) as ToolReturn;
  });
  return all;
}

/** Polls a task until it has reached a state. */
async function reach(client: Connection, taskId: unknown, isReached: (task: Result) => boolean): Promise<void> {
  await until(async () => isReached(await client.request("tasks/get", { taskId })), "the task has reached the state");
}

const declared = { extensions: [createTaskClient()] };

behaviour("a tool returns a handle and continues, and the client resolves to the final result", async (connect) => {
  const { pass, open } = gate();
  const { handlers, tasks } = setUp(async (_input, ctx) => {
    await ctx.progress(1, { message: "half" });
    await pass;
    return "done";
  });
  const { client } = await connect({ handlers }, declared);
  const raw = await client.request("tools/call", { name: "work" }, { finish: false });
  assertEquals(raw.resultType, "task");
  assertEquals(raw.status, "working");
  assertEquals("content" in raw, false);
  const running = await client.request("tasks/get", { taskId: raw.taskId });
  assertEquals([running.resultType, running.status], ["complete", "working"]);
  await until(() => tasks.count() === 1, "the task");
  const calling = client.callTool("work");
  await until(() => tasks.count() === 2, "the second task");
  open();
  assertEquals(textOf(await calling), "done");
  const ended = await client.request("tasks/get", { taskId: raw.taskId });
  assertEquals(ended.status, "completed");
  assertEquals(ended.result, { content: [{ type: "text", text: "done" }] });
  assertEquals(client.received, []);
}, modern);

behaviour("progress of a task becomes the task's status, even without a progress token", async (connect) => {
  const { pass, open } = gate();
  const { handlers } = setUpTask(async (_input, ctx) => {
    await ctx.progress(1, { message: "half" });
    await pass;
  });
  const { client } = await connect({ handlers }, declared);
  const { taskId } = await client.request("tools/call", { name: "work" }, { finish: false });
  await reach(client, taskId, ({ statusMessage }) => statusMessage === "half");
  open();
}, modern);

behaviour("a task asks a question, and continues after an answer of the right shape", async (connect) => {
  const { handlers } = setUpTask(async (_input, ctx) => {
    const { content } = await ctx.elicit("name", { message: "Who?", schema: z.object({ name: z.string() }) });
    return `hello ${content?.name}`;
  });
  const onElicit = () => ({ action: "accept" as const, content: { name: "Ada" } });
  const { client } = await connect({ handlers }, { ...declared, onElicit });
  assertEquals(textOf(await client.callTool("work")), "hello Ada");
  const { taskId } = await client.request("tools/call", { name: "work" }, { finish: false });
  const get = () => client.request("tasks/get", { taskId });
  await reach(client, taskId, ({ status }) => status === "input_required");
  const { inputRequests } = await get();
  assertEquals(Object.keys(Object(inputRequests)), ["name"]);
  const update = (value: unknown) =>
    client.request("tasks/update", { taskId, inputResponses: { name: value, other: 1, __proto__: 2 } });
  await update({ action: "accept", content: { name: 7 } });
  assertEquals((await get()).status, "input_required");
  await update({ action: "accept", content: { name: "Bo" } });
  await reach(client, taskId, ({ status }) => status === "completed");
  assertEquals(Object((await get()).result).content, [{ type: "text", text: "hello Bo" }]);
}, modern);

behaviour(
  "a question before the task exists is a round of the call, and the last round returns the handle",
  async (connect) => {
    let count = () => 0;
    let rounds = 0;
    const { handlers, tasks } = setUp(async (_input, ctx) => {
      const { content } = await ctx.elicit("name", { message: "Who?", schema: z.object({ name: z.string() }) });
      const round = ++rounds;
      await until(() => count() >= round, "the task");
      return `hello ${content?.name}`;
    }, { after: 5 });
    count = tasks.count;
    const onElicit = () => ({ action: "accept" as const, content: { name: "Ada" } });
    const { client } = await connect({ handlers }, { ...declared, onElicit });
    const handle = await client.request("tools/call", { name: "work" }, { finish: false });
    assertEquals([handle.resultType, "requestState" in handle, tasks.count()], ["task", false, 1]);
    assertEquals(textOf(await client.callTool("work")), "hello Ada");
  },
  modern,
);

behaviour("cancelling a task aborts its handler's signal", async (connect) => {
  let reason: unknown;
  const { handlers } = setUp((_input, { signal }) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        reason = signal.reason;
        reject(signal.reason);
      })
    )
  );
  const { client } = await connect({ handlers }, declared);
  const { taskId } = await client.request("tools/call", { name: "work" }, { finish: false });
  for (let i = 0; i < 2; i++) assertEquals((await client.request("tasks/cancel", { taskId })).resultType, "complete");
  assertEquals((await client.request("tasks/get", { taskId })).status, "cancelled");
  assertEquals(Object(reason).message, "The task was cancelled");
}, modern);

behaviour("if a client cancels its call, the extension cancels the task", async (connect) => {
  const { handlers, tasks } = setUp((_input, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  );
  const methods: string[] = [];
  const observer: Observer = { call: ({ method }) => void methods.push(method) };
  const { client } = await connect({ handlers, observer }, declared);
  const stop = new AbortController();
  const calling = client.callTool("work", {}, { signal: stop.signal });
  await until(() => tasks.count() === 1, "the task");
  await until(() => methods.includes("tasks/get"), "the client polls the task");
  stop.abort(new Error("enough"));
  await assertRejects(() => calling, Error, "enough");
}, modern);

behaviour("subscribers get the states of their own tasks, and of no other tasks", async (connect) => {
  const { pass, open } = gate();
  const { handlers } = setUp(async () => {
    await pass;
    return "done";
  });
  const seen: unknown[] = [];
  const { client, join } = await connect({ handlers }, { extensions: [createTaskClient((p) => seen.push(p.status))] });
  const { taskId } = await client.request("tools/call", { name: "work" }, { finish: false });
  await using subscription = await client.subscribe({
    toolsListChanged: true,
    extensions: { taskIds: [taskId, "unknown", "__proto__", taskId] },
  });
  assertEquals(subscription.granted, { toolsListChanged: true, extensions: { taskIds: [taskId, taskId] } });
  const other = await join();
  await assertRejects(() => other.subscribe({ extensions: { taskIds: [taskId] } }), McpError, sentence(ID));
  open();
  const [{ method, params }] = await subscription.take(1);
  assertEquals([method, params.status, params.taskId], ["notifications/tasks", "completed", taskId]);
  assert("io.modelcontextprotocol/subscriptionId" in Object(params._meta));
  assertEquals(seen, ["completed"]);
}, modern);

behaviour("without the extension, the tool runs as part of the call in every era", async (connect, { era }) => {
  const { handlers, tasks } = setUp(async (_input, ctx) => {
    await ctx.progress(1);
    return "inline";
  });
  const { client } = await connect({ handlers }, era === "legacy" ? declared : {});
  const reports: number[] = [];
  const result = await client.callTool("work", {}, { onProgress: ({ progress }) => void reports.push(progress) });
  assertEquals([textOf(result), reports, tasks.count()], ["inline", [1], 0]);
  const error = await assertRejects(() => client.request("tasks/get", { taskId: "1" }), McpError);
  assertEquals(error.code, era === "legacy" ? -32601 : -32021);
  if (era === "modern") assertEquals(error.data, { requiredCapabilities: { extensions: { [ID]: {} } } });
});

behaviour(
  "a tool that requires the extension does not run for clients without the extension",
  async (connect, { era, transport }) => {
    let runs = 0;
    const { handlers } = setUp(() => ++runs, { required: true });
    // In a session, declaring the extension has no effect, because sessions have no extension methods.
    const { client } = await connect({ handlers }, era === "legacy" ? declared : {});
    if (era === "legacy") {
      assertEquals([(await client.callTool("work")).isError, runs], [true, 0]);
      return;
    }
    const error = await assertRejects(() => client.callTool("work"), McpError);
    assertEquals([error.code, runs], [-32021, 0]);
    assertEquals(error.data, { requiredCapabilities: { extensions: { [ID]: {} } } });
    if (transport === "http") assertEquals(error.status, 400);
  },
);

behaviour("invalid input and quick results get a direct response, without a task", async (connect) => {
  const { handlers, tasks } = setUp((input) => `quick ${Object(input).n}`, { after: 1000 });
  const { client } = await connect({ handlers }, declared);
  const wrong = await client.callTool("work", { n: "x" });
  assertEquals([wrong.isError, wrong.resultType], [true, "complete"]);
  assertEquals(textOf(await client.callTool("work", { n: 2 })), "quick 2");
  assertEquals(tasks.count(), 0);
}, modern);

behaviour("a task is visible only to its caller", async (connect, { transport }) => {
  const { handlers } = setUpTask(() => {});
  const { client, join } = await connect({ handlers }, { ...declared, principal: { id: "ada" } });
  const other = await join({ ...declared, principal: { id: "bo" } });
  const { taskId } = await client.request("tools/call", { name: "work" }, { finish: false });
  const error = await assertRejects(() => other.request("tasks/get", { taskId }), McpError);
  const unknown = await assertRejects(() => other.request("tasks/get", { taskId: "1" }), McpError);
  assertEquals([error.code, error.message], [unknown.code, unknown.message]);
  assertEquals((await client.request("tasks/get", { taskId })).resultType, "complete");
  assert(transport);
}, modern);

behaviour("errors and timeouts appear in the state of their task", async (connect) => {
  const tasks = createTasks();
  const fail = tool({
    name: "fail",
    use: [tasks.layer()],
    async run() {
      await until(() => tasks.count() === 1, "the task");
      throw new Error("secret");
    },
  });
  const slow = tool({
    name: "slow",
    use: [tasks.layer({ timeoutMs: 30 })],
    run: () => new Promise(() => {}),
  });
  const { client, takeFaults } = await connect({ handlers: [tasks.extension, fail, slow] }, declared);
  const failed = await client.callTool("fail");
  assertEquals(failed.isError, true);
  const [fault, ...others] = takeFaults();
  assertStringIncludes(textOf(failed), `${sentence()} (${fault.id})`);
  assertEquals(others, []);
  await assertRejects(() => client.callTool("slow"), Error, sentence(30));
}, modern);

Deno.test("a missing Mcp-Name header is refused before a missing capability", async () => {
  const { handlers } = setUp(() => "x");
  await using client = await testClient({ handlers }, { transport: "http" });
  const error = await assertRejects(() => client.request("tasks/get", { taskId: "1" }), McpError);
  assertEquals([error.code, error.status], [-32021, 400]);
  const headers = { "mcp-name": null };
  const missing = await assertRejects(() => client.request("tasks/get", { taskId: "1" }, { headers }), McpError);
  assertEquals([missing.code, missing.status], [-32020, 400]);
  const wrong = { "mcp-name": "2" };
  const other = await assertRejects(() => client.request("tasks/get", { taskId: "1" }, { headers: wrong }), McpError);
  assertEquals(other.code, -32020);
});

/** Creates a server whose tools run until they are aborted. */
function serveEndless(options: Partial<ServerOptions> = {}) {
  const reasons: unknown[] = [];
  const { handlers, tasks } = setUp((_input, { signal }) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason);
        reject(signal.reason);
      })
    )
  );
  const quick = tool({ name: "quick", run: async () => await Promise.resolve("quick") });
  const server = testServer({ handlers: [...handlers, quick], ...options });
  return { server, reasons, tasks };
}

for (const transport of ["memory", "http", "pipe"] as const) {
  Deno.test(`shutting down the server ends its tasks (${transport})`, async () => {
    const { server, reasons } = serveEndless({ limits: { calls: { closeMs: 20 } } });
    const client = await connectTest(server, { ...declared, transport });
    const { resultType } = await client.request("tools/call", { name: "work" }, { finish: false });
    assertEquals(resultType, "task");
    await client.close();
    await turn(10);
    assertEquals(reasons, [], "closing the connection ended a task");
    await server.close();
    assertEquals(reasons.map((reason) => Object(reason).message), [sentence()]);
  });

  Deno.test(`one client can use at most a quarter of the places for handlers that continue after their response (${transport})`, async () => {
    const { server } = serveEndless({
      limits: testLimits({ ...LATE_STREAMS, calls: { detached: 8, runningPerClient: 1, closeMs: 10 } }),
    });
    await using client = await connectTest(server, { ...declared, transport, principal: { id: "ada" } });
    await using other = await connectTest(server, { ...declared, transport, principal: { id: "bo" } });
    const start = (from = client) => from.request("tools/call", { name: "work" }, { finish: false });
    for (let round = 0; round < 3; round++) {
      const started = [await start(), await start()];
      const error = await assertRejects(() => start(), McpError);
      assertEquals([error.code, error.status], [-31503, transport === "pipe" ? undefined : 503]);
      assertEquals(textOf(await client.callTool("quick")), "quick");
      if (!round) assertEquals((await start(other)).resultType, "task");
      for (const { taskId } of started) await client.request("tasks/cancel", { taskId });
    }
    await server.close();
  });
}
