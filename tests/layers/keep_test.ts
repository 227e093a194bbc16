// The bytes that layers count with `call.keep`, as the guide to layers describes it.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, tool } from "../../mod.ts";
import { type Layer, layer } from "../../src/layers/layers.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { measureHeap } from "../support/heap.ts";
import { sentence } from "../support/messages.ts";

const MINUTE_MS = 60_000;

/** A layer that keeps the result of each input, of which four have room. `drop` only removes the result. */
function remember(kept: Map<number, unknown>, dropped: number[]): Layer<{ n: number }> {
  return layer<{ n: number }>(() => ({
    name: "remember",
    rank: "reuse",
    async run(call, next) {
      const { n } = call.input;
      if (kept.has(n)) return kept.get(n);
      const value = await next();
      const drop = () => {
        dropped.push(n);
        return kept.delete(n);
      };
      const limit = { of: "remember", bytes: 160_000, least: 100 };
      if (call.keep(10_000, { ttlMs: 10 * MINUTE_MS, drop, limit })) kept.set(n, value);
      return value;
    },
  }));
}

behaviour("the bytes of a dropped result are released, and drop is called once for each result", async (connect) => {
  const clock = fakeClock();
  const kept = new Map<number, unknown>();
  const dropped: number[] = [];
  const double = tool({
    name: "double",
    input: z.object({ n: z.number() }),
    use: [remember(kept, dropped)],
    run: ({ n }) => `${2 * n}`,
  });
  const { client, server } = await connect({ handlers: [double], clock }, { principal: { id: "ada" } });
  const call = async (n: number) => assertEquals(textOf(await client.callTool("double", { n })), `${2 * n}`);
  const before = server.stats().bytes;
  for (let n = 0; n < 20; n++) await call(n);
  assertEquals([[...kept.keys()], dropped.length], [[16, 17, 18, 19], 16]);
  await until(() => server.stats().bytes <= before + 40_000, "the bytes of four results are counted");
  // A result that is kept again is not dropped when its first time to live ends.
  await clock.advance(6 * MINUTE_MS);
  await call(0);
  await clock.advance(6 * MINUTE_MS);
  assertEquals([...kept.keys()], [0]);
  assertEquals(dropped.length, 20);
  await clock.advance(6 * MINUTE_MS);
  assertEquals([kept.size, dropped.length], [0, 21]);
  await until(() => server.stats().bytes <= before, "no bytes are counted");
}, { perInstance: "functions" });

Deno.test("results that were dropped do not use up the memory of their clients", async () => {
  const kept = new Map<number, unknown>();
  const double = tool({
    name: "double",
    input: z.object({ n: z.number() }),
    use: [remember(kept, [])],
    run: ({ n }) => 2 * n,
  });
  const limits = { memory: { bytesPerClient: 200_000, bytes: 400_000 } };
  const server = createServer({ name: "keep", version: "1.0.0", handlers: [double], limits });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  for (let n = 0; n < 100; n++) {
    await ada.callTool("double", { n });
    assert(kept.has(n), `result ${n} has no room`);
  }
  await server.close();
});

behaviour("a drop that returns no boolean is reported, and its value counts until it expires", async (connect) => {
  const returned = [() => Promise.reject(new Error("on purpose")), () => "no", () => undefined];
  const keeping = layer(() => ({
    name: "keeping",
    run(call, next) {
      const limit = { of: "keeping", bytes: 40_000, least: 100 };
      // The cast is needed, because only JavaScript accepts these values.
      const drop = () => returned.shift()?.() as never;
      kept.push(call.keep(10_000, { ttlMs: 60_000, drop, limit }) !== undefined);
      return next();
    },
  }));
  const kept: boolean[] = [];
  const { client, takeFaults } = await connect({
    handlers: [tool({ name: "hello", use: [keeping], run: () => "Hello" })],
  }, { principal: { id: "ada" } });
  for (let i = 0; i < 4; i++) assertEquals(textOf(await client.callTool("hello")), "Hello");
  assertEquals(kept, [true, false, false, false]);
  const messages = takeFaults().map(({ error }) => error instanceof TypeError && error.message);
  assertEquals(messages, [sentence("drop", "an object"), sentence("drop", '"no"'), sentence("drop", "undefined")]);
}, { perInstance: "functions" });

behaviour("a drop that throws is reported, and hinders no other result from expiring", async (connect) => {
  const clock = fakeClock();
  let expired = 0;
  const keeping = layer(() => ({
    name: "keeping",
    run(call, next) {
      const limit = { of: "keeping", bytes: 160_000, least: 100 };
      for (let i = 0; i < 2; i++) {
        const drop = () => {
          if (i === 0) throw new Error("on purpose");
          return !!++expired;
        };
        call.keep(10_000, { ttlMs: 1000, drop, limit });
      }
      return next();
    },
  }));
  const { client, server, takeFaults } = await connect({
    handlers: [tool({ name: "hello", use: [keeping], run: () => "Hello" })],
    clock,
  }, { principal: { id: "ada" } });
  const before = server.stats().bytes;
  for (let i = 0; i < 3; i++) assertEquals(textOf(await client.callTool("hello")), "Hello");
  await clock.advance(5000);
  assertEquals([expired, server.stats().bytes], [3, before]);
  assertEquals(new Set(takeFaults().map(({ error }) => String(error))), new Set(["Error: on purpose"]));
}, { perInstance: "functions" });

Deno.test("a result that a layer keeps does not keep its call in memory", async () => {
  const bytes = await measureHeap(new URL("cached_memory.ts", import.meta.url));
  assert(bytes < 5000, `each result uses ${bytes} bytes`);
});
