// `redisStore` on a real Redis server, with each Redis client: it fulfils the contract of a store, even if the server
// is killed, paused or flushed.
import { execFileSync } from "node:child_process";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { redisStore, type RedisStoreOptions } from "../../src/stores/redis/redis.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { type ClientKind, CLIENTS } from "../support/redis/clients.ts";
import { missingRedis, type RedisServer, startRedis } from "../support/redis/server.ts";
import { needs } from "../support/required.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";

/** The server for the contract tests. */
const shared = new SharedServer(startReady, missingRedis);

async function startReady(): Promise<RedisServer> {
  const server = startRedis();
  const store = redisStore(() => CLIENTS[0].connect(server.socket));
  await until(() => isUp(store), "the server has started");
  await store.close();
  return server;
}

for (const { name, connect } of CLIENTS) {
  testStore(() => redisStore(() => connect(shared.running.socket)), {
    test: (rule, run) => shared.test(`${name} ${rule}`, run),
  });
}

/** Runs a test with two stores on a separate server, for each Redis client. */
function each(name: string, run: (parts: Parts) => Promise<void>): void {
  for (const kind of CLIENTS) {
    Deno.test({
      ...needs(`${kind.name}: ${name}`, missingRedis),
      async fn() {
        await using server = startRedis("--port", "0");
        const open = (options?: RedisStoreOptions) => redisStore(() => kind.connect(server.socket), options);
        const stores = [open(), open()] as const;
        for (const store of stores) await until(() => isUp(store), "the server has started");
        await run({ server, kind, open, store: stores[0], other: stores[1] });
        for (const store of stores) await store.close();
      },
    });
  }
}

interface Parts {
  readonly server: RedisServer;
  readonly kind: ClientKind;
  readonly store: Store;
  readonly other: Store;
  open(options?: RedisStoreOptions): Store;
}

const ttlMs = 60_000;

each(
  "after the server was killed, subscribers are notified of the gap and of later entries",
  async ({ server, store, other }) => {
    const heard: unknown[] = [];
    for (const text of ["a", "b"]) await other.publish("topic", text);
    await store.subscribe("topic", (text) => void heard.push(text), { after: 1, onGap: (last) => heard.push(last) });
    await until(() => heard.length > 0, "the second text");
    await server.kill();
    await until(async () => !await isUp(store) && !await isUp(other), "the store is unavailable");
    server.start();
    await until(async () => await isUp(store) && await isUp(other), "the store is available again");
    for (const text of ["1", "2", "3"]) await other.publish("topic", text);
    await until(() => heard.includes("3"), "the last text");
    // The data was lost, so the topic starts again.
    assertEquals([heard[0], typeof heard[1], heard.slice(2)], ["b", "number", ["1", "2", "3"]]);
  },
);

each("while the server is paused, operations time out, and no operation runs twice", async (parts) => {
  const { server, store, other } = parts;
  server.pause();
  const start = performance.now();
  await assertRejects(async () => await store.append("log", "x", { ttlMs, max: 10, token: "one" }));
  assert(performance.now() - start < 5000, "the operation timed out too late");
  server.resume();
  await until(async () => await isUp(store) && await isUp(other), "the store is available again");
  await store.append("log", "x", { ttlMs, max: 10, token: "one" });
  assertEquals((await other.read("log", { limit: 10 })).entries.map(({ value }) => value), ["x"]);
});

each("stores with different prefixes do not see each other's data", async ({ store, open }) => {
  const other = open({ prefix: "other:" });
  await store.set("key", "1", { ttlMs });
  await store.append("log", "1", { ttlMs, max: 10 });
  const heard: string[] = [];
  await store.subscribe("log", (text) => void heard.push(text));
  await other.publish("log", "2");
  await store.publish("log", "3");
  await until(() => heard.length > 0, "an entry has arrived");
  assertEquals([heard, await other.get("key"), await other.list("", { limit: 9 })], [["3"], undefined, []]);
  await other.close();
});

each("a script is sent whole only once, and again after its node has lost it", async ({ server, store, other }) => {
  const ask = (...words: readonly string[]) =>
    execFileSync("redis-cli", ["-s", server.socket, ...words], { encoding: "utf8" });
  const count = (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(ask("info", "commandstats"))?.[1] ?? 0);
  const use = async () => {
    for (const text of ["1", "2", "3"]) {
      await store.append("log", text, { ttlMs, max: 10 });
      await store.set("key", text, { ttlMs });
      assertEquals((await other.get("key"))?.value, text);
    }
  };
  await use();
  ask("config", "resetstat");
  await use();
  assertEquals([count("eval"), count("evalsha")], [0, 9]);
  ask("script", "flush");
  await use();
  assertEquals(count("eval"), 3);
  assertEquals((await store.read("log", { limit: 10 })).entries.map(({ value }) => value), "123123123".split(""));
});

each("deleted keys are removed from the index", async ({ store, other }) => {
  for (let i = 0; i < 300; i++) await store.set(`k${i}`, "", { ttlMs: i % 3 ? 20 : ttlMs });
  await until(async () => !await other.get("k298"), "some have expired");
  for (let i = 0; i < 300; i += 6) await store.delete(`k${i}`);
  assertEquals((await other.list("k", { limit: 1000 })).length, 50);
  const pages: string[] = [];
  for (let after = "";;) {
    const page = await other.list("k", { after, limit: 7 });
    if (!page.length) break;
    pages.push(...page.map(({ key }) => key));
    after = pages[pages.length - 1];
  }
  assertEquals(pages, Array.from({ length: 50 }, (_, i) => `k${6 * i + 3}`).sort());
});

Deno.test("redisStore refuses a value that is not a function, a prefix that contains braces, and an unknown client", async () => {
  // deno-lint-ignore no-explicit-any -- as from JavaScript
  const make = redisStore as any;
  for (
    const [args, expected] of [[[{}], sentence("TypeError")], [
      [() => ({}), { prefix: "{a}" }],
      sentence("prefix", "{a}"),
    ]]
  ) {
    const error = await Promise.resolve().then(() => make(...args)).catch((error: unknown) => error);
    assertEquals(String(error), expected);
  }
  const store: Store = make(() => ({}));
  await assertRejects(async () => await store.get("key"), Error, sentence());
  await store.close();
});

each(
  "a client that is returned twice is refused, because messages need a separate client",
  async ({ server, kind }) => {
    const client = await kind.connect(server.socket);
    const store = redisStore(() => client);
    await store.set("key", "1", { ttlMs });
    await assertRejects(async () => await store.subscribe("topic", () => {}), Error, sentence());
    assertEquals((await store.get("key"))?.value, "1");
    await store.close();
  },
);
