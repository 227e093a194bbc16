// Measures the latency and the CPU time of operations of `redisStore` and `postgresStore`, in alternating rounds. The
// servers run on this machine. PostgreSQL writes each commit to the disk, and Redis writes nothing.
//
// deno task load:stores [--rounds N]
import process from "node:process";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import type { Awaitable, Store } from "../../src/stores/stores.ts";
import { until } from "../support/behaviour.ts";
import { readOptions } from "../support/options.ts";
import { CLIENTS } from "../support/postgres/clients.ts";
import { startPostgres } from "../support/postgres/server.ts";
import { CLIENTS as REDIS_CLIENTS } from "../support/redis/clients.ts";
import { startRedis } from "../support/redis/server.ts";

const rounds = Number(readOptions(Deno.args, { values: ["--rounds"], flags: [] }).get("--rounds") ?? 5);
/** Number of operations per round, which run one after another. */
const SINGLE = 200;
/** Number of appends per round, to 50 logs, of which 32 run at the same time. */
const TOGETHER = 1000;

await using redis = startRedis();
await using postgres = startPostgres("-c", "fsync=on");
const [nodeRedis] = REDIS_CLIENTS;
const options = { timeoutMs: 20_000 };
const stores: Record<string, () => Store> = {
  "node-redis": () => redisStore(() => nodeRedis.connect(redis.socket), options),
};
for (const { name, connect } of CLIENTS) {
  stores[name] = () => postgresStore(() => connect({ folder: postgres.folder, max: 10 }), options);
}

/** The results of one operation: milliseconds of each run, and microseconds of CPU time per run in each round. */
interface Result {
  readonly ms: number[];
  readonly cpu: number[];
}

const results = new Map<string, Result>();
const value = "x".repeat(300);
const ttlMs = 600_000;

async function measure(name: string, count: number, run: (i: number) => Awaitable<unknown>, atOnce = 1): Promise<void> {
  const result = results.get(name) ?? { ms: [], cpu: [] };
  results.set(name, result);
  const before = process.cpuUsage();
  let next = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < count) {
      const began = performance.now();
      await run(next++);
      result.ms.push(performance.now() - began);
    }
  }));
  const { user, system } = process.cpuUsage(before);
  result.cpu.push((user + system) / count);
}

async function runRound(name: string, store: Store, other: Store): Promise<void> {
  await measure(`${name}: get`, SINGLE, () => store.get("key"));
  await measure(`${name}: set`, SINGLE, (i) => store.set("key", `${i}${value}`, { ttlMs }));
  await measure(`${name}: append`, SINGLE, () => store.append("log", value, { ttlMs, max: 1000 }));
  await measure(
    `${name}: append, 32 at once`,
    TOGETHER,
    (i) => store.append(`log${i % 50}`, value, { ttlMs, max: 1000 }),
    32,
  );
  const waiting: (() => void)[] = [];
  const stop = await other.subscribe("topic", () => waiting.shift()?.());
  await measure(`${name}: from publish to a subscriber in another process`, SINGLE, async () => {
    const heard = new Promise<void>((resolve) => waiting.push(resolve));
    await store.publish("topic", value);
    await heard;
  });
  stop();
}

const pairs = Object.entries(stores).map(([name, open]) => [name, open(), open()] as const);
for (const [, store, other] of pairs) {
  for (const each of [store, other]) {
    await until(async () => {
      try {
        await each.get("key");
        return true;
      } catch {
        return false;
      }
    }, "the server has started");
  }
}
for (let round = -1; round < rounds; round++) {
  for (const pair of pairs) await runRound(...pair);
  if (round < 0) results.clear(); // the first round warms up
}
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
console.log("| operation | median | CPU time of the client |\n| --- | ---: | ---: |");
for (const [name, { ms, cpu }] of results) {
  console.log(`| ${name} | ${median(ms).toFixed(2)} ms | ${Math.round(median(cpu))} µs |`);
}
for (const [, store, other] of pairs) await Promise.all([store.close(), other.close()]);
