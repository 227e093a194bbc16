// Idempotency keys with other features: batches, services, threads, other transports, and keys of any text.
import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { service, tool, ToolError } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import { gate, started, textOf, until } from "../support/behaviour.ts";
import { random } from "../support/random.ts";
import type token from "./token.ts";
import { byKey, enter, listWaysIn } from "../support/ways_in.ts";
import { readReply } from "../support/requests.ts";
import { toSessionRequest } from "../support/sessions.ts";
import { testClient, testServer } from "../support/test_server.ts";

const ada = { id: "ada" };
const input = z.object({ key: z.string() });
const keyOf = ({ key }: { readonly key: string }) => key;

for (const era of ["modern", "legacy"] as const) {
  for (const way of listWaysIn(era)) {
    Deno.test(`a caller's keys are valid on all of the caller's connections (${era} over ${way})`, async () => {
      let runs = 0;
      const pay = tool({ name: "pay", input, use: [idempotent(keyOf)], run: () => `${++runs}` });
      const server = testServer({ handlers: [pay], auth: byKey });
      const found = [];
      for (const name of ["ada", "ada", "bob", "ada"] as const) {
        await using client = await enter(server, name, { way, era });
        found.push(textOf(await client.callTool("pay", { key: "a" })));
      }
      assertEquals(found, ["1", "1", "2", "1"]);
    });
  }
}

Deno.test("two calls in one batch with the same key run the handler once", async () => {
  let runs = 0;
  const pay = tool({ name: "pay", input, use: [idempotent(keyOf)], run: () => ({ run: ++runs }) });
  const server = testServer({ handlers: [pay] });
  await using client = await connectTest(server, { era: "legacy", revisions: ["2025-03-26"], principal: ada });
  const { sessionId } = client;
  const toParams = (key: string) => ({ name: "pay", arguments: { key } });
  const call = (id: number, key: string) => ({ jsonrpc: "2.0", id, method: "tools/call", params: toParams(key) });
  const batch = [call(1, "a"), call(2, "a"), call(3, "b"), call(4, "a")];
  const response = await server.fetch(toSessionRequest(batch, { "mcp-session-id": `${sessionId}` }), {
    principal: ada,
  });
  const replies: { id: number; result: { structuredContent: unknown } }[] = await readReply(response);
  const found = Object.fromEntries(replies.map(({ id, result }) => [id, result.structuredContent]));
  assertEquals(found[1], found[2]);
  assertEquals(found[1], found[4]);
  assertEquals(runs, 2);
});

Deno.test("the result of a cancelled call is not stored if a service may have rolled back its effect", async () => {
  const ends: string[] = [];
  const tx = service("tx", () => ({}), { per: "call", dispose: (_tx, end) => void ends.push(end) });
  const db = service("db", () => ({}));
  for (const [services, again] of [[{ tx }, 2], [{ db }, 1]] as const) {
    let runs = 0;
    let cancelled = 0;
    const { pass, open } = gate();
    const pay = tool({
      name: "pay",
      input,
      use: [idempotent(keyOf)],
      services,
      run: async (_input, { signal }) => {
        const own = ++runs;
        signal.addEventListener("abort", () => cancelled++);
        if (own === 1) await pass;
        return { run: own };
      },
    });
    const server = testServer({ handlers: [pay] });
    await using client = await connectTest(server, { principal: ada });
    const controller = new AbortController();
    const first = started(client.callTool("pay", { key: "a" }, { signal: controller.signal }));
    await until(() => runs === 1, "the first call runs");
    controller.abort();
    await assertRejects(() => first);
    await until(() => cancelled === 1, "the server has cancelled the call");
    const second = started(client.callTool("pay", { key: "a" }));
    open();
    assertEquals((await second).structuredContent, { run: again });
    assertEquals((await client.callTool("pay", { key: "a" })).structuredContent, { run: again });
  }
  assertEquals(ends, ["cancelled", "result"]);
});

