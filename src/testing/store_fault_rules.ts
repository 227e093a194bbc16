/**
 * The rules for a store whose engine fails, and for its limits.
 *
 * @module
 */
import { equal, type Faults, LOG, MINUTE, rejects, type Rule, until } from "./store_bench.ts";

/** The rules for the behavior of a store when its engine fails or a limit is reached. */
export const FAULT_RULES: readonly Rule[] = [
  ["a repeated command has its effect only once", async (bench) => {
    const store = bench.open({ repeats: true });
    const version = await store.set(bench.key, "1", { ...MINUTE, version: null });
    equal(typeof version, "string");
    equal(typeof await store.set(bench.key, "2", { ...MINUTE, version }), "string");
    equal([await store.append(bench.key, "a", LOG), await store.append(bench.key, "b", LOG)], [1, 2]);
    equal((await store.read(bench.key, { limit: 10 })).entries.map(({ value }) => value), ["a", "b"]);
  }],
  ["a command whose response was lost is repeated, and has its effect only once", async (bench) => {
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
    "an operation on an engine that does not respond fails in time, and the engine is used again later",
    async (bench) => {
      const faults: Faults = {};
      const store = bench.open(faults, { timeoutMs: 300 });
      const heard: string[] = [];
      await store.subscribe(bench.key, (text) => void heard.push(text));
      faults.stalls = true;
      const since = performance.now();
      await rejects(() => store.get(bench.key), "timeoutMs");
      const ms = performance.now() - since;
      if (ms > 2000) throw new Error(`The store took ${ms} ms to give up, with a timeout of 300 ms`);
      faults.stalls = false;
      await until(async () => {
        try {
          return await store.publish(bench.key, "back") === undefined;
        } catch {
          return false;
        }
      });
      await until(() => heard.includes("back"));
    },
  ],
  ["operations that wait for an engine are limited", async (bench) => {
    const store = bench.open({ stalls: true }, { timeoutMs: 300, pending: 2 });
    const waiting = [store.get(bench.key), store.get(bench.key)].map((each) => rejects(() => each, "timeoutMs"));
    await rejects(() => store.get(bench.key), "pending");
    await Promise.all(waiting);
  }],
  ["a closed store rejects pending and later operations", async (bench) => {
    const store = bench.open({ stalls: true });
    const pending = rejects(() => store.get(bench.key), "closed");
    await store.close();
    await pending;
    await rejects(() => store.set(bench.key, "1", MINUTE), "closed");
    await rejects(() => store.subscribe(bench.key, () => {}), "closed");
    await store.close();
  }],
  ["values, keys, times and ids beyond the limits are rejected", async (bench) => {
    const store = bench.open();
    await rejects(() => store.set(bench.key, "x".repeat(2 ** 20 + 1), MINUTE), "valueBytes");
    await rejects(() => store.append(bench.key, "✓".repeat(2 ** 19), LOG), "valueBytes");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 1e9 }), "logEntries");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 0.5 }), "max");
    await rejects(() => store.set(bench.key, "a\u0000b", MINUTE), "U+0000");
    await rejects(() => store.set(bench.key, "a\ud800b", MINUTE), "lone surrogate");
    await rejects(() => store.append(bench.key, "\udc00", LOG), "lone surrogate");
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
  ["an engine that keeps failing is closed and created again", async (bench) => {
    const faults: Faults = {};
    const store = bench.open(faults);
    const heard: string[] = [];
    await store.set(bench.key, "1", MINUTE);
    await store.subscribe(bench.key, (text) => void heard.push(text));
    faults.isKilled = true;
    for (let i = 0; i < 3; i++) await rejects(() => store.get(bench.key), "Cannot get");
    faults.isKilled = false;
    await until(async () => {
      try {
        return (await store.get(bench.key))?.value === "1";
      } catch {
        return false;
      }
    });
    await bench.open().publish(bench.key, "back");
    await until(() => heard.includes("back"));
  }],
];
