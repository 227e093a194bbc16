/**
 * Rules for the topics in a store.
 */
import { equal, LOG, type Rule, until, wait } from "./store_bench.ts";

export const TOPIC_RULES: readonly Rule[] = [
  ["subscribers in every process receive the entries of a topic in order", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const heard: string[][] = [[], []];
    for (const [i, store] of [a, b].entries()) await store.subscribe(bench.key, (text) => void heard[i].push(text));
    for (let i = 0; i < 10; i++) await a.publish(bench.key, `${i}`);
    await until(() => heard.every(({ length }) => length === 10));
    equal(heard, [0, 1].map(() => Array.from({ length: 10 }, (_, i) => `${i}`)));
  }],
  ["a subscriber receives only entries that are published after it subscribed, or after a given id", async (bench) => {
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
  ["listeners still receive entries if another listener unsubscribes itself or throws", async (bench) => {
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
  ["a listener receives no entries after its subscription has ended", async (bench) => {
    const [a, b] = [bench.open(), bench.open()];
    const heard: string[] = [];
    const stop = await a.subscribe(bench.key, (text) => void heard.push(text));
    stop();
    stop();
    await b.publish(bench.key, "1");
    await wait(250);
    equal(heard, []);
  }],
  ["entries of a topic arrive even if the engine's notifications are lost", async (bench) => {
    const [reader, writer] = [bench.open({ isDeaf: true }), bench.open()];
    const heard: string[] = [];
    await reader.subscribe(bench.key, (text) => void heard.push(text));
    for (const text of ["1", "2", "3"]) await writer.publish(bench.key, text);
    await until(() => heard.length === 3);
    equal(heard, ["1", "2", "3"]);
  }],
  ["a subscriber in another process receives an entry within 500 ms", async (bench) => {
    if (!await bench.has("listen")) return;
    const [reader, writer] = [bench.open({}, { pollMs: 60_000 }), bench.open()];
    const heard: string[] = [];
    await reader.subscribe(bench.key, (text) => void heard.push(text));
    let ms = Infinity;
    // Try three times, because a single notification may be delayed.
    for (let i = 1; i <= 3 && ms > 500; i++) {
      const since = performance.now();
      await writer.publish(bench.key, `${i}`);
      while (heard.length < i && performance.now() - since < 2000) await wait(10);
      ms = performance.now() - since;
    }
    if (ms > 500) throw new Error(`Three notifications in a row did not arrive within 500 ms`);
  }],
  ["a subscriber learns that a topic was lost, even if the new topic has more entries", async (bench) => {
    const store = bench.open();
    await store.append(bench.key, "a", LOG);
    const { epoch } = await store.read(bench.key, { limit: 0 });
    await store.append(bench.key, "b", { ...LOG, ttlMs: 300 });
    await until(async () => (await store.read(bench.key, { limit: 0 })).last === 0);
    for (const text of ["1", "2", "3"]) await store.append(bench.key, text, LOG);
    const heard: unknown[] = [];
    const onGap = (last: number) => heard.push(last);
    await store.subscribe(bench.key, (text) => void heard.push(text), { after: 2, epoch, onGap });
    await until(() => heard.length === 4);
    equal(heard, [3, "1", "2", "3"]);
  }],
  ["heads returns the state of each requested log", async (bench) => {
    if (!await bench.has("heads")) return;
    const store = bench.open();
    const logs = ["a", "b", "c"].map((name) => `${bench.key}-${name}`);
    for (let i = 0; i < 3; i++) await store.append(logs[0], "1", { ...LOG, max: 2 });
    await store.append(logs[2], "1", LOG);
    await store.trim(logs[2], 2);
    const engine = await bench.connect();
    const heads = await engine.heads?.(logs, { signal: new AbortController().signal });
    await engine.close?.();
    const expected = [];
    for (const log of logs) {
      const { first, last, epoch } = await store.read(log, { limit: 0 });
      expected.push({ first, last, epoch });
    }
    equal(heads?.map(({ first, last, epoch }) => ({ first, last, epoch })), expected);
  }],
];
