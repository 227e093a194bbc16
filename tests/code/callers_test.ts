// Each call of a program is a call of its caller, as a direct call.
import { assert, assertEquals } from "@std/assert";
import { createServer, group, McpError, tool } from "../../mod.ts";
import { audit } from "../../src/observe/observe.ts";
import { confirm, guard, idempotent, quota, retry } from "../../src/layers/layers.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { run, valueOf } from "./programs.ts";

void audit;
void retry;
void McpError;
const isAda = ({ principal }: { readonly principal?: { readonly id: string } }) => principal?.id === "ada";

behaviour("a program finds and calls only the tools of its caller", async (connect) => {
  const wipe = tool({ name: "wipe_disk", annotations: { readOnlyHint: true }, allow: isAda, run: () => "wiped" });
  const { client, join } = await connect({ handlers: [wipe, codeMode()] }, { principal: { id: "ada" } });
  const eve = await join({ principal: { id: "eve" } });
  const code = "return await tools.wipe_disk()";
  assertEquals(await run(client, code), ["wiped"]);
  const [hidden] = await run(eve, code);
  const [unknown] = await run(eve, code.replace("wipe_disk", "wipe_desk"));
  assertEquals(hidden.replace("wipe_disk", ""), unknown.replace("wipe_desk", ""));
  assertEquals(hidden, sentence("!", "wipe_disk"));
  const { content: [found] } = await eve.callTool("search_api", { query: "wipe disk" });
  assert(found.type === "text" && !found.text.includes("wipe_disk()"));
});

behaviour("a program needs the scopes of the tools that it calls", async (connect) => {
  const pay = tool({ name: "pay", scopes: ["pay"], run: () => "paid" });
  const { client, join } = await connect({ handlers: [pay, codeMode()] }, {
    principal: { id: "ada", scopes: ["pay"] },
  });
  const eve = await join({ principal: { id: "eve", scopes: ["read"] } });
  assertEquals(await run(client, "return await tools.pay()"), ["paid"]);
  assertEquals((await run(eve, "return await tools.pay()"))[0].startsWith("!"), true);
  assertEquals(await valueOf(eve, "try { await tools.pay() } catch ({ code }) { return [typeof code] }"), ["number"]);
});

behaviour("each call of a program counts towards rates, also of the server", async (connect) => {
  const limit = quota({ rate: { calls: 3, perMs: 3_600_000 } });
  let calls = 0;
  const add = tool({ name: "add", run: () => `${++calls}` });
  const { client } = await connect({ handlers: [add, codeMode()], use: [limit] });
  // The run counts too.
  const code = "const out = []; for (let i = 0; i < 4; i++) try { out.push(await tools.add()) } catch ({ code }) { " +
    "out.push(code) } return out";
  assertEquals(await valueOf(client, code), ["1", "2", -31429, -31429]);
  assertEquals(calls, 2);
}, { perInstance: "limits" });

behaviour("calls of a program need slots of the called tool, and none twice", async (connect) => {
  const most = { running: 0, most: 0 };
  const slow = tool({
    name: "slow",
    use: [quota({ concurrency: 1 })],
    run: async () => {
      most.most = Math.max(most.most, ++most.running);
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve));
      most.running--;
      return "done";
    },
  });
  const { client } = await connect({ handlers: [slow, codeMode()], use: [quota({ concurrency: 1 })] });
  const code = "return await Promise.all([1, 2, 3].map(() => tools.slow()))";
  assertEquals(await valueOf(client, code), ["done", "done", "done"]);
  assertEquals(most.most, 1);
}, { perInstance: "limits" });

behaviour("layers, guards and keys work as in direct calls", async (connect) => {
  let runs = 0;
  const pay = tool({
    name: "pay",
    input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
    use: [idempotent((input) => String(Object(input).order)), guard({ output: [(value: unknown) => redact(value)] })],
    run: ({ order }) => `${order} secret ${++runs}`,
  });
  const { client } = await connect({ handlers: [pay, codeMode()] }, { principal: { id: "ada" } });
  const code =
    "return [await tools.pay({ order: 'a' }), await tools.pay({ order: 'a' }), await tools.pay({ order: 'b' })]";
  assertEquals(await valueOf(client, code), ["a *** 1", "a *** 1", "b *** 2"]);
  // The metadata of the run, such as a key of the client, is not that of its calls.
  const seen: unknown[] = [];
  const show = tool({ name: "show", run: (_input, { meta }) => `${seen.push(meta["com.example/key"])}` });
  const { client: second } = await connect({ handlers: [show, codeMode()] });
  await second.callTool("run_code_with_effects", { code: "await tools.show()" }, {
    meta: { "com.example/key": "k" },
  } as never);
  assertEquals(seen, [undefined]);
});

