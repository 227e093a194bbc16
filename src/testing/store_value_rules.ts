/**
 * Rules for the values in a store.
 */
import type { ListOptions, Store } from "../server/engine/store.ts";
import { equal, MINUTE, type Rule, until, wait } from "./store_bench.ts";

export const VALUE_RULES: readonly Rule[] = [
  ["a value that was never written is undefined", async (bench) => {
    equal(await bench.open().get(bench.key), undefined);
  }],
  ["a process can read a value that another process has written", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const version = await a.set(bench.key, 'one ✓ \n "', MINUTE);
    equal(await b.get(bench.key), { value: 'one ✓ \n "', version });
  }],
  ["each write creates a new version, even if the value does not change", async (bench) => {
    const store = bench.open();
    const versions = new Set<string | undefined>();
    for (let i = 0; i < 10; i++) versions.add(await store.set(bench.key, "same", MINUTE));
    equal([versions.size, versions.has(undefined)], [10, false]);
  }],
  ["a write that expects a version fails if another write has replaced this version", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const version = await a.set(bench.key, "1", MINUTE);
    const next = await b.set(bench.key, "2", { ...MINUTE, version });
    equal(typeof next, "string");
    equal(await a.set(bench.key, "3", { ...MINUTE, version }), undefined);
    equal(await a.get(bench.key), { value: "2", version: next });
  }],
  ["a write that expects the version null succeeds only if there is no value", async (bench) => {
    const store = bench.open();
    equal(typeof await store.set(bench.key, "1", { ...MINUTE, version: null }), "string");
    equal(await store.set(bench.key, "2", { ...MINUTE, version: null }), undefined);
    await store.delete(bench.key);
    equal(typeof await store.set(bench.key, "3", { ...MINUTE, version: null }), "string");
  }],
  ["if many concurrent writes expect the same version, only one write succeeds", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const version = await stores[0].set(bench.key, "0", MINUTE);
    const done = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2].set(bench.key, `${i}`, { ...MINUTE, version })),
    );
    equal(done.filter((version) => version !== undefined).length, 1);
  }],
  ["no increment is lost if processes increment a counter by writing with its version", async (bench) => {
    const count = async (store: Store) => {
      for (let done = 0; done < 10;) {
        const found = await store.get(bench.key);
        const value = String(Number(found?.value ?? 0) + 1);
        if (await store.set(bench.key, value, { ...MINUTE, version: found?.version ?? null }) !== undefined) done++;
      }
    };
    await Promise.all([bench.open(), bench.open(), bench.open()].map(count));
    equal((await bench.open().get(bench.key))?.value, "30");
  }],
  ["a value expires, even between a read and a write with its version", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "1", MINUTE);
    equal((await store.get(bench.key))?.value, "1");
    const version = await store.set(bench.key, "2", { ttlMs: 700 });
    await wait(1200);
    equal(await store.get(bench.key), undefined);
    equal(await store.set(bench.key, "3", { ...MINUTE, version }), undefined);
    equal(typeof await store.set(bench.key, "4", { ...MINUTE, version: null }), "string");
  }],
  ["a write renews the time to live", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "1", { ttlMs: 200 });
    await store.set(bench.key, "2", MINUTE);
    await wait(300);
    equal((await store.get(bench.key))?.value, "2");
  }],
  ["removing a value requires the value's version, and can be repeated", async (bench) => {
    const store = bench.open();
    const old = await store.set(bench.key, "1", MINUTE);
    const version = await store.set(bench.key, "2", MINUTE);
    equal(await store.delete(bench.key, { version: old }), false);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.get(bench.key), undefined);
    equal(await store.delete(bench.key), true);
  }],
  ["non-ASCII text is returned unchanged", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, WORDS, MINUTE);
    equal((await store.get(bench.key))?.value, WORDS);
    equal((await store.list(bench.key, { limit: 1 })).map(({ value }) => value), [WORDS]);
  }],
  ["a fractional time to live is rounded to whole milliseconds", async (bench) => {
    const given: unknown[] = [];
    const store = bench.open({
      onCommand: (name, args) => (name === "set" || name === "append") && given.push(Object(args[2]).ttlMs),
    });
    const ttlMs = 86_459_971.84;
    await store.set(bench.key, "1", { ttlMs });
    await store.append(bench.key, "1", { ttlMs, max: 1 });
    equal(given, [86_459_972, 86_459_972]);
    equal((await store.get(bench.key))?.value, "1");
    equal((await store.read(bench.key, { limit: 1 })).last, 1);
  }],
  ["a value expires at most 500 ms after its time to live has passed", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "1", { ttlMs: 300 });
    await store.append(bench.key, "1", { ttlMs: 300, max: 1 });
    await wait(800);
    equal(await store.get(bench.key), undefined);
    equal(await store.list(bench.key, { limit: 1 }), []);
    equal((await store.read(bench.key, { limit: 1 })).last, 0);
  }],
  ["a value does not expire before its time to live has passed", async (bench) => {
    const store = bench.open();
    await until(async () => {
      const since = performance.now();
      await store.set(bench.key, "1", { ttlMs: 2000 });
      await wait(1000);
      const value = (await store.get(bench.key))?.value;
      // On a busy machine, reading may take so long that the value has expired.
      if (value === undefined && performance.now() - since >= 2000) return false;
      equal(value, "1");
      return true;
    });
  }],
  ["a write with a token takes effect only once", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const first = { ...MINUTE, version: null, token: "first" };
    equal([await a.set(bench.key, "1", first), await b.set(bench.key, "1", first)], ["first", "first"]);
    const second = { ...MINUTE, version: "first", token: "second" };
    equal([await a.set(bench.key, "2", second), await b.set(bench.key, "3", second)], ["second", "second"]);
    equal(await a.get(bench.key), { value: "2", version: "second" });
    equal(await a.set(bench.key, "1", first), undefined);
  }],
  ["values with a prefix are listed in pages, sorted by key", async (bench) => {
    const store = bench.open();
    const list = async (prefix: string, options: ListOptions) =>
      (await store.list(bench.key + prefix, options)).map(({ key, value }) => [key.slice(bench.key.length), value]);
    const names = ["_a", "_B", "_-", "__", "_1", "xa"];
    for (const [index, name] of names.entries()) await store.set(bench.key + name, `${index}`, MINUTE);
    // Keys are sorted by character code, case matters, and `_` is not a wildcard.
    const all = [["_-", "2"], ["_1", "4"], ["_B", "1"], ["__", "3"], ["_a", "0"]];
    equal(await list("_", { limit: 10 }), all);
    equal(await list("_", { limit: 2 }), all.slice(0, 2));
    equal(await list("_", { limit: 2, after: `${bench.key}_1` }), all.slice(2, 4));
    equal(await list("_", { limit: 2, after: `${bench.key}_a` }), []);
    equal(await list("y", { limit: 2 }), []);
    const [{ key, version }] = await store.list(`${bench.key}x`, { limit: 1 });
    equal(await store.get(key), { value: "5", version });
  }],
  ["values that were removed or have expired are not listed", async (bench) => {
    const store = bench.open();
    await store.set(`${bench.key}-a`, "1", { ttlMs: 200 });
    await store.set(`${bench.key}-b`, "2", MINUTE);
    await store.set(`${bench.key}-c`, "3", MINUTE);
    await store.append(`${bench.key}-d`, "4", { ...MINUTE, max: 1 });
    await store.delete(`${bench.key}-b`);
    await until(async () => (await store.list(bench.key, { limit: 10 })).length === 1);
    equal((await store.list(bench.key, { limit: 10 }))[0].value, "3");
  }],
];

/** Text whose characters have one to four bytes in UTF-8. */
const WORDS = "aé✓中😀\u2028";
