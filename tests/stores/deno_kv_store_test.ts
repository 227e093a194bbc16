// `denoKvStore` on a real file fulfils the contract of a store, also across processes. Only Deno has this database.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { type DenoKv, denoKvStore } from "../../src/stores/deno_kv.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { assertFindsEarlyFile, assertKeptByLooks, isNew, moveDatabase } from "../support/engines.ts";

// Deno has this API only with a flag.
const { Deno: host } = globalThis as unknown as { readonly Deno?: { openKv?(path: string): Promise<DenoKv> } };
const ignore = host?.openKv === undefined;
const missing = ignore ? " (Deno.openKv is missing; use --unstable-kv)" : "";

const folder = mkdtempSync(`${tmpdir()}/kv-`);
const ttlMs = 60_000;

async function openKv(path: string): Promise<DenoKv> {
  if (host?.openKv) return await host.openKv(path);
  throw new Error("Deno.openKv is missing");
}

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name: `Deno KV ${name}${missing}`, ignore, fn });
}

testStore(() => denoKvStore(() => openKv(`${folder}/rules.db`)), { test });

test("all parts of long values are replaced and removed", async () => {
  const path = `${folder}/parts.db`;
  const store = denoKvStore(() => openKv(path));
  const long = "é€😀".repeat(60_000);
  await store.set("key", long, { ttlMs });
  await store.set("key", `${long}!`, { ttlMs });
  assertEquals((await store.list("k", { limit: 5 }))[0].value, `${long}!`);
  for (let i = 0; i < 30; i++) await store.append("log", `${i}${long}`, { ttlMs, max: 3 });
  const { entries, first, last } = await store.read("log", { limit: 10 });
  assertEquals([first, last, entries.map(({ value }) => value === `${value.slice(0, 2)}${long}`)], [28, 30, [
    true,
    true,
    true,
  ]]);
  await store.delete("key");
  await store.trim("log", 31);
  await store.close();
  const kv = await openKv(path);
  const kinds: Record<string, number> = {};
  for await (const { key } of kv.list({ start: ["mcp"], end: ["mcp~"] })) {
    const kind = String(key[1]);
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  const { ring: _, ...rest } = kinds;
  assertEquals(rest, { file: 1, log: 1, rung: 1 });
  kv.close();
});

test("trim removes all dropped entries, also if there are many", async () => {
  const kv = await openKv(`${folder}/trimmed.db`);
  const store = denoKvStore(() => openKv(`${folder}/trimmed.db`));
  for (let i = 0; i < 95; i++) await store.append("log", `${i}`, { ttlMs, max: 1000 });
  const count = async () => {
    let entries = 0;
    for await (const _ of kv.list({ start: ["mcp", "entry"], end: ["mcp", "entry~"] })) entries++;
    return entries;
  };
  assertEquals(await count(), 95);
  await store.trim("log", Number.MAX_SAFE_INTEGER);
  assertEquals((await store.read("log", { limit: 5 })).entries, []);
  await until(async () => await count() === 0, "the removal");
  assertEquals(await store.append("log", "next", { ttlMs, max: 1000 }), 96);
  await store.close();
  kv.close();
});

test("a database in memory, and a database that the connect function returns repeatedly, stay usable", async () => {
  const shared = await openKv(`${folder}/same.db`);
  for (const opens of [() => openKv(":memory:"), () => shared]) {
    const store = denoKvStore(opens);
    await assertKeptByLooks(store);
    await store.close();
  }
});

test("a file that was replaced before the first check is opened again", async () => {
  const path = `${folder}/early.db`;
  await assertFindsEarlyFile(path, (before) => denoKvStore(() => before().then(() => openKv(path))));
});

test("a file that was replaced is opened again", async () => {
  const path = `${folder}/replaced.db`;
  const store = denoKvStore(() => openKv(path));
  await store.set("key", "old", { ttlMs });
  moveDatabase(path);
  const other = denoKvStore(() => openKv(path));
  await other.set("key", "new", { ttlMs });
  await until(() => isNew(store), "the new file");
  await store.close();
  await other.close();
});

test("expired logs are deleted from the file", async () => {
  const path = `${folder}/expired.db`;
  const store = denoKvStore(() => openKv(path));
  for (let i = 0; i < 20; i++) await store.append("again", `${i}`, { ttlMs: 1, max: 10 });
  await store.close();
  const other = denoKvStore(() => openKv(path));
  const kv = await openKv(path);
  await until(async () => {
    const lives = new Set<unknown>();
    await other.append("log", "x", { ttlMs, max: 1 }); // A write is retried if the file is locked.
    for await (const { key } of kv.list({ start: ["mcp", "entry"], end: ["mcp", "entry~"] })) lives.add(key[2]);
    // Two epochs remain: the last epoch of the log, which expired less than a minute ago, and the epoch of the other
    // log.
    return lives.size <= 2;
  }, "the entries of earlier epochs are deleted");
  kv.close();
  await other.close();
});

/** Counts the keys of parts and of pending records. Also returns the names of the parts. */
async function readParts(kv: DenoKv) {
  const names = new Set<string>();
  const kinds = { part: 0, "value part": 0, pending: 0 };
  for await (const { key } of kv.list({ start: ["mcp"], end: ["mcp~"] })) {
    const kind = String(key[1]);
    if (kind !== "part" && kind !== "value part" && kind !== "pending") continue;
    kinds[kind]++;
    if (kind !== "pending") names.add(String(key[3]));
  }
  return { names: names.size, ...kinds };
}

const long = "y".repeat(200_000);
const LONG_PARTS = 4;

test("processes that create the same log at the same time leave no parts of the attempts that lost", async () => {
  const path = `${folder}/races.db`;
  const stores = Array.from({ length: 3 }, () => denoKvStore(() => openKv(path), { timeoutMs: 20_000 }));
  const logs = Array.from({ length: 10 }, (_, i) => `log${i}`);
  for (const log of logs) await Promise.all(stores.map((store) => store.append(log, long, { ttlMs, max: 32 })));
  const kv = await openKv(path);
  const entries = logs.length * stores.length;
  assertEquals(await readParts(kv), { names: entries, part: LONG_PARTS * entries, "value part": 0, pending: 0 });
  kv.close();
  for (const store of stores) await store.close();
});

test("a write that is refused because of its version leaves no parts", async () => {
  const path = `${folder}/refused.db`;
  const stores = Array.from({ length: 3 }, () => denoKvStore(() => openKv(path), { timeoutMs: 20_000 }));
  for (let i = 0; i < 5; i++) {
    await Promise.all(stores.map((store) => store.set(`key${i}`, long, { ttlMs, version: null })));
  }
  assertEquals(await stores[0].set("key0", long, { ttlMs, version: "other" }), undefined);
  const kv = await openKv(path);
  assertEquals(await readParts(kv), { names: 5, part: 0, "value part": 5 * LONG_PARTS, pending: 0 });
  kv.close();
  for (const store of stores) await store.close();
});

test("two writes with the same token do not mix their parts", async () => {
  const path = `${folder}/tokens.db`;
  const stores = Array.from({ length: 2 }, () => denoKvStore(() => openKv(path), { timeoutMs: 20_000 }));
  for (let i = 0; i < 5; i++) {
    const token = `order-${i}`;
    const write = async (store: Store, letter: string) => {
      const text = letter.repeat(long.length);
      await store.append("log", text, { ttlMs, max: 100, token });
      await store.set(`key${i}`, text, { ttlMs, token });
    };
    await Promise.all(stores.map((store, at) => write(store, "ab"[at])));
    // The first write has taken effect.
    await write(stores[0], "c");
  }
  const { entries } = await stores[0].read("log", { limit: 100 });
  const values = await stores[0].list("key", { limit: 100 });
  const isWhole = ({ value }: { readonly value: string }) => /^(a+|b+)$/.test(value) && value.length === long.length;
  assertEquals([entries, values].map((all) => all.filter(isWhole).length), [5, 5]);
  for (const store of stores) await store.close();
});

test("the parts of a process that has ended before its commit are removed by a sweep", async () => {
  const path = `${folder}/crashed.db`;
  const kv = await openKv(path);
  let commits = 0;
  // The process writes the parts, and then ends.
  const crashing = denoKvStore(async () => {
    const own = await openKv(path);
    return new Proxy(own, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== "atomic") return typeof value === "function" ? value.bind(target) : value;
        return () => {
          const change = target.atomic();
          const { set } = change;
          change.set = (key, ...rest) => {
            if (["log", "value"].includes(String(key[1]))) change.commit = () => (commits++, new Promise(() => {}));
            return set.call(change, key, ...rest);
          };
          return change;
        };
      },
    });
  }, { timeoutMs: 300 });
  await assertRejects(async () => await crashing.append("log", long, { ttlMs, max: 32 }));
  await assertRejects(async () => await crashing.set("key", long, { ttlMs }));
  await until(() => commits === 2, "all parts have been written");
  const left = await readParts(kv);
  assert(left.part >= LONG_PARTS && left["value part"] >= LONG_PARTS && left.pending >= 2, JSON.stringify(left));
  const { now } = Date;
  try {
    // A sweep removes what is older than a minute.
    Date.now = () => now() + 150_000;
    const store = denoKvStore(() => openKv(path), { timeoutMs: 20_000 });
    await store.set("other", long, { ttlMs });
    await until(async () => (await readParts(kv)).pending === 0, "the sweep");
    assertEquals(await readParts(kv), { names: 1, part: 0, "value part": LONG_PARTS, pending: 0 });
    assertEquals((await store.get("other"))?.value, long);
    await store.close();
  } finally {
    Date.now = now;
  }
  await crashing.close();
  kv.close();
});

