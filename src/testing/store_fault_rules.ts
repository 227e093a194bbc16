/**
 * Rules for stores whose engine fails, and for the limits of stores.
 */
import type { Awaitable } from "../server/engine/store.ts";
import {
  equal,
  type Faults,
  LOG,
  MINUTE,
  rejects,
  rejectsEarly,
  rejectsRange,
  type Rule,
  until,
} from "./store_bench.ts";

export const FAULT_RULES: readonly Rule[] = [
  ["a command that is repeated takes effect only once", async (bench) => {
    const store = bench.open({ repeats: true });
    const version = await store.set(bench.key, "1", { ...MINUTE, version: null });
    equal(typeof version, "string");
    equal(typeof await store.set(bench.key, "2", { ...MINUTE, version }), "string");
    equal([await store.append(bench.key, "a", LOG), await store.append(bench.key, "b", LOG)], [1, 2]);
    equal((await store.read(bench.key, { limit: 10 })).entries.map(({ value }) => value), ["a", "b"]);
  }],
  ["a command whose response was lost is retried, and takes effect only once", async (bench) => {
    const faults: Faults = {};
    const store = bench.open(faults);
    faults.loses = 1;
    const version = await store.set(bench.key, "1", { ...MINUTE, version: null });
    equal(await store.get(bench.key), { value: "1", version });
    faults.loses = 1;
    equal(typeof await store.set(bench.key, "2", { ...MINUTE, version }), "string");
    faults.loses = 1;
    equal(await store.append(bench.key, "a", LOG), 1);
    equal((await store.read(bench.key, { limit: 10 })).last, 1);
    faults.loses = 1;
    equal(await store.delete(bench.key), true);
  }],
  [
    "an operation times out if the engine does not respond, and the store uses the engine again when it responds",
    async (bench) => {
      const faults: Faults = {};
      const store = bench.open(faults, { timeoutMs: 300 });
      const heard: string[] = [];
      // Try again, because the first connection of a busy machine can take longer than the timeout.
      await until(() => succeeds(() => store.subscribe(bench.key, (text) => void heard.push(text))));
      faults.stalls = true;
      const since = performance.now();
      await rejects(() => store.get(bench.key), "timeoutMs");
      const ms = performance.now() - since;
      if (ms > 2000) throw new Error(`The store rejected the operation after ${ms} ms, although the timeout is 300 ms`);
      faults.stalls = false;
      await until(() => succeeds(() => store.publish(bench.key, "back")));
      await until(() => heard.includes("back"));
    },
  ],
  ["the number of operations that wait for an engine is limited", async (bench) => {
    const store = bench.open({ stalls: true }, { timeoutMs: 300, pending: 2 });
    const waiting = [store.get(bench.key), store.get(bench.key)].map((each) => rejects(() => each, "timeoutMs"));
    await rejects(() => store.get(bench.key), "pending");
    await Promise.all(waiting);
  }],
  ["a closed store rejects pending operations and all later operations", async (bench) => {
    const store = bench.open({ stalls: true });
    const pending = rejectsEarly(() => store.get(bench.key));
    await store.close();
    await pending;
    await rejectsEarly(() => store.set(bench.key, "1", MINUTE));
    await rejectsEarly(() => store.subscribe(bench.key, () => {}));
    await store.close();
  }],
  ["the store rejects values, keys, times to live and ids that exceed the limits", async (bench) => {
    const store = bench.open();
    await rejects(() => store.set(bench.key, "x".repeat(2 ** 20 + 1), MINUTE), "valueBytes");
    await rejects(() => store.append(bench.key, "✓".repeat(2 ** 19), LOG), "valueBytes");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 1e9 }), "logEntries");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 0.5 }), "max");
    await rejectsRange(() => store.set(bench.key, "a\u0000b", MINUTE));
    await rejectsRange(() => store.set(bench.key, "a\ud800b", MINUTE));
    await rejectsRange(() => store.append(bench.key, "\udc00", LOG));
    for (const token of ["", "a b", "k".repeat(257)]) {
      await rejects(() => store.set(bench.key, "1", { ...MINUTE, token }), "token");
      await rejects(() => store.append(bench.key, "1", { ...LOG, token }), "token");
    }
    for (const limit of [0, 0.5, 1001]) await rejects(() => store.list(bench.key, { limit }), "limit");
    for (const key of ["", "a b", "a:b", "ä", "k".repeat(257)]) await rejects(() => store.get(key), "key");
    for (const ttlMs of [0, -1, NaN, Infinity]) await rejects(() => store.set(bench.key, "1", { ttlMs }), "ttlMs");
    for (const after of [-1, 0.5, NaN]) await rejects(() => store.read(bench.key, { after, limit: 1 }), "id");
    equal(await store.get(bench.key), undefined);
  }],
  ["the store closes an engine that keeps failing, and creates a new engine", async (bench) => {
    const faults: Faults = {};
    const store = bench.open(faults);
    const heard: string[] = [];
    await store.set(bench.key, "1", MINUTE);
    await store.subscribe(bench.key, (text) => void heard.push(text));
    faults.isKilled = true;
    for (let i = 0; i < 3; i++) await rejects(() => store.get(bench.key), "get");
    faults.isKilled = false;
    await until(() => succeeds(async () => equal((await store.get(bench.key))?.value, "1")));
    await bench.open().publish(bench.key, "back");
    await until(() => heard.includes("back"));
  }],
];

async function succeeds(run: () => Awaitable<unknown>): Promise<boolean> {
  try {
    await run();
    return true;
  } catch {
    return false;
  }
}