function redact(value: unknown): never {
  return (typeof value === "string" ? value.replace("secret", "***") : undefined) as never;
}

behaviour("a tool that confirms asks the user for each call", async (connect) => {
  const paid: string[] = [];
  const pay = tool({
    name: "pay",
    input: { type: "object", properties: { amount: { type: "number" } } },
    use: [confirm((input) => `Pay ${Object(input).amount}?`)],
    run: ({ amount }) => `${paid.push(`${amount}`)}`,
  });
  const asked: string[] = [];
  const { client } = await connect({ handlers: [pay, codeMode()] }, {
    onElicit: ({ message }: { readonly message: string }) => {
      asked.push(message);
      return message.includes("3") ? { action: "decline" } : { action: "accept", content: {} };
    },
  } as never);
  const code =
    "const out = []; for (const amount of [1, 2, 3]) try { out.push(await tools.pay({ amount })) } catch { " +
    "out.push('no') } return out";
  assertEquals(await valueOf(client, code), ["1", "2", "no"]);
  assertEquals([paid, asked.length], [["1", "2"], 3]);
});

behaviour("without elicitation, a tool that confirms is refused", async (connect) => {
  let runs = 0;
  const pay = tool({ name: "pay", use: [confirm(() => "Pay?")], run: () => `${++runs}` });
  const { client } = await connect({ handlers: [pay, codeMode()] });
  const [text] = await run(client, "return await tools.pay()").catch(({ message }) => [`!${message}`]);
  assert(text.startsWith("!"), text);
  assertEquals(runs, 0);
});

behaviour("observers see each call of a program", async (connect) => {
  const seen: string[] = [];
  const add = tool({ name: "add", run: () => "1" });
  const { client } = await connect({
    handlers: [add, codeMode()],
    observer: { call: (event) => void seen.push(String(Object(event).subject ?? Object(event).name)) },
  });
  await run(client, "await tools.add(); await tools.add()");
  assertEquals(seen.filter((name) => name === "add").length, 2, seen.join());
});

behaviour("progress and log messages of called tools reach the client", async (connect) => {
  const work = tool({
    name: "work",
    run: async (_input, { progress, log }) => {
      await progress(1, { total: 2 });
      await log.info("working");
      return "done";
    },
  });
  const { client } = await connect({ handlers: [work, codeMode()] });
  const seen: number[] = [];
  await client.callTool("run_code_with_effects", { code: "return await tools.work()" }, {
    onProgress: ({ progress }: { readonly progress: number }) => void seen.push(progress),
  } as never);
  assert(seen.length >= 1);
});

behaviour("code mode works in a group, with its name in front", async (connect) => {
  const add = tool({ name: "add", run: () => "1" });
  const { client } = await connect({ handlers: [add, group("shop", [codeMode()])] });
  const names = (await client.listTools()).map(({ name }) => name);
  assertEquals(names, ["shop_search_api", "shop_run_code_with_effects"]);
  assertEquals(await run(client, "return await tools.add()", "shop_run_code_with_effects"), ["1"]);
});

Deno.test("a tool that runs only as a task runs only in a program that is a task", async () => {
  const long = tool({ name: "long", use: [task({ required: true })], run: () => "long" });
  const maybe = tool({ name: "maybe", use: [task({ after: 1 })], run: () => "maybe" });
  const handlers = [long, maybe, tasks(), codeMode()];
  await using plain = createServer({ name: "plain", version: "1.0.0", handlers }) as never as AsyncDisposable & object;
  await using client = await connectTest(plain as never, { era: "modern", transport: "memory" });
  const [refused] = await run(client, "return await tools.long()");
  assert(refused.startsWith("!") && refused.includes("task"), refused);
  assertEquals(await run(client, "return await tools.maybe()"), ["maybe"]);
});
