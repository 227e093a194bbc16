// Tasks as clients see them, over every transport.
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { type Context, createServer, group, McpError, prompt, tool, type ToolReturn } from "../../mod.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking, declared, ID } from "./declared.ts";
import { openServer } from "../support/servers.ts";
import { get, reach } from "./requests.ts";

const modern = { eras: ["modern"] } as const;
const form = z.object({ name: z.string() });

function work(run: (input: { n: number }, ctx: Context) => unknown, options?: TaskOptions) {
  const input = z.object({ n: z.number().default(1) });
  return [
    tasks(),
    tool({
      name: "work",
      input,
      use: [task(options)],
      run: async (given, ctx) => await run(given, ctx) as ToolReturn,
    }),
  ];
}

const start = async (client: Connection, args: object = {}) =>
  await client.request("tools/call", { name: "work", arguments: args }, { finish: false });

/** Returns a result without its `_meta`, which names the server. */
function bare({ _meta, ...result }: Record<string, unknown>): Record<string, unknown> {
  return result;
}

const answer = (name: unknown) => ({ action: "accept", content: { name } });
const endless = (_input: unknown, { signal }: Context) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

behaviour("a call returns a task, and the task's result can be read when the task has completed", async (connect) => {
  const { pass, open } = gate();
  const handlers = work(async ({ n }) => {
    await pass;
    return `done ${n}`;
  }, { ttlMs: 60_000, pollIntervalMs: 250 });
  const { client } = await connect({ handlers }, declared);
  const { resultType, taskId, status, createdAt, lastUpdatedAt, _meta, ...rest } = await start(client, { n: 2 });
  assertEquals([resultType, status, rest], ["task", "working", { ttlMs: 60_000, pollIntervalMs: 250 }]);
  for (const time of [createdAt, lastUpdatedAt]) assertEquals(new Date(String(time)).toISOString(), time);
  const working = await get(client, taskId);
  assertEquals([working.resultType, working.status, "result" in working], ["complete", "working", false]);
  open();
  const { result } = await reach(client, taskId, "completed");
  assertEquals(result, { content: [{ type: "text", text: "done 2" }] });
}, modern);

behaviour(
  "a task asks each of its questions once, and a question stays open after an answer of the wrong shape",
  async (connect) => {
    const handlers = work(async (_input, ctx) => {
      const ask = async (key: string) => (await ctx.elicit(key, { message: key, schema: form })).content?.name;
      return (await Promise.all([ask("a"), ask("b"), ask("a")])).join();
    });
    const { client } = await connect({ handlers }, asking);
    const { taskId } = await start(client);
    await until(
      async () => Object.keys(Object((await get(client, taskId)).inputRequests)).length === 2,
      "both questions",
    );
    const update = (inputResponses: unknown) => client.request("tasks/update", { taskId, inputResponses });
    assertEquals(bare(await update({ a: answer(7), unknown: 1, ["__proto__"]: 2 })), { resultType: "complete" });
    const listOpen = async () => Object.keys(Object((await get(client, taskId)).inputRequests)).sort().join();
    // Poll, because an instance that does not run the task sees a change of the task only after a short delay.
    await until(async () => await listOpen() === "a,b", "both questions are still open");
    await update({ a: answer("Ada") });
    await until(async () => await listOpen() === "b", "one question is open");
    assertEquals((await get(client, taskId)).status, "input_required");
    await update({ a: answer("late"), b: answer("Bo") });
    const { result, ...rest } = await reach(client, taskId, "completed");
    assertEquals(textOf(Object(result)), "Ada,Bo,Ada");
    assertEquals("inputRequests" in rest, false);
  },
  modern,
);

behaviour(
  "middleware can ask questions in the task, and slow middleware does not prevent the task",
  async (connect) => {
    const { pass, open } = gate();
    const handlers = work(() => "done");
    const asks = {
      handlers,
      use: [async (call: Context & { readonly method: string }, next: () => Promise<Record<string, unknown>>) => {
        if (call.method !== "tools/call") return await next();
        await pass;
        await call.elicit("sure", { message: "Sure?", schema: form });
        return await next();
      }],
    };
    const { client } = await connect(asks, asking);
    const { taskId, resultType } = await start(client);
    assertEquals(resultType, "task");
    open();
    await reach(client, taskId, "input_required");
    await client.request("tasks/update", { taskId, inputResponses: { sure: answer("yes") } });
    await reach(client, taskId, "completed");
  },
  modern,
);

