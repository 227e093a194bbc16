// A store on a real Redis, of public names only: it keeps the contract, also if Redis is killed and comes back.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { customStore, type Store, type StoreOptions } from "../../src/stores/stores.ts";
import { type Child, startChild } from "../../src/testing/http_server.ts";
import { testStore } from "../../src/testing/stores.ts";
import { until } from "../support/behaviour.ts";
import { redisEngine } from "../support/redis/engine.ts";

const command = (process.env.PATH ?? "").split(":").map((folder) => `${folder}/redis-server`).find(existsSync);
const ignore = command === undefined; // install the package redis-server to run these
const title = (name: string) => `redis ${name}${ignore ? " (redis-server is not installed)" : ""}`;

const folder = ignore ? "" : mkdtempSync(`${tmpdir()}/redis-`);
const socket = `${folder}/redis.sock`;
let running: Child | undefined;

function start(): void {
  const words = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--loglevel", "warning"];
  running = startChild([command ?? "", ...words]);
}

async function kill(): Promise<void> {
  running?.kill();
  await running?.exited;
  await running?.output.cancel();
  await running?.errors?.cancel();
  await running?.closeInput().catch(() => {}); // it has ended
}

function open(options?: StoreOptions): Store {
  if (!running) start();
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

/** Tests that have not run. The last one ends the server. */
let left = 0;

function test(name: string, fn: () => Promise<void>): void {
  left++;
  Deno.test({
    name: title(name),
    ignore,
    async fn() {
      try {
        await fn();
      } finally {
        if (!--left) {
          await kill();
          rmSync(folder, { recursive: true });
        }
      }
    },
  });
}

test("is killed and comes back: the store works again, and subscribers hear of the gap and of what follows", async () => {
  const [store, other] = [open(), open()];
  await until(() => isUp(store), "the server has started");
  const heard: unknown[] = [];
  for (const text of ["a", "b"]) await other.publish("topic", text);
  await store.subscribe("topic", (text) => void heard.push(text), { after: 1, onGap: (last) => heard.push(last) });
  await until(() => heard.length > 0, "the second text");
  await kill();
  await until(async () => !await isUp(store) && !await isUp(other), "the store is lost");
  start();
  await until(async () => await isUp(store) && await isUp(other), "the store is back");
  for (const text of ["1", "2", "3"]) await other.publish("topic", text);
  await until(() => heard.includes("3"), "the last text");
  // The data is lost, so the topic has begun again.
  assertEquals([heard[0], typeof heard[1], heard.slice(2)], ["b", "number", ["1", "2", "3"]]);
  await store.set("key", "value", { ttlMs: 60_000 });
  assertEquals((await other.list("k", { limit: 1 }))[0].value, "value");
  await Promise.all([store.close(), other.close()]);
});

// The server that was started again.
testStore(() => open(), { test });
