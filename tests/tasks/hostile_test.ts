// Attacks on tasks by clients, and the expiry of tasks.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, McpError, type Server, type ServerOptions, tool, type ToolReturn } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, type ConnectTestOptions, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { gate, textOf, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "./declared.ts";
import { openServer } from "../support/servers.ts";
import { get, reach, start } from "./requests.ts";

type Run = (input: { readonly text: string }, ctx: Context) => unknown;

function serve(
  run: Run,
  { options, ...rest }: Partial<ServerOptions> & { readonly options?: TaskOptions } = {},
): Server {
  const work = tool({
    name: "work",
    input: z.object({ text: z.string().default("") }),
    use: [task(options)],
    run: async (input, ctx) => await run(input, ctx) as ToolReturn,
  });
  return openServer({ handlers: [tasks(), work], secret: "a secret of at least thirty-two characters", ...rest });
}

const join = (server: Server, id: string, options: ConnectTestOptions = {}) =>
  connectTest(server, { ...asking, principal: { id }, ...options });

const endless: Run = (_input, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

Deno.test("a client that keeps starting tasks is refused, and other clients are not", async () => {
  await using server = serve(({ text }) => text, { limits: { memory: { bytesPerClient: 8_000_000 } } });
  await using mallory = await join(server, "mallory");
  await using ada = await join(server, "ada");
  let begun = 0;
  const error = await assertRejects(async () => {
    for (; begun < 10_000; begun++) await start(mallory, { text: "x".repeat(100_000) });
  }, McpError);
  assertEquals(error.code, -31503);
  assert(begun > 5 && begun < 100, `${begun} tasks`);
  const id = await start(ada, { text: "fine" });
  assertEquals(textOf(Object((await reach(ada, id, "completed")).result)), "fine");
  // Tasks that have already started continue.
});

Deno.test("expired tasks free their memory", async () => {
  const clock = fakeClock();
  await using server = serve(({ text }) => text, {
    clock,
    options: { ttlMs: 60_000 },
    limits: { memory: { bytesPerClient: 8_000_000 } },
  });
  await using ada = await join(server, "ada");
  const fill = async () => {
    const ids: string[] = [];
    await assertRejects(async () => {
      while (ids.length < 10_000) ids.push(await start(ada, { text: "x".repeat(100_000) }));
    }, McpError);
    return ids;
  };
  const [first] = await fill();
  await reach(ada, first, "completed");
  // After half of its lifetime, the task has not expired yet.
  await clock.advance(30_000);
  await assertRejects(() => start(ada, { text: "x".repeat(100_000) }), McpError);
  await clock.advance(31_000);
  await clock.advance(11_000);
  const again = await start(ada);
  await reach(ada, again, "completed");
  await clock.advance(200_000);
  await assertRejects(() => get(ada, first), McpError, sentence());
});

Deno.test("a task that takes longer than its ttlMs fails", async () => {
  const clock = fakeClock();
  await using server = serve(endless, { clock, options: { ttlMs: 60_000 } });
  await using ada = await join(server, "ada");
  const id = await start(ada);
  await clock.advance(60_001);
  const { error, statusMessage } = await reach(ada, id, "failed");
  assertEquals(statusMessage, sentence("ttlMs"));
  assertEquals(Object(error).message, statusMessage);
});

Deno.test("if a result is too large for the store, its task fails with a message", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const store = customStore(connect, { valueBytes: 100_000 });
  await using server = serve(() => "x".repeat(200_000), { store });
  await using ada = await join(server, "ada");
  const { statusMessage } = await reach(ada, await start(ada), "failed");
  assertEquals(statusMessage, sentence("100000", "valueBytes"));
});

Deno.test("values of ctx.once are limited in number and size", async () => {
  const faults: FaultEvent[] = [];
  await using server = serve(async ({ text }, ctx) => {
    if (text === "large") return await ctx.once("a", () => "x".repeat(2_000_000));
    for (let i = 0; i < 1500; i++) await ctx.once(`${i}`, () => i);
  }, { observer: { fault: (fault) => void faults.push(fault) } });
  await using ada = await join(server, "ada");
  const many = await reach(ada, await start(ada), "completed");
  assertEquals(textOf(Object(many.result)), `${sentence()} (${faults[0].id})`);
  const large = await reach(ada, await start(ada, { text: "large" }), "completed");
  assertEquals(textOf(Object(large.result)), `${sentence()} (${faults[1].id})`);
  assertEquals(faults.map(({ error }) => Object(error).message), [
    sentence("ctx.once", "1000"),
    sentence("1048576", "valueBytes"),
  ]);
});

Deno.test("concurrent values of ctx.once are limited in number too", async () => {
  await using server = serve(async (_input, ctx) => {
    const keys = Array.from({ length: 1010 }, (_, i) => `${i}`);
    const all = await Promise.allSettled(keys.map((key) => ctx.once(key, () => key)));
    return `${all.filter(({ status }) => status === "fulfilled").length}`;
  });
  await using ada = await join(server, "ada");
  assertEquals(textOf(Object((await reach(ada, await start(ada), "completed")).result)), "1000");
});

