// `sqliteStore` on real files, with each of the runtime's databases: it fulfils the contract of a store, also across
// processes.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import process from "node:process";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { assertFindsEarlyFile, assertKeptByLooks, moveDatabase } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";

const databases: Record<string, (path: string) => SqliteDatabase> = {
  "node:sqlite": (path) => new DatabaseSync(path),
};
if ("Bun" in globalThis) {
  const name = "bun:sqlite"; // The specifier is in a variable, because Deno type-checks this file and has no such module.
  const { Database } = await import(name);
  databases[name] = (path) => new Database(path);
}

const folder = mkdtempSync(`${tmpdir()}/sqlite-`);
const ttlMs = 60_000;

for (const [name, open] of Object.entries(databases)) {
  const path = `${folder}/${name.replace(":", "-")}`;
  testStore(() => sqliteStore(() => open(`${path}.db`)), {
    test: (rule, run) => void Deno.test(`${name} ${rule}`, run),
  });

  Deno.test(`${name}: expired values and logs are deleted from the file`, async () => {
    const file = `${path}-swept.db`;
    const store = sqliteStore(() => open(file));
    for (let i = 0; i < 500; i++) await store.set(`k${i}`, "x".repeat(1000), { ttlMs: 1 });
    for (let i = 0; i < 20; i++) await store.append(`log${i}`, "x", { ttlMs: 1, max: 10 });
    await until(async () => !await store.get("k499"), "the last value has expired");
    // A store that has just been opened deletes expired data with its first writes.
    const other = sqliteStore(() => open(file));
    for (let i = 0; i < 30; i++) await other.set("key", "", { ttlMs });
    const db = open(file);
    const count = (table: string) => Object.values(Object(db.prepare(`select count(*) from ${table}`).get()))[0];
    assertEquals([count("mcp_values"), count("mcp_logs"), count("mcp_entries")], [1, 0, 0]);
    db.close();
    await store.close();
    await other.close();
  });

  Deno.test(`${name}: while another process holds the lock, a write fails soon and reads succeed; after the lock is released, all operations work`, async () => {
    const file = `${path}-locked.db`;
    const store = sqliteStore(() => open(file));
    await store.set("key", "1", { ttlMs });
    const db = open(file);
    db.exec("begin immediate");
    const start = performance.now();
    await assertRejects(async () => await store.set("key", "2", { ttlMs }), Error, sentence());
    assert(performance.now() - start < 5000, "the write failed too late");
    assertEquals((await store.get("key"))?.value, "1");
    db.exec("rollback");
    await until(async () => {
      try {
        return await store.set("key", "3", { ttlMs }) !== undefined;
      } catch {
        return false;
      }
    }, "the store writes again");
    assertEquals((await store.get("key"))?.value, "3");
    db.close();
    await store.close();
  });

  Deno.test(`${name}: a database in memory, and a database that the connect function returns repeatedly, are not shared with other stores`, async () => {
    const shared = open(`${path}-same.db`);
    for (const opens of [() => open(":memory:"), () => shared]) {
      let calls = 0;
      const store = sqliteStore(() => (calls++, opens()));
      await assertKeptByLooks(store);
      assert(calls >= 2 && calls <= 6, `${calls} calls`);
      await store.close();
    }
  });

  Deno.test(`${name}: a file that was replaced or is missing is opened again`, async () => {
    const file = `${path}-replaced.db`;
    const store = sqliteStore(() => open(file));
    for (const isMade of [true, false]) {
      await store.set("key", "old", { ttlMs });
      moveDatabase(file, `${file}.${isMade}`);
      const other = sqliteStore(() => open(file));
      if (isMade) await other.set("key", "new", { ttlMs });
      const read = async () => {
        try {
          return (await store.get("key"))?.value;
        } catch {
          return "lost";
        }
      };
      await until(async () => await read() === (isMade ? "new" : undefined), "the new file");
      await store.set("both", "1", { ttlMs });
      assertEquals((await other.get("both"))?.value, "1");
      await other.close();
    }
    await store.close();
  });

  Deno.test(`${name}: a file that was replaced before the first check is opened again`, async () => {
    const file = `${path}-early.db`;
    await assertFindsEarlyFile(file, (before) => sqliteStore(() => before().then(() => open(file))));
  });
}

/** The program of a process that increments a counter, and publishes each number, until it is killed. */
const WORKER = `
const [path, name, count] = process.argv.slice(-3);
const { sqliteStore } = await import(${JSON.stringify(new URL("../../src/stores/sqlite.ts", import.meta.url).href)});
const { DatabaseSync } = await import("node:sqlite");
const store = sqliteStore(() => new DatabaseSync(path), { timeoutMs: 20_000 });
for (let i = 1; i <= Number(count);) {
  try {
    await store.append("count", name + "-" + i, { ttlMs: 60000, max: 10000, token: name + "-" + i });
    console.log(name + "-" + i++);
  } catch {
    // Another process writes.
  }
}
await store.close();
`;

/** Starts a process on the current runtime. */
function work(path: string, name: string, count: number) {
  const file = `${folder}/worker.mjs`;
  const isBun = "Bun" in globalThis;
  const words = isBun ? [file] : ["run", "--quiet", "--no-check", "-A", file];
  const child = spawn(process.execPath, [...words, path, name, String(count)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged: string[] = [];
  let rest = "";
  child.stdout.on("data", (bytes) => {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop() ?? "";
    acknowledged.push(...lines);
  });
  const exited = new Promise((resolve) => child.once("close", resolve));
  return { child, acknowledged, exited };
}

Deno.test("if several processes write concurrently and one of them is killed, no entry is lost or doubled", async () => {
  const { writeFileSync } = await import("node:fs");
  writeFileSync(`${folder}/worker.mjs`, WORKER);
  const path = `${folder}/shared.db`;
  const store: Store = sqliteStore(() => new DatabaseSync(path), { timeoutMs: 20_000 });
  const heard: string[] = [];
  await store.subscribe("count", (text) => void heard.push(text));
  const [a, b, c] = ["a", "b", "c"].map((name) => work(path, name, name === "c" ? 1_000_000 : 300));
  await until(() => c.acknowledged.length > 50, "the third process writes");
  c.child.kill("SIGKILL");
  await Promise.all([a.exited, b.exited, c.exited]);
  const texts: string[] = [];
  for (let after = 0;;) {
    const { entries } = await store.read("count", { after, limit: 1000 });
    if (!entries.length) break;
    texts.push(...entries.map(({ value }) => value));
    after = entries[entries.length - 1].id;
  }
  assertEquals(new Set(texts).size, texts.length, "an entry is doubled");
  const kept = new Set(texts);
  for (const text of [...a.acknowledged, ...b.acknowledged, ...c.acknowledged]) assert(kept.has(text), text);
  await until(() => heard.length === texts.length, "each entry has been received");
  assertEquals(heard, texts);
  await store.close();
});

Deno.test("cleanup: the files are deleted", () => rmSync(folder, { recursive: true }));
