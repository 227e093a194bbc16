// Stores whose engine is slow, or returns wrong values.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import type { StoreEngine } from "../../src/core/store.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { gate, turn, until } from "../support/behaviour.ts";

/** An engine in memory with some methods replaced. */
async function spoil(change: (engine: StoreEngine) => Partial<StoreEngine>): Promise<StoreEngine> {
  const engine = await memoryStore()[INTERNALS].connect();
  const own = change(engine);
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(name in own ? own : target, name);
      return typeof value === "function" ? value.bind(name in own ? own : target) : value;
    },
  });
}

Deno.test("a topic that cannot be read ends no process, and is read again", async () => {
  let reads = 0;
  const engine = await spoil((engine) => ({
    async read(log, options) {
      await turn();
      // Simulates a broken engine.
      return ++reads === 2 ? undefined as never : engine.read(log, options);
    },
  }));
  const store = customStore(engine, { pollMs: 20 });
  const heard: string[] = [];
  const stop = await store.subscribe("topic", (text) => void heard.push(text));
  await until(() => reads > 0, "a read");
  await store.publish("topic", "text");
  await until(() => heard.length > 0, "the text");
  const before = reads;
  await until(() => reads > before + 2, "later reads");
  stop();
  await store.close();
  assertEquals(heard, ["text"]);
});

Deno.test("an operation that took too long is not repeated", async () => {
  let writes = 0;
  const { pass, open } = gate();
  const engine = await spoil(() => ({
    async set() {
      writes++;
      await pass;
      throw new Error("no connection");
    },
  }));
  const store = customStore(engine, { timeoutMs: 30 });
  await assertRejects(async () => await store.set("key", "value", { ttlMs: 1000 }), Error, "within 30 ms");
  open();
  await turn(5);
  assertEquals(writes, 1);
  await store.close();
});

Deno.test("an operation whose engine connects too late does not run", async () => {
  let started = 0;
  const engine = await spoil(() => ({
    set: () => ++started > 0,
    listen: () => {
      started++;
      return () => {};
    },
  }));
  const first = gate();
  const store = customStore(async () => {
    await first.pass;
    return engine;
  }, { timeoutMs: 30 });
  await assertRejects(async () => await store.set("key", "value", { ttlMs: 1000 }), Error, "within 30 ms");
  first.open();
  await turn(5);
  assertEquals(started, 0);
  await store.close();
  const second = gate();
  const other = customStore(async () => {
    await second.pass;
    return engine;
  }, { timeoutMs: 30 });
  await assertRejects(async () => await other.subscribe("topic", () => {}), Error, "within 30 ms");
  second.open();
  await turn(5);
  assertEquals(started, 0);
  await other.close();
});

Deno.test("a listener that starts too late is stopped", async () => {
  let stopped = 0;
  const { pass, open } = gate();
  const engine = await spoil(() => ({
    async listen() {
      await pass;
      return () => void stopped++;
    },
  }));
  const store = customStore(engine, { timeoutMs: 30 });
  await assertRejects(async () => await store.subscribe("topic", () => {}), Error, "within 30 ms");
  open();
  await until(() => stopped > 0, "the listener is stopped");
  assertEquals(stopped, 1);
  await store.close();
});

Deno.test("every call of close waits until the engine is closed", async () => {
  let isClosed = false;
  const engine = await spoil(() => ({ close: () => turn(3).then(() => void (isClosed = true)) }));
  const store = customStore(engine);
  await store.get("key");
  store.close();
  await store.close();
  assertEquals(isClosed, true);
});

Deno.test("a value that expires while it is replaced does not make room twice", () => {
  let now = 0;
  let isRunning = false;
  // The clock advances between two reads.
  const store = memoryStore({ bytes: 2600, clock: { ...fakeClock(), now: () => isRunning ? now++ : now } });
  const write = (length: number) => store.set("first", "x".repeat(length), { ttlMs: 10 });
  write(500);
  [now, isRunning] = [9, true];
  assertThrows(() => write(1300), Error, "holds 2600 bytes");
});

Deno.test("a result of an engine that merely counts as true changes nothing that was decided by it", async () => {
  const odd: readonly unknown[] = [undefined, null, 1, 0, "OK", "", {}, { changes: 0 }, [], Symbol("true")];
  for (const value of odd) {
    const engine = await spoil(() => ({ set: () => value as never, delete: () => value as never })); // as an author errs
    const store = customStore(engine);
    for (const run of [() => store.set("key", "a", { ttlMs: 1000 }), () => store.delete("key")]) {
      await assertRejects(async () => await run(), Error, "return true or false");
    }
    await store.close();
  }
});

Deno.test("a value of an engine that has no version is refused, because writes with it would replace any value", async () => {
  const odd: readonly unknown[] = [
    "text",
    1,
    true,
    {},
    { value: "a" },
    { version: "1" },
    { value: "a", version: 1 },
    [],
  ];
  for (const value of odd) {
    const store = customStore(await spoil(() => ({ get: () => value as never }))); // as an author errs
    await assertRejects(async () => await store.get("key"), Error, "no value and version that are strings");
    await store.close();
  }
  for (const absent of [undefined, null]) {
    const store = customStore(await spoil(() => ({ get: () => absent as never }))); // as some clients do
    assertEquals(await store.get("key"), undefined);
    await store.close();
  }
});