Deno.test("after a progress message that is too large for the store, later messages are stored", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const store = customStore(connect, { valueBytes: 100_000 });
  const { pass, open } = gate();
  await using server = serve(async (_input, ctx) => {
    await ctx.progress(1, { message: "x".repeat(200_000) });
    await ctx.progress(2, { message: "half" });
    await pass;
  }, { store });
  await using ada = await join(server, "ada");
  const id = await start(ada);
  await until(async () => (await get(ada, id)).statusMessage === "half", "the second message");
  open();
});

Deno.test("answers to closed questions, to questions of other tasks, and to unknown questions change nothing", async () => {
  const form = z.object({ name: z.string() });
  await using server = serve(async (_input, ctx) =>
    (await ctx.elicit("name", { message: "Who?", schema: form })).content?.name
  );
  await using ada = await join(server, "ada");
  await using eve = await join(server, "eve");
  const id = await start(ada);
  await reach(ada, id, "input_required");
  const answer = (name: unknown) => ({ action: "accept", content: { name } });
  const update = (client: Connection, inputResponses: unknown) =>
    client.request("tasks/update", { taskId: id, inputResponses });
  await assertRejects(() => update(eve, { name: answer("Eve") }), McpError, sentence());
  for (
    const wrong of [{}, { constructor: 1 }, { name: null }, { name: [] }, { name: answer({}) }, {
      name: { action: "x" },
    }]
  ) {
    await update(ada, wrong);
    assertEquals((await get(ada, id)).status, "input_required", JSON.stringify(wrong));
  }
  for (const wrong of [undefined, null, "text", 7]) {
    const error = await assertRejects(() => update(ada, wrong), McpError);
    assertEquals(error.code, -32602);
  }
  await Promise.all([update(ada, { name: answer("Ada") }), update(ada, { name: answer("Bo") })]);
  const { result } = await reach(ada, id, "completed");
  const said = textOf(Object(result));
  assert(["Ada", "Bo"].includes(said), said);
  await update(ada, { name: answer("late") });
  assertEquals(textOf(Object((await get(ada, id)).result)), said);
});

Deno.test("a client with fewer capabilities gets only the questions that the client can answer", async () => {
  const form = z.object({ name: z.string() });
  await using server = serve(async (_input, ctx) =>
    (await ctx.elicit("name", { message: "Who?", schema: form })).action
  );
  await using ada = await join(server, "ada");
  await using other = await join(server, "ada", { capabilities: {} });
  const id = await start(ada);
  await reach(ada, id, "input_required");
  const { status, inputRequests } = await get(other, id);
  assertEquals([status, inputRequests], ["input_required", {}]);
  await ada.request("tasks/cancel", { taskId: id });
});

Deno.test("if the clock jumps, no task is lost, and no task is kept forever", async () => {
  const clock = fakeClock();
  const { pass, open } = gate();
  await using server = serve(async () => {
    await pass;
    return "done";
  }, { clock, options: { ttlMs: 600_000 } });
  await using ada = await join(server, "ada");
  const id = await start(ada);
  await clock.advance(300_000);
  const later = await start(ada);
  open();
  for (const each of [id, later]) assertEquals((await reach(ada, each, "completed")).status, "completed");
  await clock.advance(400_000);
  await clock.advance(400_000);
  await assertRejects(() => get(ada, id), McpError, sentence());
});

Deno.test("a server that is closing hands over a thousand running tasks", async () => {
  const { connect } = memoryStore()[INTERNALS];
  const limits = testLimits({ calls: { closeMs: 20, detached: 8000 }, memory: { bytesPerClient: 64_000_000 } });
  const { pass, open } = gate();
  const run: Run = async ({ text }, ctx) => {
    await ctx.once("begun", () => text);
    await Promise.race([pass, endless({ text }, ctx)]);
    return text;
  };
  const make = () => serve(run, { store: customStore(connect, { pollMs: 50 }), limits, options: { resume: true } });
  const first = make();
  await using ada = await join(first, "ada");
  const ids: string[] = [];
  for (let i = 0; i < 1000; i++) ids.push(await start(ada, { text: `${i}` }));
  await first.close();
  await using second = make();
  await second.ready();
  await using again = await join(second, "ada");
  open();
  const results = new Set<string>();
  for (const id of ids) results.add(textOf(Object((await reach(again, id, "completed")).result)));
  assertEquals(results.size, 1000);
});

Deno.test("tasks of one concrete path do not exist at another path", async () => {
  const server = openServer({
    path: "/:tenant/mcp",
    store: memoryStore(),
    handlers: [tasks(), tool({ name: "work", use: [task()], run: () => "done" })],
  });
  const at = (path: string) => connectTest(server, { ...asking, path, principal: { id: "ada" }, transport: "http" });
  await using acme = await at("/acme/mcp");
  await using other = await at("/other/mcp");
  const id = await start(acme);
  assertEquals(textOf(Object((await reach(acme, id, "completed")).result)), "done");
  await assertRejects(() => get(other, id), McpError, sentence());
});