/** The program of a process that appends entries until it is killed. */
const WORKER = `
import { denoKvStore } from ${JSON.stringify(new URL("../../src/stores/deno_kv.ts", import.meta.url).href)};
const [path, name, count] = Deno.args;
const store = denoKvStore(() => Deno.openKv(path), { timeoutMs: 20_000 });
for (let i = 1; i <= Number(count);) {
  try {
    await store.append("count", name + "-" + i, { ttlMs: 60000, max: 10000, token: name + "-" + i });
    console.log(name + "-" + i++);
  } catch {}
}
await store.close();
`;

function work(path: string, name: string, count: number) {
  const args = ["run", "--quiet", "--no-check", "--unstable-kv", "-A", `${folder}/worker.js`, path, name, `${count}`];
  const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped" }).spawn();
  const acknowledged: string[] = [];
  const reading = (async () => {
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      acknowledged.push(...lines);
    }
    await child.status;
  })();
  return { child, acknowledged, reading };
}

test("if several processes write concurrently and one of them is killed, no entry is lost or doubled", async () => {
  writeFileSync(`${folder}/worker.js`, WORKER);
  const path = `${folder}/shared.db`;
  const store = denoKvStore(() => openKv(path), { timeoutMs: 20_000 });
  const heard: string[] = [];
  await store.subscribe("count", (text) => void heard.push(text));
  const [a, b, c] = ["a", "b", "c"].map((name) => work(path, name, name === "c" ? 1_000_000 : 100));
  await until(() => c.acknowledged.length > 20, "the third process writes");
  c.child.kill("SIGKILL");
  await Promise.all([a.reading, b.reading, c.reading]);
  const { entries } = await store.read("count", { limit: 1000 });
  const texts = entries.map(({ value }) => value);
  assertEquals(new Set(texts).size, texts.length, "an entry is doubled");
  for (const text of [...a.acknowledged, ...b.acknowledged, ...c.acknowledged]) assert(texts.includes(text), text);
  await until(() => heard.length === texts.length, "each entry has been received");
  assertEquals(heard, texts);
  await store.close();
});

Deno.test("cleanup: the Deno KV files are deleted", () => rmSync(folder, { recursive: true }));
