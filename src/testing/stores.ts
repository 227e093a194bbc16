/**
 * The contract of a store as tests.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing/stores";
 *
 * const store = memoryStore();
 * testStore(() => store, { test: Deno.test });
 * ```
 *
 * @module
 */
import { INTERNALS } from "../core/call/internals.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { Awaitable, Store, StoreEngine } from "../core/store.ts";
import { customStore, type StoreOptions } from "../stores/custom_store.ts";

// Types in the signatures below that `@x/mcp/stores` also exports.
export type { Awaitable, Store } from "../core/store.ts";

/** A test of the contract. */
export interface StoreCase {
  /** The rule that must hold. */
  readonly name: string;
  /** Runs the test. Rejects if the store breaks the contract. */
  run(): Promise<void>;
}

/** Options of {@linkcode testStore}. */
export interface TestStoreOptions {
  /** Registers a test, such as `Deno.test`, or `test` of `bun:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
}

const OPTIONS: KnownOptions<keyof TestStoreOptions> = { names: { test: "function" } };

/**
 * Registers one test for each rule that a store must keep, also when commands are repeated, answers and notifications
 * of `listen` are lost, or the engine stands still. `make` is called for each process that a test imitates, so all
 * stores that it returns must reach the same data. Each test uses keys of its own, which expire.
 *
 * ```ts ignore
 * import { memoryStore } from "@x/mcp/stores";
 * import { testStore } from "@x/mcp/testing/stores";
 *
 * const store = memoryStore();
 * testStore(() => store, { test: Deno.test });
 * ```
 */
export function testStore(make: () => Awaitable<Store>, options: TestStoreOptions): void {
  checkOptions("test a store", options, OPTIONS);
  const { test } = options;
  for (const { name, run } of listStoreCases(make)) test(`store: ${name}`, run);
}

/** Lists the tests of {@linkcode testStore}, for test runners with another way to register one. */
export function listStoreCases(make: () => Awaitable<Store>): readonly StoreCase[] {
  return CASES.map(([name, check]) => ({
    name,
    async run() {
      const bench = new Bench(make);
      try {
        await check(bench);
      } finally {
        await bench.close();
      }
    },
  }));
}

/** A command of a test to an engine. */
interface Faults {
  /** Runs each command twice. */
  repeats?: boolean;
  /** Number of commands whose answers are lost. */
  loses?: number;
  /** Whether notifications of `listen` are lost. */
  isDeaf?: boolean;
  /** Whether commands are never answered. */
  stalls?: boolean;
}

/** Makes stores with faults. */
class Bench {
  readonly key: string = crypto.randomUUID();
  readonly #make: () => Awaitable<Store>;
  readonly #stores: Store[] = [];

  constructor(make: () => Awaitable<Store>) {
    this.#make = make;
  }