behaviour(
  "a task ends with the outcome of its handler: an error result, an error, or an unexpected error",
  async (connect) => {
    const handlers = work(({ n }) => {
      if (n === 1) return { content: [{ type: "text", text: "no" }], isError: true };
      if (n === 2) throw new McpError(-31001, "closed", { at: 1 });
      throw new Error("secret");
    });
    const { client, takeFaults } = await connect({ handlers }, declared);
    const [failing, closed, unexpected] = await Promise.all(
      [1, 2, 3].map(async (n) => (await start(client, { n })).taskId),
    );
    assertEquals(Object((await reach(client, failing, "completed")).result).isError, true);
    const { error, statusMessage } = await reach(client, closed, "failed");
    assertEquals([error, statusMessage], [{ code: -31001, message: "closed", data: { at: 1 } }, "closed"]);
    const { result } = await reach(client, unexpected, "completed");
    const [fault, ...others] = takeFaults();
    assertEquals(textOf(Object(result)), `${sentence()} (${fault.id})`);
    assertEquals(others, []);
  },
  modern,
);

behaviour(
  "only a task's caller can cancel the task, and for any other caller the task does not exist",
  async (connect) => {
    const handlers = work(endless);
    const { client, join } = await connect({ handlers }, { ...declared, principal: { id: "ada" } });
    const { taskId } = await start(client);
    const other = await join({ ...declared, principal: { id: "bob" } });
    const errors: string[] = [];
    for (const id of [taskId, "x".repeat(32), "", "__proto__"]) {
      for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
        const params = { taskId: id, ...method === "tasks/update" && { inputResponses: {} } };
        const { code, message } = await assertRejects(() => other.request(method, params), McpError);
        assertEquals(code, -32602);
        errors.push(message);
      }
    }
    assertEquals(new Set(errors).size, 1, errors.join("\n"));
    assertEquals((await get(client, taskId)).status, "working");
    for (let i = 0; i < 2; i++) {
      assertEquals(bare(await client.request("tasks/cancel", { taskId })), { resultType: "complete" });
    }
    // Poll, because the instance that runs the task sees the cancellation only after a short delay.
    await reach(client, taskId, "cancelled");
  },
  modern,
);

behaviour("a handler's progress messages become the task's status message", async (connect) => {
  const { pass, open } = gate();
  const handlers = work(async (_input, ctx) => {
    ctx.progress(1, { message: "begun" });
    for (let i = 0; i < 1000; i++) ctx.progress(2 + i, { total: 1001 });
    ctx.log.info("dropped");
    await pass;
    return "done";
  });
  const { client } = await connect({ handlers }, declared);
  const { taskId } = await start(client);
  await until(async () => (await get(client, taskId)).statusMessage === "1001 of 1001", "the last report");
  open();
  await reach(client, taskId, "completed");
  assertEquals(client.received, []);
}, modern);

behaviour("subscribers are notified of each state of their own tasks, and of no other tasks", async (connect) => {
  const { pass, open } = gate();
  const handlers = work(async (_input, ctx) => {
    await pass;
    const { content } = await ctx.elicit("name", { message: "Who?", schema: form });
    return `done ${content?.name}`;
  });
  const { client, join } = await connect({ handlers }, { ...asking, principal: { id: "ada" } });
  const { taskId } = await start(client);
  const wanted = { extensions: { taskIds: [String(taskId), "unknown"] } };
  const subscription = await client.subscribe(wanted);
  assertEquals(subscription.granted, { extensions: { taskIds: [taskId] } });
  const bob = await (await join({ ...asking, principal: { id: "bob" } })).subscribe(wanted);
  assertEquals(bob.granted.extensions?.taskIds ?? [], []);
  const plain = await join({ principal: { id: "ada" } });
  assertEquals((await assertRejects(() => plain.subscribe(wanted), McpError)).code, -32021);
  open();
  await until(() => subscription.received.some(({ params }) => params.status === "input_required"), "the question");
  await client.request("tasks/update", { taskId, inputResponses: { name: answer("Ada") } });
  await until(() => subscription.received.some(({ params }) => params.status === "completed"), "the end");
  const last = subscription.received.find(({ params }) => params.status === "completed");
  assertEquals([last?.method, last?.params.taskId], ["notifications/tasks", taskId]);
  assertEquals(textOf(Object(last?.params.result)), "done Ada");
  assert("io.modelcontextprotocol/subscriptionId" in Object(last?.params._meta));
  assertEquals(bob.received, []);
}, modern);

