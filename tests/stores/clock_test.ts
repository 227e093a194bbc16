// The clock of a server also moves the time of its store.
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { createServer, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

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
    const server = createServer({
      name: "bank",
      version: "1.0.0",
      clock,
      secret: "a secret of at least 32 characters",
      store: open(),
      handlers: [pay],
    });
    await using client = await connectTest(server, { principal: { id: "ada", scopes: [] } });
    await client.callTool("pay");
    await clock.advance(59_000);
    await client.callTool("pay");
    assertEquals(runs, 1);
    await clock.advance(2000);
    await client.callTool("pay");
    assertEquals(runs, 2);
    await server.close();
  });

  Deno.test(`${name}: values and the lease of a store expire by the server's clock`, async () => {
    const clock = fakeClock();
    const store = open();
    const server = createServer({
      name: "bank",
      version: "1.0.0",
      clock,
      secret: "a secret of at least 32 characters",
      store,
      handlers: [],
    });
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
    await server.close();
  });

  Deno.test(`${name}: a server whose clock stands still writes the streams of a session, and closes`, async () => {
    const ask = tool({
      name: "ask",
      run(_input, ctx) {
        ctx.elicit("ok", { message: "?", schema: { type: "object", properties: {} } }).catch(() => {});
        return "done";
      },
    });
    const server = createServer({
      name: "bank",
      version: "1.0.0",
      clock: fakeClock(),
      secret: "a secret of at least 32 characters",
      store: open(),
      handlers: [ask],
    });
    const onElicit = () => ({ action: "decline" }) as const;
    const client = await connectTest(server, { era: "legacy", transport: "http", onElicit });
    assertEquals(textOf(await client.callTool("ask")), "done");
    await client.close();
    await server.close();
  });

  Deno.test(`${name}: a store that was used before its server keeps the system clock`, async () => {
    const clock = fakeClock();
    const store = open();
    await store.set("a", "1", { ttlMs: 60_000 });
    const server = createServer({
      name: "bank",
      version: "1.0.0",
      clock,
      secret: "a secret of at least 32 characters",
      store,
      handlers: [],
    });
    await clock.advance(120_000);
    assert(await store.get("a"));
    await server.close();
  });
}

Deno.test("cleanup: the database files are deleted", () => rmSync(folder, { recursive: true }));
