/**
 * The rules for values of a store.
 *
 * @module
 */
import type { ListOptions, Store } from "../core/store.ts";
import { equal, MINUTE, type Rule, until, wait } from "./store_bench.ts";

/** The rules for values. */
export const VALUE_RULES: readonly Rule[] = [
  ["a value that was never written is undefined", async (bench) => {
    equal(await bench.open().get(bench.key), undefined);
  }],
  ["a value is read by another process", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const version = await a.set(bench.key, 'one ✓ \n "', MINUTE);
    equal(await b.get(bench.key), { value: 'one ✓ \n "', version });
  }],
  ["each write has another version, even for the same value", async (bench) => {
    const store = bench.open();
    const versions = new Set<string | undefined>();
    for (let i = 0; i < 10; i++) versions.add(await store.set(bench.key, "same", MINUTE));
    equal([versions.size, versions.has(undefined)], [10, false]);
  }],
  ["a write with a version fails after another write", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const version = await a.set(bench.key, "1", MINUTE);
    const next = await b.set(bench.key, "2", { ...MINUTE, version });
    equal(typeof next, "string");
    equal(await a.set(bench.key, "3", { ...MINUTE, version }), undefined);
    equal(await a.get(bench.key), { value: "2", version: next });
  }],
  ["a write with the version null succeeds only if there is no value", async (bench) => {
    const store = bench.open();
    equal(typeof await store.set(bench.key, "1", { ...MINUTE, version: null }), "string");
    equal(await store.set(bench.key, "2", { ...MINUTE, version: null }), undefined);
    await store.delete(bench.key);
    equal(typeof await store.set(bench.key, "3", { ...MINUTE, version: null }), "string");
  }],
  ["of many writes with the same version, a single write succeeds", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const version = await stores[0].set(bench.key, "0", MINUTE);
    const done = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2].set(bench.key, `${i}`, { ...MINUTE, version })),
    );
    equal(done.filter((version) => version !== undefined).length, 1);
  }],
  ["counters that are incremented with versions lose no increments", async (bench) => {
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
    await store.set(bench.key, "1", { ttlMs: 1000 });
    const found = await store.get(bench.key);
    equal(found?.value, "1");
    await wait(1200);
    equal(await store.get(bench.key), undefined);
    equal(await store.set(bench.key, "2", { ...MINUTE, version: found?.version }), undefined);
    equal(typeof await store.set(bench.key, "3", { ...MINUTE, version: null }), "string");
  }],
  ["a write renews the time to live", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "1", { ttlMs: 200 });
    await store.set(bench.key, "2", MINUTE);
    await wait(300);
    equal((await store.get(bench.key))?.value, "2");
  }],
  ["removing a value requires its version, and can be repeated", async (bench) => {
    const store = bench.open();
    const old = await store.set(bench.key, "1", MINUTE);
    const version = await store.set(bench.key, "2", MINUTE);
    equal(await store.delete(bench.key, { version: old }), false);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.get(bench.key), undefined);
    equal(await store.delete(bench.key), true);
  }],
  ["text beyond ASCII is returned unchanged", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, WORDS, MINUTE);
    equal((await store.get(bench.key))?.value, WORDS);
    equal((await store.list(bench.key, { limit: 1 })).map(({ value }) => value), [WORDS]);
  }],
  ["a time to live with a fraction becomes whole milliseconds", async (bench) => {
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
  ["a value expires within 500 ms after its time to live", async (bench) => {
    const store = bench.open();
    const since = performance.now();
    await store.set(bench.key, "1", { ttlMs: 300 });
    await store.append(bench.key, "1", { ttlMs: 300, max: 1 });
    const late = performance.now() - since;
    await wait(800);
    equal(await store.get(bench.key), undefined);
    equal(await store.list(bench.key, { limit: 1 }), []);
    equal((await store.read(bench.key, { limit: 1 })).last, 0);
    if (late > 300) return;
    // A value must not expire before its time either.
    await store.set(bench.key, "2", { ttlMs: 2000 });
    await wait(1000);
    equal((await store.get(bench.key))?.value, "2");
  }],
  ["a write with a token is done once", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const first = { ...MINUTE, version: null, token: "first" };
    equal([await a.set(bench.key, "1", first), await b.set(bench.key, "1", first)], ["first", "first"]);
    const second = { ...MINUTE, version: "first", token: "second" };
    equal([await a.set(bench.key, "2", second), await b.set(bench.key, "3", second)], ["second", "second"]);
    equal(await a.get(bench.key), { value: "2", version: "second" });
    equal(await a.set(bench.key, "1", first), undefined);
  }],
  ["values are listed by their prefix, sorted by key and in pages", async (bench) => {
    const store = bench.open();
    const list = async (prefix: string, options: ListOptions) =>
      (await store.list(bench.key + prefix, options)).map(({ key, value }) => [key.slice(bench.key.length), value]);
    const names = ["_a", "_B", "_-", "__", "_1", "xa"];
    for (const [index, name] of names.entries()) await store.set(bench.key + name, `${index}`, MINUTE);
    // Sorted by character code: a key is not a number, its case matters, and it contains no wildcards.
    const all = [["_-", "2"], ["_1", "4"], ["_B", "1"], ["__", "3"], ["_a", "0"]];
    equal(await list("_", { limit: 10 }), all);
    equal(await list("_", { limit: 2 }), all.slice(0, 2));
    equal(await list("_", { limit: 2, after: `${bench.key}_1` }), all.slice(2, 4));
    equal(await list("_", { limit: 2, after: `${bench.key}_a` }), []);
    equal(await list("y", { limit: 2 }), []);
    const [{ key, version }] = await store.list(`${bench.key}x`, { limit: 1 });
    equal(await store.get(key), { value: "5", version });
  }],
  ["a value that was removed or has expired is not listed", async (bench) => {
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

/** Text with characters of one to four bytes. */
const WORDS = "aé✓中😀\u2028";