behaviour("with `after`, a quick call returns its result directly, and a slow call becomes a task", async (connect) => {
  const { pass, open } = gate();
  const handlers = work(async ({ n }) => {
    if (n > 1) await pass;
    return `done ${n}`;
  }, { after: 50 });
  const { client } = await connect({ handlers }, declared);
  assertEquals(textOf(await start(client, { n: 1 }) as { content: unknown[] }), "done 1");
  assertEquals((await start(client, { n: "x" })).isError, true);
  const { taskId, resultType } = await start(client, { n: 2 });
  assertEquals(resultType, "task");
  open();
  assertEquals(textOf(Object((await reach(client, taskId, "completed")).result)), "done 2");
}, modern);

behaviour(
  "with `after`, an early question is a round of the call, and a later question is asked by the task",
  async (connect) => {
    const { pass, open } = gate();
    let made = 0;
    const handlers = work(async (_input, ctx) => {
      const ask = async (key: string) => (await ctx.elicit(key, { message: key, schema: form })).content?.name;
      const value = await ctx.once("value", () => ++made);
      const first = await ask("first");
      await pass;
      return `${value} ${first} ${await ask("second")}`;
    }, { after: 20 });
    const { client } = await connect({ handlers }, {
      ...declared,
      onElicit: ({ message }) => ({ action: "accept", content: { name: message } }),
    });
    const { taskId, resultType, ...rest } = await start(client);
    assertEquals([resultType, "requestState" in rest, "inputRequests" in rest], ["task", false, false]);
    open();
    const { inputRequests } = await reach(client, taskId, "input_required");
    assertEquals(Object.keys(Object(inputRequests)), ["second"]);
    await client.request("tasks/update", { taskId, inputResponses: { second: answer("Bo") } });
    assertEquals(textOf(Object((await reach(client, taskId, "completed")).result)), "1 first Bo");
    assertEquals(made, 1);
  },
  modern,
);

behaviour("for clients without the extension, the tool runs as part of the call", async (connect, { era }) => {
  const handlers = work(async (_input, ctx) => {
    await ctx.progress(1);
    return "inline";
  });
  const { client } = await connect({ handlers }, era === "legacy" ? declared : {});
  const reports: number[] = [];
  const result = await client.callTool("work", {}, { onProgress: ({ progress }) => void reports.push(progress) });
  assertEquals([textOf(result), reports], ["inline", [1]]);
  const error = await assertRejects(() => get(client, "1"), McpError);
  assertEquals(error.code, era === "legacy" ? -32601 : -32021);
});

behaviour(
  "with `required`, clients without support for tasks are refused, in a session with an error result",
  async (connect, { era, transport }) => {
    let runs = 0;
    const handlers = work(() => ++runs, { required: true });
    const { client } = await connect({ handlers }, era === "legacy" ? declared : {});
    const expected = sentence("work", ID);
    if (era === "legacy") {
      const result = await client.callTool("work");
      assertEquals([result.isError, textOf(result)], [true, expected]);
    } else {
      const error = await assertRejects(() => client.callTool("work"), McpError);
      assertEquals([error.code, error.message], [-32021, expected]);
      assertEquals(error.data, { requiredCapabilities: { extensions: { [ID]: {} } } });
      if (transport === "http") assertEquals(error.status, 400);
    }
    assertEquals(runs, 0);
  },
);

