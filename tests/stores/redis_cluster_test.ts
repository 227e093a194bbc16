// `redisStore` on a real cluster of three nodes, with each Redis client that supports clusters.
import { execFileSync } from "node:child_process";
import { assertEquals } from "@std/assert";
import { type RedisClient, redisStore } from "../../src/stores/redis/redis.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { startCluster } from "../support/redis/cluster.ts";
import { missingRedis } from "../support/redis/server.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";

const clients: Readonly<Record<string, (ports: readonly number[]) => Promise<RedisClient>>> = {
  async "node-redis"(ports) {
    const { createCluster } = await import("redis");
    return createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) });
  },
  async "ioredis"(ports) {
    const { Cluster } = await import("ioredis");
    return new Cluster(ports.map((port) => ({ host: "127.0.0.1", port })), { enableOfflineQueue: false });
  },
  async "iovalkey"(ports) {
    const { Cluster } = await import("iovalkey");
    return new Cluster(ports.map((port) => ({ host: "127.0.0.1", port })), { enableOfflineQueue: false });
  },
};

const cluster = new SharedServer(startCluster, missingRedis);

function test(name: string, fn: () => Promise<void>): void {
  // The clients look for other nodes in the background, so the test may end with open connections.
  cluster.test(`cluster: ${name}`, fn, { sanitizeResources: false, sanitizeOps: false });
}

async function open(connect: typeof clients[string]): Promise<Store> {
  const store = redisStore(() => connect(cluster.running.ports), { timeoutMs: 20_000 });
  await until(() => isUp(store), "the cluster answers");
  return store;
}

for (const [name, connect] of Object.entries(clients)) {
  testStore(() => open(connect), { test: (rule, run) => test(`${name} ${rule}`, run) });

  test(`${name}: all nodes get the scripts again after they have lost them`, async () => {
    const store = await open(connect);
    const ttlMs = 60_000;
    const logs = Array.from({ length: 20 }, (_, i) => `${name.replace("-", "")}-script-${i}`);
    const append = () => Promise.all(logs.map((log) => store.append(log, "", { ttlMs, max: 10 })));
    await append();
    for (const { socket } of cluster.running.nodes) execFileSync("redis-cli", ["-s", socket, "script", "flush"]);
    assertEquals(await append(), logs.map(() => 2));
    await store.close();
  });

  test(`${name}: values and logs on all nodes are listed and read`, async () => {
    const [store, other] = [await open(connect), await open(connect)];
    const ttlMs = 60_000;
    const keys = Array.from({ length: 40 }, (_, i) => `${name.replace("-", "")}${i}`).sort();
    await Promise.all(keys.map((key) => store.set(key, key, { ttlMs })));
    await store.delete(keys[3]);
    const heard: string[] = [];
    for (const key of keys) await other.subscribe(key, (text) => void heard.push(text));
    for (const key of keys) await store.publish(key, key);
    await until(() => heard.length === keys.length, "each topic is received");
    const found = await other.list(name.replace("-", ""), { limit: 1000 });
    assertEquals(found.map(({ key }) => key), keys.toSpliced(3, 1));
    await store.close();
    await other.close();
  });
}