Deno.test("the function for the key gets the services whose lifetime is longer than a call", async () => {
  let made = 0;
  const shop = service("shop", () => ({ prefix: "shop" }));
  const tx = service("tx", () => ++made, { per: "call" });
  const keys: unknown[] = [];
  const pay = tool({
    name: "pay",
    input,
    services: { shop, tx },
    use: [idempotent(({ key }, { services }) => {
      keys.push(Object.keys(services));
      return `${services.shop.prefix} ${key}`;
    })],
    run: (_input, { services }) => ({ tx: services.tx }),
  });
  await using client = await testClient({ handlers: [pay] }, { principal: ada });
  for (let i = 0; i < 2; i++) {
    assertEquals((await client.callTool("pay", { key: "a" })).structuredContent, { tx: 1 });
  }
  assertEquals([made, keys], [1, [["shop"], ["shop"]]]);
});

Deno.test("a handler in a worker thread runs once per key, and gets the idempotency token", async () => {
  const run = worker<typeof token>(new URL("token.ts", import.meta.url), { size: 1, idleMs: 0 });
  const pay = tool({ name: "pay", input, use: [idempotent(keyOf)], run });
  await using client = await testClient({ handlers: [pay] }, { principal: ada });
  const first = await client.callTool("pay", { key: "a" });
  assert(/^[\w-]{43}$/.test(Object(first.structuredContent).token), JSON.stringify(first));
  assertEquals(await client.callTool("pay", { key: "a" }), first);
  assertNotEquals(await client.callTool("pay", { key: "b" }), first);
});

Deno.test("any text of up to 256 characters is a valid key, and keys are equal only if their texts are identical", async () => {
  const { text, below, pick } = random(27);
  const alphabet = ["a", "A", "b", " ", '"', "\\", "\0", "\n", "é", "e\u0301", "\ud800", "\udc00", "😀", "-", "_", ","];
  const keys = new Set(Array.from({ length: 150 }, () => text(alphabet, pick([1, 3, 8, 128])).slice(0, 256)));
  keys.delete("");
  const all = [...keys];
  for (const store of [undefined, memoryStore()]) {
    const runs = new Map<number, number>();
    const pay = tool({
      name: "pay",
      input: z.object({ at: z.number() }),
      use: [idempotent(({ at }) => all[at])],
      run({ at }) {
        runs.set(at, (runs.get(at) ?? 0) + 1);
        return { at };
      },
    });
    await using client = await testClient({ handlers: [pay], store }, { principal: ada });
    for (let i = 0; i < 2 * all.length; i++) {
      const at = i < all.length ? i : below(all.length);
      assertEquals((await client.callTool("pay", { at })).structuredContent, { at }, JSON.stringify(all[at]));
    }
    assertEquals([...runs.values()], all.map(() => 1));
  }
});

Deno.test("each key has one effect in a random mix of calls that fail, are cancelled and succeed", async () => {
  const { below, pick } = random(7);
  for (const store of [undefined, memoryStore()]) {
    const effects = new Map<string, number>();
    let running = 0;
    const pay = tool({
      name: "pay",
      input,
      use: [idempotent(keyOf)],
      async run({ key }, { signal }) {
        running++;
        for (let turns = below(4); turns; turns--) await new Promise((resolve) => setTimeout(resolve, 0));
        running--;
        const end = below(3);
        if (end === 0) throw new ToolError("no money");
        if (end === 1) signal.throwIfAborted();
        effects.set(key, (effects.get(key) ?? 0) + 1);
        return { effect: effects.get(key) };
      },
    });
    await using client = await testClient({ handlers: [pay], store }, { principal: ada });
    const keys = ["a", "b", "c"];
    const calls = Array.from({ length: 120 }, async () => {
      const controller = new AbortController();
      const calling = client.callTool("pay", { key: pick(keys) }, { signal: controller.signal });
      // Fixed wait: cancellations arrive at random times.
      if (below(4) === 0) setTimeout(() => controller.abort(), below(5));
      const result = await calling.catch(() => undefined);
      if (result && !result.isError) assertEquals(result.structuredContent, { effect: 1 });
      else if (result) assertEquals(textOf(result), "no money");
    });
    await Promise.all(calls);
    await until(() => running === 0, "all handlers have ended");
    assert(effects.size > 0);
    for (const count of effects.values()) assertEquals(count, 1);
  }
});
