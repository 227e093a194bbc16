// A call through `call_tool` is a task where a direct call is a task, and is refused where a direct call is refused.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, extension, McpError, tool, type ToolReturn } from "../../mod.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { guard, idempotent, quota, retry } from "../../src/layers/layers.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking, declared, ID } from "./declared.ts";
import { openShared } from "./shared_store.ts";
import { openServer } from "../support/servers.ts";
import { reach } from "./requests.ts";

const modern = { eras: ["modern"] } as const;

function work(run: (input: { n: number }, ctx: Context) => unknown, options?: TaskOptions) {
  const input = z.object({ n: z.number().default(1) });
  const made = tool({
    name: "work",
    input,
    use: [task(options)],
    annotations: { readOnlyHint: true },
    run: async (given, ctx) => await run(given, ctx) as ToolReturn,
  });
  return [tasks(), made, toolSearch()];
}

const start = async (client: Connection, args: object = {}, by = "call_tool") =>
  await client.request("tools/call", { name: by, arguments: { name: "work", arguments: args } }, { finish: false });

for (const by of ["call_tool", "call_read_only_tool"]) {
  behaviour(
    `${by} of a tool that runs as a task returns a task, with its journal, questions and progress`,
    async (connect) => {
      const { pass, open } = gate();
      const ends: string[] = [];
      const helper = tool({ name: "helper", run: () => "helped" });
      const handlers = work(async ({ n }, ctx) => {
        assertEquals(ctx.outer, undefined);
        const first = await ctx.once("first", () => `first ${n}`);
        ctx.defer((end) => void ends.push(end));
        await pass;
        await ctx.progress(1, { total: 2, message: "half" });
        const { content } = await ctx.elicit("name", { message: "Name?", schema: z.object({ name: z.string() }) });
        // The call that has passed this call on is over.
        const helped = textOf(await ctx.callTool("helper", {}, { raw: true }) as never);
        return `${first} ${content?.name} ${helped}`;
      }, { required: true });
      const { client, server } = await connect({ handlers: [...handlers, helper] }, asking);
      const { resultType, taskId, status } = await start(client, { n: 2 }, by);
      assertEquals([resultType, status], ["task", "working"]);
      open();
      const { statusMessage } = await reach(client, taskId, "input_required");
      assertEquals(statusMessage, "half");
      await client.request("tasks/update", {
        taskId,
        inputResponses: { name: { action: "accept", content: { name: "Ada" } } },
      });
      const { result } = await reach(client, taskId, "completed");
      assertEquals(textOf(Object(result)), "first 2 Ada helped");
      await until(() => server.stats().detached === 0, "the end of the handler");
    },
    modern,
  );
}

behaviour(
  "call_tool of a tool that runs only as a task is refused like a direct call",
  async (connect, { era, transport }) => {
    let runs = 0;
    const { client } = await connect(
      { handlers: work(() => ++runs, { required: true }) },
      era === "legacy" ? declared : {},
    );
    for (const by of ["call_tool", "call_read_only_tool"]) {
      const expected = sentence("work", ID);
      if (era === "legacy") {
        const result = await client.callTool(by, { name: "work" });
        assertEquals([result.isError, textOf(result)], [true, expected]);
        continue;
      }
      const error = await assertRejects(() => client.callTool(by, { name: "work" }), McpError);
      assertEquals([error.code, error.message], [-32021, expected]);
      assertEquals(error.data, { requiredCapabilities: { extensions: { [ID]: {} } } });
      if (transport === "http") assertEquals(error.status, 400);
    }
    assertEquals(runs, 0);
  },
);

behaviour("a handler that calls call_tool itself waits for the result, as in any inner call", async (connect) => {
  const outer = tool({
    name: "outer",
    run: async (_input, ctx) => textOf(await ctx.callTool("call_tool", { name: "work" }, { raw: true }) as never),
  });
  const seen: unknown[] = [];
  const handlers = work((_input, ctx) => (seen.push(ctx.outer), "inline"), { required: true });
  const { client } = await connect({ handlers: [...handlers, outer] }, declared);
  assertEquals(textOf(await client.callTool("outer")), "inline");
  assertEquals(seen, [{ method: "tools/call", params: { name: "call_tool" } }]);
}, modern);

behaviour("a task around all tools runs the tool that call_tool calls within itself", async (connect) => {
  // The client must not choose what a handler allows only to other handlers.
  const handlers = work((_input, { outer }) => outer ? "trusted" : "done", { required: true });
  const { client } = await connect({ handlers, use: [task({ required: true })] }, declared);
  const { taskId, resultType } = await start(client);
  assertEquals(resultType, "task");
  const { result } = await reach(client, taskId, "completed");
  assertEquals(textOf(Object(result)), "done");
}, modern);

