// The bytes that layers count with `call.keep`, as the guide to layers describes it.
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { z } from "zod";
import { tool } from "../../mod.ts";
import { type Layer, layer } from "../../src/layers/layers.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { measureHeap } from "../support/heap.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";
import { toKey, weighPlain } from "../../src/layers/plain_values.ts";

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
  const server = openServer({ handlers: [double], limits });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  for (let n = 0; n < 100; n++) {
    await ada.callTool("double", { n });
    assert(kept.has(n), `result ${n} has no room`);
  }
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

// Values that a cache can copy and compare.

class Money {
  readonly cents = 5;
}

Deno.test("values that can be cloned have a weight, and other values have no weight", () => {
  const shared = { a: 1 };
  const plain: readonly unknown[] = [
    ...[undefined, null, true, 0, NaN, 10n ** 40n, "text", [], {}, [1, [2]], { a: { b: [null] } }],
    ...[new Date(0), new Map([[{ a: 1 }, new Set([1])]]), new Uint8Array(8), new ArrayBuffer(8), [shared, shared]],
    Object.assign(Object.create(null), { a: 1 }),
  ];
  for (const value of plain) {
    const bytes = weighPlain(value, 10_000);
    assert(bytes, `no weight: ${Object.prototype.toString.call(value)}`);
    assertEquals(structuredClone(value), value);
  }
  const loop: unknown[] = [];
  loop.push(loop);
  const deep = JSON.parse("[".repeat(200) + "]".repeat(200));
  const getter = Object.defineProperty({}, "now", { get: () => Math.random(), enumerable: true });
  const odd: readonly unknown[] = [
    ...[() => 1, Symbol("a"), new Money(), [new Money()], new Map([["a", () => 1]]), loop, deep, getter],
    ...[
      new Blob(["a"]),
      new Response("a"),
      new ReadableStream(),
      (function* () {})(),
      new URL("a:b"),
      /a/,
      new Error("a"),
    ],
    ...[Promise.resolve(1), { [Symbol("a")]: 1 }, class {}, new WeakMap(), new (class extends Map {})()],
    ...[{ toJSON: () => "a" }, Object.create({ inherited: 1 }), new (class extends Date {})(0)],
  ];
  for (const value of odd) assertEquals(weighPlain(value, 10_000), undefined, Object.prototype.toString.call(value));
});

Deno.test("the weight is at least the size in memory, and is limited", () => {
  assert((weighPlain("x".repeat(1000), 1e6) ?? 0) >= 2000);
  // A view keeps its whole buffer in memory.
  assert((weighPlain(new Uint8Array(new ArrayBuffer(5000), 0, 1), 1e6) ?? 0) >= 5000);
  assertEquals(weighPlain("x".repeat(1000), 1000), undefined);
  const wide = Array.from({ length: 40 }, () => 1).reduce<unknown>((part) => [part, part], 1);
  assertEquals(weighPlain(wide, 1e6), undefined);
});

Deno.test("equal values have the same key, and different values have different keys", () => {
  const toText = (value: unknown) => toKey(value, 10_000);
  assertEquals(toText({ a: 1, b: [2] }), toText({ b: [2], a: 1 }));
  assertEquals(toText(new Map([["a", new Date(5)]])), toText(new Map([["a", new Date(5)]])));
  const values: readonly unknown[] = [
    ...[undefined, null, "null", "undefined", 0, -0, "0", 0n, NaN, "NaN", Infinity, true, "true", "", []],
    ...[{}, [[]], ["list"], { list: 1 }, [1], ["1"], "1", 1, { a: undefined }, { a: null }, [undefined], [null]],
    ...[new Date(1), new Date(NaN), new Map(), new Set(), new Map([[1, 2]]), new Set([1, 2]), [[1, 2]]],
    ...[new Uint8Array([1]), new Int8Array([1]), new Uint8Array([1]).buffer, ["date", "1"], ["object", "a", 1], {
      a: 1,
    }],
  ];
  const keys = values.map(toText);
  for (const [at, key] of keys.entries()) {
    assertNotEquals(key, undefined);
    assertEquals(keys.indexOf(key), at, `${key} is the key of two values`);
  }
  assertEquals(toText(new Money()), undefined);
});
