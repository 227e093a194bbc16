// A store on a real Redis server, built only on public exports of the library: it fulfils the contract of a store, even
// if the server is killed and restarted.
import { assertEquals } from "@std/assert";
import { customStore, type Store, type StoreOptions } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { redisEngine } from "../support/redis/engine.ts";
import { missingRedis, type RedisServer, startRedis } from "../support/redis/server.ts";
import { needs } from "../support/required.ts";

let server: RedisServer | undefined;

function open(options?: StoreOptions): Store {
  const { socket } = server ??= startRedis();
  return customStore((options) => redisEngine(socket, options), options);
}

async function isUp(store: Store): Promise<boolean> {
  try {
    await store.get("key");
    return true;
  } catch {
    return false;
  }
}

/** Number of tests that have not ended. The last test stops the server. */
let left = 0;

function test(name: string, fn: () => Promise<void>): void {
  left++;
  Deno.test({
    ...needs(`redis ${name}`, missingRedis),
    async fn() {
      try {
        await fn();
      } finally {
        if (!--left) await server?.[Symbol.asyncDispose]();
      }
    },
  });
}

test("after Redis was killed and restarted, the store works again, and subscribers are notified of the gap and of later entries", async () => {
  const [store, other] = [open(), open()];
  await until(() => isUp(store), "the server has started");
  const heard: unknown[] = [];
  for (const text of ["a", "b"]) await other.publish("topic", text);
  await store.subscribe("topic", (text) => void heard.push(text), { after: 1, onGap: (last) => heard.push(last) });
  await until(() => heard.length > 0, "the second text");
  await server?.kill();
  await until(async () => !await isUp(store) && !await isUp(other), "the store is unavailable");
  server?.start();
  await until(async () => await isUp(store) && await isUp(other), "the store is available again");
  for (const text of ["1", "2", "3"]) await other.publish("topic", text);
  await until(() => heard.includes("3"), "the last text");
  // The data was lost, so the topic starts again.
  assertEquals([heard[0], typeof heard[1], heard.slice(2)], ["b", "number", ["1", "2", "3"]]);
  await store.set("key", "value", { ttlMs: 60_000 });
  assertEquals((await other.list("k", { limit: 1 }))[0].value, "value");
  await Promise.all([store.close(), other.close()]);
});

// The contract tests run on the restarted server.
testStore(() => open(), { test });