behaviour("layers around all tools do not take the task of call_tool for a result", async (connect) => {
  let runs = 0;
  const { pass, open } = gate();
  const seen: unknown[] = [];
  const handlers = work(async () => {
    runs++;
    await pass;
    return "done";
  });
  const use = [
    guard({ output: [(value: unknown) => void seen.push(value)] }),
    retry({ attempts: 3, unsafe: true }),
    idempotent(() => "one"),
  ];
  const { client } = await connect({ handlers, use }, { ...declared, principal: { id: "ada" } });
  const { taskId, resultType } = await start(client);
  assertEquals([resultType, runs], ["task", 1]);
  assertEquals(JSON.stringify(seen).includes(String(taskId)), false);
  assertEquals((await start(client)).taskId, taskId);
  open();
  assertEquals(textOf(Object((await reach(client, taskId, "completed")).result)), "done");
  assertEquals(runs, 1);
}, modern);

behaviour("a quota around all tools keeps its slot until the handler of a task has ended", async (connect) => {
  const { pass, open } = gate();
  const handlers = work(async () => {
    await pass;
    return "done";
  });
  const other = tool({ name: "other", run: () => "other" });
  const use = [quota({ concurrency: { calls: 1, waiting: 0 } })];
  const { client } = await connect({ handlers: [...handlers, other], use }, declared);
  const { taskId } = await start(client);
  const error = await assertRejects(() => client.callTool("other"), McpError);
  assertEquals(error.code, -31503);
  open();
  await reach(client, taskId, "completed");
  await until(async () => textOf(await client.callTool("other").catch(() => ({ content: [] }))) === "other", "a slot");
}, { ...modern, perInstance: "limits" });

behaviour("an extension that each call must declare cannot be avoided with call_tool", async (connect) => {
  const audit = extension({ id: "org.example/audit" });
  const audited = tool({
    name: "audited",
    use: [audit.layer({ required: true, around: (_call, next) => next() })],
    run: () => "ran",
  });
  const { client } = await connect({ handlers: [audit, audited, toolSearch()] });
  const ask = async (name: string, args = {}) =>
    await client.callTool(name, args).then(textOf, ({ message }) => message);
  const direct = await ask("audited");
  assertEquals(await ask("call_tool", { name: "audited" }), direct);
  assertEquals(direct, sentence("did not declare"));
});

behaviour("a rule of the author for inner calls does not hold for calls through call_tool", async (connect) => {
  const pay = tool({
    name: "pay",
    use: [async (ctx, next) => ctx.outer ? await next() : { content: [{ type: "text", text: "confirm first" }] }],
    run: () => "paid",
  });
  const shop = tool({
    name: "shop",
    run: async (_input, ctx) => textOf(await ctx.callTool("pay", {}, { raw: true }) as never),
  });
  const { client } = await connect({ handlers: [pay, shop, toolSearch()] });
  assertEquals(textOf(await client.callTool("call_tool", { name: "pay" })), "confirm first");
  assertEquals(textOf(await client.callTool("pay")), "confirm first");
  assertEquals(textOf(await client.callTool("shop")), "paid");
  assertEquals(textOf(await client.callTool("call_tool", { name: "shop" })), "paid");
});

Deno.test("another instance continues a task that call_tool has begun, with its inner calls", async () => {
  const store = memoryStore();
  const made: string[] = [];
  const serve = (ends: boolean) => {
    const leaf = tool({
      name: "leaf",
      use: [task({ resume: true })],
      run: (_input, ctx) => ctx.once("leaf", () => (made.push("leaf"), "leaf")),
    });
    const handlers = work(async (_input, ctx) => {
      const first = await ctx.once("first", () => (made.push("first"), "first"));
      const inner = textOf(await ctx.callTool("leaf", {}, { raw: true }) as never);
      if (ends) return `${first} ${inner}`;
      return await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    }, { resume: true });
    return openServer({ handlers: [...handlers, leaf], store: openShared(store), limits: { calls: { closeMs: 20 } } });
  };
  const first = serve(false);
  const client = await connectTest(first, { ...declared, principal: { id: "ada" } });
  const { taskId } = await start(client);
  await until(() => made.length === 2, "both values");
  await client.close();
  await first.close();
  await using second = serve(true);
  await using other = await connectTest(second, { ...declared, principal: { id: "ada" } });
  const { result } = await reach(other, taskId, "completed");
  assertEquals([textOf(Object(result)), made], ["first leaf", ["first", "leaf"]]);
});
