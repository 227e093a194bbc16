// The store in memory fulfils the contract of a store, returns promises, and is limited in size.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const shared = memoryStore();
testStore(() => shared, { test: (name, run) => Deno.test(`memory ${name}`, run) });

Deno.test("all operations of the store in memory return promises", async () => {
  const store = memoryStore();
  const heard: string[] = [];
  const stopping = store.subscribe("topic", (text) => void heard.push(text));
  const operations = [
    stopping,
    store.set("key", "value", { ttlMs: 1000 }),
    store.append("log", "entry", { ttlMs: 1000, max: 10 }),
    store.get("key"),
    store.read("log", { limit: 10 }),
    store.list("k", { limit: 1 }),
    store.trim("log", 1),
    store.delete("other"),
    store.lease.isHeld("other"),
  ];
  assert(operations.every((each) => each instanceof Promise));
  const [, version, id, found] = await Promise.all(operations);
  assertEquals([id, found], [1, { value: "value", version: String(version) }]);
  await store.publish("topic", "text");
  await until(() => heard.length > 0, "the entry");
  assertEquals(heard, ["text"]);
  (await stopping)();
  await store.close();
});

Deno.test("the store in memory is limited in bytes, and expired values free their bytes", async () => {
  const clock = fakeClock();
  const store = memoryStore({ bytes: 5000, clock });
  for (let i = 0; i < 10; i++) await store.set(`key${i}`, "x".repeat(100), { ttlMs: 1000 });
  const full = async () => await store.set("large", "x".repeat(1500), { ttlMs: 1000 });
  await assertRejects(full, Error, "bytes");
  // A write that needs no additional bytes is accepted.
  await store.set("key0", "y".repeat(100), { ttlMs: 1000 });
  await clock.advance(1000);
  await full();
  for (let i = 0; i < 100; i++) await store.append("log", "x".repeat(100), { ttlMs: 1000, max: 2 });
  assertThrows(() => memoryStore({ bytes: NaN }), TypeError, "bytes");
});

Deno.test("a store returns only the fields of its contract, even if the engine returns more fields", async () => {
  const row = { value: "value", version: "1", expires: 2 };
  const page = { entries: [{ id: 1, value: "entry", token: "2" }], first: 1, last: 1, epoch: "a", log: "log" };
  const unused = () => true;
  const store = customStore({
    get: () => row,
    list: () => [{ key: "key", ...row }],
    read: () => page,
    set: unused,
    delete: unused,
    append: () => 1,
    trim: () => {},
  });
  assertEquals(await store.get("key"), { value: "value", version: "1" });
  assertEquals(await store.list("key", { limit: 1 }), [{ key: "key", value: "value", version: "1" }]);
  assertEquals(await store.read("log", { limit: 1 }), {
    entries: [{ id: 1, value: "entry" }],
    first: 1,
    last: 1,
    epoch: "a",
  });
});

Deno.test("a store refuses invalid options", () => {
  const engine = () => Promise.reject(new Error("never called"));
  assertThrows(() => customStore(engine, { timeoutMs: 0 }), TypeError, "timeoutMs");
  assertThrows(() => customStore(engine, Object({ timeout: 5 })), TypeError, sentence("timeout", "timeoutMs"));
});

Deno.test("by default, the store in memory holds more than the shares of the clients of a server", async () => {
  const store = memoryStore();
  const MIB = 1_048_576;
  // The shares of extensions and idempotency keys, sealed, and the share of sessions. A character counts as two bytes.
  const bytes = (128 + 64) * 4 / 3 + 32;
  const value = "x".repeat(MIB);
  for (let id = 0; id < bytes / 2; id++) await store.set(`value-${id}`, value, { ttlMs: 1000 });
  await store.close();
});
