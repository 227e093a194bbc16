// The store in memory fulfils the contract of a store, returns promises, and is limited in size.
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { openServer } from "../support/servers.ts";
import { createLosable, type Losable } from "../support/engines.ts";

const shared = memoryStore();
testStore(() => shared, { test: (name, run) => Deno.test(`memory ${name}`, run) });

Deno.test("all operations of the store in memory return promises", async () => {
  const store = closeAtEnd(memoryStore());
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
  const store = closeAtEnd(memoryStore());
  const MIB = 1_048_576;
  // The shares of extensions and idempotency keys, sealed, and the share of sessions. A character counts as two bytes.
  const bytes = (128 + 64) * 4 / 3 + 32;
  const value = "x".repeat(MIB);
  for (let id = 0; id < bytes / 2; id++) await store.set(`value-${id}`, value, { ttlMs: 1000 });
});

// The clock of a server also moves the time of its store.

const folder = mkdtempSync(`${tmpdir()}/clock-`);
let files = 0;

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  SQLite() {
    const path = `${folder}/${files++}.db`;
    return sqliteStore(() => new DatabaseSync(path));
  },
};

for (const [name, open] of Object.entries(stores)) {
  Deno.test(`${name}: the record of an idempotency key expires by the server's clock`, async () => {
    const clock = fakeClock();
    let runs = 0;
    const pay = tool({ name: "pay", use: [idempotent({ key: () => "1", ttlMs: 60_000 })], run: () => `${++runs}` });
    const server = openServer({ clock, store: open(), handlers: [pay] });
    await using client = await connectTest(server, { principal: { id: "ada", scopes: [] } });
    await client.callTool("pay");
    await clock.advance(59_000);
    await client.callTool("pay");
    assertEquals(runs, 1);
    await clock.advance(2000);
    await client.callTool("pay");
    assertEquals(runs, 2);
  });

  Deno.test(`${name}: values and the lease of a store expire by the server's clock`, async () => {
    const clock = fakeClock();
    const store = open();
    openServer({ clock, store, handlers: [] });
    await store.set("a", "1", { ttlMs: 60_000 });
    await clock.advance(59_000);
    assert(await store.get("a"));
    await clock.advance(2000);
    assertEquals(await store.get("a"), undefined);
    const release = await store.lease.hold();
    const term = await store.lease.confirm();
    assert(store.lease.heldUntil > clock.now() && store.lease.heldUntil <= clock.now() + store.lease.ms);
    release();
    await clock.advance(10 * store.lease.ms);
    assert(store.lease.heldUntil < clock.now());
    assertNotEquals(await store.lease.confirm(), term);
  });

  Deno.test(`${name}: a server whose clock stands still writes the streams of a session, and closes`, async () => {
    const ask = tool({
      name: "ask",
      run(_input, ctx) {
        ctx.elicit("ok", { message: "?", schema: { type: "object", properties: {} } }).catch(() => {});
        return "done";
      },
    });
    const server = openServer({ clock: fakeClock(), store: open(), handlers: [ask] });
    const onElicit = () => ({ action: "decline" }) as const;
    await using client = await connectTest(server, { era: "legacy", transport: "http", onElicit });
    assertEquals(textOf(await client.callTool("ask")), "done");
  });

  Deno.test(`${name}: a store that was used before its server keeps the system clock`, async () => {
    const clock = fakeClock();
    const store = open();
    await store.set("a", "1", { ttlMs: 60_000 });
    openServer({ clock, store, handlers: [] });
    await clock.advance(120_000);
    assert(await store.get("a"));
  });
}

Deno.test("cleanup: the database files are deleted", () => rmSync(folder, { recursive: true }));

// One of two instances cannot reach the store. This instance refuses calls that need the store, and runs other calls.
// After the recovery, both instances share state again.

interface Side extends AsyncDisposable {
  readonly server: Server;
  /** The instance's connection to the store. */
  readonly link: Losable;
  /** The store events that were reported to the observer. */
  readonly states: readonly string[];
}

let runs = 0;

function start(shared: Store): Side {
  const link = createLosable({ pollMs: 50 }, shared);
  const states: string[] = [];
  const server = openServer({
    store: link.open(),
    handlers: [
      tool({ name: "quick", run: () => "quick" }),
      tool({ name: "pay", use: [idempotent(() => "key")], run: () => `paid ${++runs}` }),
      resource({ uri: "note://1", name: "note", read: () => "text" }),
    ],
    observer: { store: ({ state }) => void states.push(state) },
  });
  return { server, link, states, [Symbol.asyncDispose]: () => server.close() };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`an instance that cannot reach the store refuses calls that need the store, and recovers automatically (${era})`, async () => {
    runs = 0;
    const shared = memoryStore();
    await using a = start(shared);
    await using b = start(shared);
    const ada = { era, principal: { id: "ada" } };
    await using here = await connectTest(a.server, ada);
    await using there = await connectTest(b.server, ada);
    await using near = await here.subscribe({ resourceSubscriptions: ["note://1"] });
    await using far = await there.subscribe({ resourceSubscriptions: ["note://1"] });
    assertEquals(textOf(await here.callTool("pay")), "paid 1");
    b.link.isLost = true;
    // Calls that do not need the store run on both instances.
    for (const client of [here, there]) {
      assertEquals(textOf(await client.callTool("quick")), "quick");
      assertEquals((await client.listTools()).length, 2);
    }
    // The other instance holds the key. This instance cannot read the key, so it does not run the call.
    assertEquals(textOf(await here.callTool("pay")), "paid 1");
    const error = await assertRejects(() => there.callTool("pay"), McpError, sentence("pay"));
    assertEquals([error.code, runs], [-31503, 1]);
    // The change reaches the clients of this instance.
    a.server.resourceUpdated("note://1");
    await near.take(1);
    b.server.resourceUpdated("note://1");
    await far.take(1);
    await until(() => b.states.includes("degraded"), "the observer is notified");
    assertEquals(a.states, []);
    b.link.isLost = false;
    await until(async () => {
      try {
        return textOf(await there.callTool("pay")) === "paid 1";
      } catch (error) {
        assert(error instanceof McpError && error.code === -31503);
        return false;
      }
    }, "the store is available again");
    // Changes reach the other instance again, in both directions.
    const [before, beforeFar] = [near.received.length, far.received.length];
    await until(() => {
      a.server.resourceUpdated("note://1");
      return far.received.length > beforeFar;
    }, "a change on the first instance has reached the second instance");
    await until(() => {
      b.server.resourceUpdated("note://1");
      return near.received.length > before + 1;
    }, "a change on the second instance has reached the first instance");
    assert(b.states.includes("recovered"), b.states.join());
    assertEquals(runs, 1);
  });
}