  open(faults: Faults = {}, options: StoreOptions = {}): Store {
    const connect = async () => toFaulty(await (await this.#make())[INTERNALS].connect(), faults);
    const store = customStore(connect, { pollMs: 100, ...options });
    this.#stores.push(store);
    return store;
  }

  async close(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
  }
}

type Command = "get" | "set" | "delete" | "append" | "read" | "trim";

function toFaulty(engine: StoreEngine, faults: Faults): StoreEngine {
  async function run<T>(command: () => Awaitable<T>): Promise<T> {
    if (faults.stalls) return await new Promise<never>(() => {});
    if (faults.repeats) await command();
    const result = await command();
    if (!faults.loses) return result;
    faults.loses--;
    throw new Error("the answer was lost");
  }
  const commands: Pick<StoreEngine, Command> = {
    get: (key) => run(() => engine.get(key)),
    set: (key, value, options) => run(() => engine.set(key, value, options)),
    delete: (key, options) => run(() => engine.delete(key, options)),
    append: (log, value, options) => run(() => engine.append(log, value, options)),
    read: (log, options) => run(() => engine.read(log, options)),
    trim: (log, before) => run(() => engine.trim(log, before)),
  };
  return {
    ...commands,
    listen: engine.listen &&
      (async (onRing) => await engine.listen?.((log) => faults.isDeaf || onRing(log)) ?? (() => {})),
    close: () => engine.close?.(),
  };
}

const MINUTE = { ttlMs: 60_000 };
const LOG = { ttlMs: 60_000, max: 100 };

const CASES: readonly (readonly [name: string, check: (bench: Bench) => Promise<void>])[] = [
  ["a value that was never written is undefined", async (bench) => {
    equal(await bench.open().get(bench.key), undefined);
  }],
  ["a value is read by another process", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const version = await a.set(bench.key, 'one ✓ \n "', MINUTE);
    equal(await b.get(bench.key), { value: 'one ✓ \n "', version });
  }],
  ["each write has another version, also of the same value", async (bench) => {
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
  ["a write with the version null needs that there is no value", async (bench) => {
    const store = bench.open();
    equal(typeof await store.set(bench.key, "1", { ...MINUTE, version: null }), "string");
    equal(await store.set(bench.key, "2", { ...MINUTE, version: null }), undefined);
    await store.delete(bench.key);
    equal(typeof await store.set(bench.key, "3", { ...MINUTE, version: null }), "string");
  }],
  ["of many writes with the same version, one wins", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const version = await stores[0].set(bench.key, "0", MINUTE);
    const done = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2].set(bench.key, `${i}`, { ...MINUTE, version })),
    );
    equal(done.filter((version) => version !== undefined).length, 1);
  }],
  ["counting with versions loses no count", async (bench) => {
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
  ["a value expires, also between a read and a write with its version", async (bench) => {
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
  ["a removal needs its version, and can be repeated", async (bench) => {
    const store = bench.open();
    const old = await store.set(bench.key, "1", MINUTE);
    const version = await store.set(bench.key, "2", MINUTE);
    equal(await store.delete(bench.key, { version: old }), false);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.delete(bench.key, { version }), true);
    equal(await store.get(bench.key), undefined);
    equal(await store.delete(bench.key), true);
  }],
  ["a log that does not exist is empty", async (bench) => {
    equal(await bench.open().read(bench.key, { limit: 10 }), { entries: [], first: 1, last: 0 });
  }],
  ["a log gives its entries ids from 1, in order", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    for (let i = 1; i <= 5; i++) equal(await (i % 2 ? a : b).append(bench.key, `v${i}`, LOG), i);
    equal(await b.read(bench.key, { after: 2, limit: 2 }), {
      entries: [{ id: 3, value: "v3" }, { id: 4, value: "v4" }],
      first: 1,
      last: 5,
    });
    equal(await a.read(bench.key, { after: 5, limit: 2 }), { entries: [], first: 1, last: 5 });
    equal(await a.read(bench.key, { limit: 0 }), { entries: [], first: 1, last: 5 });
  }],
  ["entries that several processes append at once all get an id of their own", async (bench) => {
    const stores = [bench.open(), bench.open()];
    const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2].append(bench.key, `${i}`, LOG)));
    equal(ids.sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i + 1));
    equal((await stores[0].read(bench.key, { limit: 100 })).entries.length, 40);
  }],
  ["a log drops its oldest entries beyond max, and keeps the ids of the others", async (bench) => {
    const store = bench.open();
    for (let i = 1; i <= 7; i++) await store.append(bench.key, `v${i}`, { ...LOG, max: 3 });
    equal(await store.read(bench.key, { limit: 10 }), {
      entries: [5, 6, 7].map((id) => ({ id, value: `v${id}` })),
      first: 5,
      last: 7,
    });
  }],
  ["a log that is trimmed while it is read shows the gap", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    for (let i = 1; i <= 6; i++) await a.append(bench.key, `v${i}`, LOG);
    equal((await a.read(bench.key, { limit: 2 })).entries.map(({ id }) => id), [1, 2]);
    await b.trim(bench.key, 5);
    const { entries, first, last } = await a.read(bench.key, { after: 2, limit: 2 });
    equal([entries.map(({ id }) => id), first, last], [[5, 6], 5, 6]);
    await b.trim(bench.key, 100);
    equal(await a.read(bench.key, { limit: 2 }), { entries: [], first: 7, last: 6 });
    equal(await a.append(bench.key, "v7", LOG), 7);
  }],
  ["a log expires as a whole, and an addition renews it", async (bench) => {
    const store = bench.open();
    await store.append(bench.key, "1", { ...LOG, ttlMs: 1000 });
    await wait(300);
    await store.append(bench.key, "2", { ...LOG, ttlMs: 2000 });
    await wait(1000);
    equal((await store.read(bench.key, { limit: 10 })).entries.length, 2);
    await wait(1500);
    equal((await store.read(bench.key, { limit: 10 })).last, 0);
  }],
  ["values and logs have names of their own", async (bench) => {
    const store = bench.open();
    await store.set(bench.key, "value", MINUTE);
    await store.append(bench.key, "entry", LOG);
    equal((await store.get(bench.key))?.value, "value");
    equal((await store.read(bench.key, { limit: 1 })).entries[0].value, "entry");
  }],
  ["a topic reaches subscribers of every process, in order", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const heard: string[][] = [[], []];
    for (const [i, store] of [a, b].entries()) await store.subscribe(bench.key, (text) => void heard[i].push(text));
    for (let i = 0; i < 10; i++) await a.publish(bench.key, `${i}`);
    await until(() => heard.every(({ length }) => length === 10));
    equal(heard, [0, 1].map(() => Array.from({ length: 10 }, (_, i) => `${i}`)));
  }],
  ["a subscriber receives only what is published later, or what follows an id", async (bench) => {
    const store = bench.open();
    const [late, all]: string[][] = [[], []];
    for (const text of ["1", "2"]) await store.publish(bench.key, text);
    await store.subscribe(bench.key, (text) => void late.push(text));
    await store.subscribe(bench.key, (text) => void all.push(text), { after: 1 });
    await store.publish(bench.key, "3");
    await until(() => late.length === 1 && all.length === 2);
    equal([late, all], [["3"], ["2", "3"]]);
  }],
  ["a subscriber learns that entries were dropped", async (bench) => {
    const [reader, writer] = [bench.open(), bench.open()];
    for (let i = 1; i <= 5; i++) await writer.append(bench.key, `${i}`, { ...LOG, max: 2 });
    const heard: unknown[] = [];
    await reader.subscribe(bench.key, (text) => void heard.push(text), { after: 1, onGap: (last) => heard.push(last) });
    await until(() => heard.length === 3);
    equal(heard, [5, "4", "5"]);
  }],
  ["a listener may unsubscribe itself or throw, and the others go on", async (bench) => {
    const store = bench.open();
    const heard: string[] = [];
    const stops: (() => void)[] = [];
    const { error } = console;
    const printed: unknown[] = [];
    console.error = (...words: unknown[]) => void printed.push(words);
    try {
      stops.push(
        await store.subscribe(bench.key, (text) => {
          heard.push(`once ${text}`);
          stops[0]();
        }),
      );
      await store.subscribe(bench.key, () => {
        throw new Error("a faulty listener");
      });
      await store.subscribe(bench.key, (text) => void heard.push(text));
      await store.publish(bench.key, "1");
      await store.publish(bench.key, "2");
      await until(() => heard.includes("2") && heard.includes("once 1") && printed.length === 2);
    } finally {
      console.error = error;
    }
    equal(heard.sort(), ["1", "2", "once 1"]);
  }],
  ["after the end of a subscription nothing is heard", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const heard: string[] = [];
    const stop = await a.subscribe(bench.key, (text) => void heard.push(text));
    stop();
    stop();
    await b.publish(bench.key, "1");
    await wait(250);
    equal(heard, []);
  }],
  ["a repeated command has the effect of one", async (bench) => {
    const store = bench.open({ repeats: true });
    const version = await store.set(bench.key, "1", { ...MINUTE, version: null });
    equal(typeof version, "string");
    equal(typeof await store.set(bench.key, "2", { ...MINUTE, version }), "string");
    equal([await store.append(bench.key, "a", LOG), await store.append(bench.key, "b", LOG)], [1, 2]);
    equal((await store.read(bench.key, { limit: 10 })).entries.map(({ value }) => value), ["a", "b"]);
  }],
  ["an answer that was lost is asked for again, and the command has the effect of one", async (bench) => {
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
  ["a topic arrives though its rings are lost", async (bench) => {
    const [reader, writer] = [bench.open({ isDeaf: true }), bench.open()];
    const heard: string[] = [];
    await reader.subscribe(bench.key, (text) => void heard.push(text));
    for (const text of ["1", "2", "3"]) await writer.publish(bench.key, text);
    await until(() => heard.length === 3);
    equal(heard, ["1", "2", "3"]);
  }],
  ["an engine that stands still is given up in time, and used again later", async (bench) => {
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
  }],
  ["operations that wait for an engine are limited", async (bench) => {
    const store = bench.open({ stalls: true }, { timeoutMs: 300, pending: 2 });
    const waiting = [store.get(bench.key), store.get(bench.key)].map((each) => rejects(() => each, "timeoutMs"));
    await rejects(() => store.get(bench.key), "pending");
    await Promise.all(waiting);
  }],
  ["a closed store rejects what is pending, and everything later", async (bench) => {
    const store = bench.open({ stalls: true });
    const pending = rejects(() => store.get(bench.key), "closed");
    await store.close();
    await pending;
    await rejects(() => store.set(bench.key, "1", MINUTE), "closed");
    await rejects(() => store.subscribe(bench.key, () => {}), "closed");
    await store.close();
  }],
  ["values, keys, times and ids beyond the limits are refused", async (bench) => {
    const store = bench.open();
    await rejects(() => store.set(bench.key, "x".repeat(2 ** 20 + 1), MINUTE), "valueBytes");
    await rejects(() => store.append(bench.key, "✓".repeat(2 ** 19), LOG), "valueBytes");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 1e9 }), "logEntries");
    await rejects(() => store.append(bench.key, "1", { ...LOG, max: 0.5 }), "max");
    await rejects(() => store.set(bench.key, "a\u0000b", MINUTE), "U+0000");
    for (const key of ["", "a b", "a:b", "ä", "k".repeat(257)]) await rejects(() => store.get(key), "key");
    for (const ttlMs of [0, -1, NaN, Infinity]) await rejects(() => store.set(bench.key, "1", { ttlMs }), "ttlMs");
    for (const after of [-1, 0.5, NaN]) await rejects(() => store.read(bench.key, { after, limit: 1 }), "id");
    equal(await store.get(bench.key), undefined);
  }],
  ["a long value and a long log are returned whole", async (bench) => {
    const store = bench.open();
    const value = "0123456789abcdef".repeat(4000);
    await store.set(bench.key, value, MINUTE);
    equal((await store.get(bench.key))?.value === value, true);
    for (let i = 0; i < 60; i++) await store.append(bench.key, `${i}`, LOG);
    const { entries } = await store.read(bench.key, { limit: 100 });
    equal(entries.map(({ value }) => value), Array.from({ length: 60 }, (_, i) => `${i}`));
  }],
];

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function until(condition: () => Awaitable<boolean>): Promise<void> {
  const end = performance.now() + 10_000;
  while (!await condition()) {
    if (performance.now() > end) throw new Error("The store did not do what was expected within 10 seconds");
    await wait(10);
  }
}

async function rejects(run: () => unknown, word: string): Promise<void> {
  try {
    await run();
  } catch (error) {
    const text = String(error);
    if (text.includes(word)) return;
    throw new Error(`The store rejects with "${text}"; the message must contain "${word}"`);
  }
  throw new Error(`The store accepts what it must reject with "${word}"`);
}

function equal(actual: unknown, expected: unknown): void {
  const [found, wanted] = [actual, expected].map(toText);
  if (found !== wanted) throw new Error(`The store returns ${found}; expected ${wanted}`);
}

// Engines may return the same fields in another order.
function toText(value: unknown): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === "object" && value && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
      : value;
  return JSON.stringify(value, sorted) ?? "undefined";
}
