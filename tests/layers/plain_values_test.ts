// Values that a cache can copy and compare.
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { toKey, weighPlain } from "../../src/layers/plain_values.ts";

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
