/**
 * Rules for the logs in a store.
 */
import type { LogPage, ReadOptions, Store } from "../server/engine/store.ts";
import { equal, LOG, MINUTE, type Rule, until, wait } from "./store_bench.ts";

export const LOG_RULES: readonly Rule[] = [
  ["a log that does not exist is empty", async (bench) => {
    equal(await bench.open().read(bench.key, { limit: 10 }), { entries: [], first: 1, last: 0, epoch: "" });
  }],
  ["the entries of a log are numbered from 1, in the order in which they were appended", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    for (let i = 1; i <= 5; i++) equal(await (i % 2 ? a : b).append(bench.key, `v${i}`, LOG), i);
    equal(await readAll(b, bench.key, { after: 2, limit: 2 }), {
      entries: [{ id: 3, value: "v3" }, { id: 4, value: "v4" }],
      first: 1,
      last: 5,
    });
    equal(await readAll(a, bench.key, { after: 5, limit: 2 }), { entries: [], first: 1, last: 5 });
    equal(await readAll(a, bench.key, { limit: 0 }), { entries: [], first: 1, last: 5 });
  }],
  ["entries that several processes append at the same time get different ids", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2].append(bench.key, `${i}`, LOG)));
    equal(ids.sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i + 1));
    equal((await stores[0].read(bench.key, { limit: 100 })).entries.length, 40);
  }],
  [
    "a log drops its oldest entries if it exceeds max, and the ids of the remaining entries do not change",
    async (bench) => {
      const store = bench.open();
      for (let i = 1; i <= 7; i++) await store.append(bench.key, `v${i}`, { ...LOG, max: 3 });
      equal(await readAll(store, bench.key, { limit: 10 }), {
        entries: [5, 6, 7].map((id) => ({ id, value: `v${id}` })),
        first: 5,
        last: 7,
      });
    },
  ],
  ["a reader can tell that entries are missing if a log is trimmed between two reads", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    for (let i = 1; i <= 6; i++) await a.append(bench.key, `v${i}`, LOG);
    equal((await a.read(bench.key, { limit: 2 })).entries.map(({ id }) => id), [1, 2]);
    await b.trim(bench.key, 5);
    const { entries, first, last } = await a.read(bench.key, { after: 2, limit: 2 });
    equal([entries.map(({ id }) => id), first, last], [[5, 6], 5, 6]);
    await b.trim(bench.key, 100);
    equal(await readAll(a, bench.key, { limit: 2 }), { entries: [], first: 7, last: 6 });
    equal(await a.append(bench.key, "v7", LOG), 7);
  }],
  ["all entries of a log expire together, and each append renews the log's time to live", async (bench) => {
    const store = bench.open();
    await store.append(bench.key, "1", { ...LOG, ttlMs: 1000 });
    await store.append(bench.key, "2", LOG);
    await wait(1500);
    equal((await store.read(bench.key, { limit: 10 })).entries.length, 2);
    await store.append(bench.key, "3", { ...LOG, ttlMs: 500 });
    await until(async () => (await store.read(bench.key, { limit: 10 })).last === 0);
  }],
  ["a value and a log may have the same name", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "value", MINUTE);
    await store.append(bench.key, "entry", LOG);
    equal((await store.get(bench.key))?.value, "value");
    equal((await store.read(bench.key, { limit: 1 })).entries[0].value, "entry");
  }],
  ["a long value and a long log are returned completely", async (bench) => {
    const store = bench.open();
    const value = "0123456789abcdef".repeat(4000);
    await store.set(bench.key, value, MINUTE);
    equal((await store.get(bench.key))?.value === value, true);
    for (let i = 0; i < 60; i++) await store.append(bench.key, `${i}`, LOG);
    const { entries } = await store.read(bench.key, { limit: 100 });
    equal(entries.map(({ value }) => value), Array.from({ length: 60 }, (_, i) => `${i}`));
  }],
  ["a log keeps its epoch until the log is lost", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    await a.append(bench.key, "1", LOG);
    const { epoch } = await b.read(bench.key, { limit: 1 });
    equal([typeof epoch, epoch.length > 7], ["string", true]);
    await b.append(bench.key, "2", LOG);
    await b.trim(bench.key, 3);
    equal((await a.read(bench.key, { limit: 0 })).epoch, epoch);
    await b.append(bench.key, "3", { ...LOG, ttlMs: 500 });
    await until(async () => (await a.read(bench.key, { limit: 1 })).last === 0);
    for (let i = 1; i <= 3; i++) equal(await a.append(bench.key, `${i}`, LOG), i);
    const next = (await b.read(bench.key, { limit: 1 })).epoch;
    equal([next === epoch, next === ""], [false, false]);
    await a.append(`${bench.key}-2`, "1", LOG);
    equal((await a.read(`${bench.key}-2`, { limit: 1 })).epoch === next, false);
  }],
  ["an entry with a token is appended only once, even if other entries were appended in between", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const token = "one";
    equal(await a.append(bench.key, "1", { ...LOG, token }), 1);
    equal(await a.append(bench.key, "2", LOG), 2);
    equal(await b.append(bench.key, "3", { ...LOG, token: "three" }), 3);
    equal([await b.append(bench.key, "1", { ...LOG, token }), await a.append(bench.key, "1", { ...LOG, token })], [
      1,
      1,
    ]);
    equal(await a.append(bench.key, "3", { ...LOG, token: "three" }), 3);
    // A token that is used in one log can be used again in another log.
    equal(await a.append(`${bench.key}-2`, "1", { ...LOG, token: "three" }), 1);
    equal((await a.read(bench.key, { limit: 10 })).entries.map(({ value }) => value), ["1", "2", "3"]);
  }],
  ["concurrent appends with the same token append only one entry", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2].append(bench.key, "", { ...LOG, token: `t${i % 5}` })),
    );
    equal([new Set(ids).size, (await stores[0].read(bench.key, { limit: 100 })).last], [5, 5]);
  }],
  ["60 entries with 3 MB of non-ASCII text are returned completely", async (bench) => {
    const store = bench.open();
    const toValue = (index: number) => `${index} é✓😀 ${"0123456789abcdef".repeat(3125)}`;
    for (let i = 0; i < 60; i++) await store.append(bench.key, toValue(i), LOG);
    const values: string[] = [];
    while (values.length < 60) {
      const { entries } = await store.read(bench.key, { after: values.length, limit: 60 });
      if (!entries.length) break;
      for (const { value } of entries) values.push(value);
    }
    equal(values.length, 60);
    equal(values.findIndex((value, index) => value !== toValue(index)), -1);
  }],
];

/** Reads a log without its epoch, which differs from run to run. */
async function readAll(store: Store, log: string, options: ReadOptions): Promise<Omit<LogPage, "epoch">> {
  const { entries, first, last } = await store.read(log, options);
  return { entries, first, last };
}
