// A store on a real Redis server, built only on public exports of the library: it fulfils the contract of a store, even
// if the server is killed and restarted.
import { assertEquals } from "@std/assert";
import { customStore, type Store, type StoreOptions } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { redisEngine } from "../support/redis/engine.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";

const shared = new SharedServer(startRedis, missingRedis);

const test = (name: string, fn: () => Promise<void>) => shared.test(`redis ${name}`, fn);

function open(options?: StoreOptions): Store {
  return customStore((options) => redisEngine(shared.running.socket, options), options);
}

test("after Redis was killed and restarted, the store works again, and subscribers are notified of the gap and of later entries", async () => {
  const [store, other] = [open(), open()];
  await until(() => isUp(store), "the server has started");
  const heard: unknown[] = [];
  for (const text of ["a", "b"]) await other.publish("topic", text);
  await store.subscribe("topic", (text) => void heard.push(text), { after: 1, onGap: (last) => heard.push(last) });
  await until(() => heard.length > 0, "the second text");
  await shared.running.kill();
  await until(async () => !await isUp(store) && !await isUp(other), "the store is unavailable");
  shared.running.start();
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
