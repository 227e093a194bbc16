// The official tasks extension, written on published entry points, over every transport and at two instances.
import { readFile } from "node:fs/promises";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, McpError, tool, type ToolReturn } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, until } from "../support/behaviour.ts";
import { createTasks, ID, type TaskOptions } from "./durable_tasks.ts";

const modern = { eras: ["modern"] } as const;
const taskId = "taskId";
const declared = {
  extensions: [clientExtension({
    id: ID,
    subjects: { "tasks/get": taskId, "tasks/update": taskId, "tasks/cancel": taskId },
    results: { task: { schema: z.object({ taskId: z.string() }), finish: () => ({ content: [] }) } },
  })],
};
const form = z.object({ name: z.string() });

type Run = Parameters<typeof tool>[0]["run"];

function toHandlers(run: Run, options?: TaskOptions) {
  const tasks = createTasks();
  return [tasks.extension, tool({ name: "work", extensions: [tasks.attribute(options)], run })];
}

const start = async (client: Connection) => await client.request("tools/call", { name: "work" }, { finish: false });

async function reach(client: Connection, taskId: unknown, status: string) {
  let task = await client.request("tasks/get", { taskId });
  await until(async () => (task = await client.request("tasks/get", { taskId })).status === status, status);
  return task;
}

const answer = (name: unknown) => ({ action: "accept", content: { name } });

behaviour("a task that asks at once gets its answers, each once and of the right shape", async (connect) => {
  const handlers = toHandlers(async (_input, ctx) => {
    const ask = async (key: string) => (await ctx.elicit(key, { message: key, schema: form })).content?.name;
    return (await Promise.all([ask("a"), ask("b"), ask("a")])).join();
  });
  const { client } = await connect({ handlers }, { ...declared, capabilities: { elicitation: {} } });
  const { taskId, resultType, status } = await start(client);
  assertEquals([resultType, status], ["task", "working"]);
  const { inputRequests } = await reach(client, taskId, "input_required");
  assert("a" in Object(inputRequests));
  const update = (inputResponses: unknown) => client.request("tasks/update", { taskId, inputResponses });
  assertEquals((await update({ a: answer(7), unknown: 1 })).resultType, "complete");
  await update({ a: answer("Ada") });
  const open = await client.request("tasks/get", { taskId });
  assertEquals([open.status, Object.keys(Object(open.inputRequests))], ["input_required", ["b"]]);
  await update({ a: answer("late"), b: answer("Bo") });
  const { result, ...rest } = await reach(client, taskId, "completed");
  assertEquals(Object(result).content, [{ type: "text", text: "Ada,Bo,Ada" }]);
  assertEquals("inputRequests" in rest, false);
}, modern);

behaviour("a task fails with the error of its handler, and is cancelled by its caller only", async (connect, way) => {
  const { pass, open } = gate();
  const handlers = toHandlers(async (_input, { signal }) => {
    await Promise.race([pass, new Promise((_, reject) => signal.onabort = () => reject(signal.reason))]);
    throw new McpError(-31001, "closed", { at: 1 });
  });
  const { client, join } = await connect({ handlers }, { ...declared, principal: { id: "ada" } });
  const [failing, cancelled] = [await start(client), await start(client)];
  const other = await join({ ...declared, principal: { id: "bob" } });
  for (const method of ["tasks/get", "tasks/cancel"]) {
    await assertRejects(() => other.request(method, { taskId: cancelled.taskId }), McpError, "Unknown task");
  }
  for (let i = 0; i < 2; i++) await client.request("tasks/cancel", { taskId: cancelled.taskId });
  await reach(client, cancelled.taskId, "cancelled");
  open();
  const { error } = await reach(client, failing.taskId, "failed");
  assertEquals(error, { code: -31001, message: "closed", data: { at: 1 } });
  assert(way);
}, modern);

/** Two instances of one server. */
function startPair(run: Run) {
  const store = memoryStore();
  const servers = [0, 1].map(() => {
    const options = { store, secret: "s".repeat(32), limits: { calls: { closeMs: 5 } } };
    return createServer({ name: "pair", version: "1", handlers: toHandlers(run), ...options });
  });
  return { servers, store };
}

Deno.test("a task that an instance leaves goes on at another one, with its answers and values", async () => {
  const runs: unknown[] = [];
  let made = 0;
  const { pass, open } = gate();
  const { servers } = startPair(async (_input, ctx) => {
    runs.push(ctx.principal?.id);
    const { content } = await ctx.elicit("name", { message: "Who?", schema: form });
    const value = await ctx.once("value", () => ++made);
    const { signal } = ctx;
    await Promise.race([pass, new Promise((_, reject) => signal.onabort = () => reject(signal.reason))]);
    return `${content?.name} ${value}` as ToolReturn;
  });
  for (const server of servers) await server.ready();
  const principal = { id: "ada" };
  const options = { ...declared, capabilities: { elicitation: {} }, principal };
  const [first, second] = await Promise.all(servers.map((server) => connectTest(server, options)));
  const { taskId } = await start(first);
  await reach(second, taskId, "input_required");
  // The answer reaches the instance at which the task runs.
  await second.request("tasks/update", { taskId, inputResponses: { name: answer("Ada") } });
  await reach(second, taskId, "working");
  await until(() => made === 1, "the value");
  await first.close();
  await servers[0].close();
  await until(() => runs.length === 2, "the second run");
  open();
  const { result } = await reach(second, taskId, "completed");
  assertEquals(Object(result).content, [{ type: "text", text: "Ada 1" }]);
  assertEquals([runs, made], [["ada", "ada"], 1]);
  await second.close();
  await servers[1].close();
});

Deno.test("a task is cancelled through another instance than its own, and each instance notifies of it", async () => {
  const { servers } = startPair((_input, { signal }) =>
    new Promise((_, reject) => signal.onabort = () => reject(signal.reason))
  );
  for (const server of servers) await server.ready();
  const [first, second] = await Promise.all(servers.map((server) => connectTest(server, declared)));
  const { taskId } = await start(first);
  const subscription = await second.subscribe({ extensions: { taskIds: [String(taskId)] } });
  await second.request("tasks/cancel", { taskId });
  await reach(second, taskId, "cancelled");
  const [{ method, params }] = await subscription.take(1);
  assertEquals([method, params.taskId, params.status], ["notifications/tasks", taskId, "cancelled"]);
  await subscription.close();
  for (const client of [first, second]) await client.close();
  for (const server of servers) await server.close();
});

Deno.test("the module imports published entry points only, and has fewer than 300 lines", async () => {
  const source = await readFile(new URL("./durable_tasks.ts", import.meta.url), "utf8");
  const imports = [...source.matchAll(/from "([^"]+)"/g)].map(([, name]) => name);
  assertEquals(imports, ["@x/mcp", "@x/mcp/extension", "@x/mcp/stores", "zod"]);
  assert(source.split("\n").length < 300, `${source.split("\n").length}`);
});