behaviour("the server declares the extension only to clients of revision 2026-07-28", async (connect, { era }) => {
  const { client } = await connect({ handlers: work(() => "x") });
  const { capabilities } = era === "modern" ? await client.request("server/discover") : client.server;
  assertEquals(Object(capabilities).extensions, era === "modern" ? { [ID]: {} } : undefined);
});

behaviour("operators can list, read and cancel the tasks of all callers", async (connect) => {
  const jobs = tasks();
  const handlers = [
    jobs,
    tool({ name: "work", use: [task()], run: (_input, ctx) => endless({}, ctx) as Promise<never> }),
  ];
  const { client, join } = await connect({ handlers }, { ...declared, principal: { id: "ada" } });
  const bob = await join({ ...declared, principal: { id: "bob" } });
  const ids = [(await start(client)).taskId, (await start(bob)).taskId].map(String);
  const listed = [];
  for await (const info of jobs.list()) listed.push(info);
  assertEquals(
    new Set(listed.map(({ id, owner, tool, status }) => [id, owner, tool, status].join())),
    new Set([
      `${ids[0]},ada,work,working`,
      `${ids[1]},bob,work,working`,
    ]),
  );
  assertEquals((await jobs.get(ids[0]))?.owner, "ada");
  assertEquals(await jobs.get("x".repeat(32)), undefined);
  assertEquals([await jobs.cancel(ids[0]), await jobs.cancel(ids[0]), await jobs.cancel("x")], [true, false, false]);
  assertEquals((await get(client, ids[0])).status, "cancelled");
  assertEquals((await get(bob, ids[1])).status, "working");
}, modern);

Deno.test("a task id never begins with a dash, which a command line reads as an option", async () => {
  const { getRandomValues } = crypto;
  crypto.getRandomValues = (array) => (new Uint8Array(array.buffer).fill(0xfb), array);
  try {
    const server = openServer({ handlers: work(() => "done") });
    await using connection = await connectTest(server, declared);
    const { taskId } = await start(connection);
    assertMatch(String(taskId), /^[a-z][-\w]{31}$/i);
    await reach(connection, taskId, "completed");
  } finally {
    crypto.getRandomValues = getRandomValues;
  }
});

Deno.test("only tools can become tasks, and the error names any other handler of a server or a group", () => {
  const work = tool({ name: "work", run: () => "" });
  const ask = prompt({ name: "ask", run: () => "" });
  const about = { name: "s", version: "1.0.0" };
  const refused = sentence('"ask"', "only a tool");
  createServer({ ...about, handlers: [tasks(), work], use: [task()] });
  assertThrows(() => createServer({ ...about, handlers: [tasks(), work, ask], use: [task()] }), TypeError, refused);
  const asks = prompt({ name: "ask", use: [task()], run: () => "" });
  assertThrows(() => createServer({ ...about, handlers: [tasks(), asks] }), TypeError, refused);
  const both = group("g", [work, ask], { use: [task()] });
  assertThrows(() => createServer({ ...about, handlers: [tasks(), both] }), TypeError, sentence('"g_ask"'));
});

behaviour("creating a server throws if a layer's extension is missing", async (connect) => {
  const [, only] = work(() => "x");
  const error = await assertRejects(async () => await connect({ handlers: [only] }, declared), TypeError);
  assertEquals(error.message, sentence("work", ID));
}, { transports: ["memory"] });

for (
  const [options, message] of [
    [{ after: -1 }, sentence("after", -1)],
    [{ ttlMs: 0 }, sentence("ttlMs", 0)],
    [{ ttlMs: NaN }, sentence("ttlMs", NaN)],
    [{ pollIntervalMs: 1.5 }, sentence("pollIntervalMs", 1.5)],
    [{ version: 1 }, sentence("version")],
    [{ required: "yes" }, sentence("required", "yes")],
    [{ resume: { from: "1" } }, sentence("from", "1")],
    [{ resume: { form: [] } }, sentence("form", "from")],
    [{ resume: null }, sentence("resume")],
    [{ ttl: 1 }, sentence("ttl", "ttlMs")],
    [null, sentence("null")],
  ] as const
) {
  Deno.test(`task(${JSON.stringify(options)}) throws`, () => {
    assertThrows(() => task(options as TaskOptions), TypeError, message);
  });
}
