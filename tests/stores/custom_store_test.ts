// Stores whose engine is slow or returns invalid values.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer } from "../../mod.ts";
import type { StoreEngine } from "../../src/server/engine/store.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, gate, turn, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { withTimersOn } from "../support/timers.ts";
import { closeAtEnd } from "../support/running.ts";
import { openServer } from "../support/servers.ts";

/** Returns an engine in memory in which `change` replaces some methods. */
async function spoil(change: (engine: StoreEngine) => Partial<StoreEngine>): Promise<StoreEngine> {
  const engine = await memoryStore()[INTERNALS].connect();
  const own = change(engine);
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(name in own ? own : target, name);
      return typeof value === "function" ? value.bind(name in own ? own : target) : value;
    },
  });
}

/** Asserts that an operation exceeds the store's timeout of `ms` milliseconds, on a clock that only this timeout uses. */
async function timesOut(operation: () => unknown, ms: number): Promise<void> {
  const clock = fakeClock();
  await withTimersOn(clock, ms, async () => {
    await advanceUntil(clock, ms, assertRejects(async () => await operation(), Error, `within ${ms} ms`));
  });
}

Deno.test("a topic that cannot be read does not end the process, and the store reads the topic again", async () => {
  let reads = 0;
  const engine = await spoil((engine) => ({
    heads: undefined,
    async read(log, options) {
      await turn();
      // The wrong return value simulates a broken engine.
      return ++reads === 2 ? undefined as never : engine.read(log, options);
    },
  }));
  const store = customStore(engine, { pollMs: 20 });
  const heard: string[] = [];
  const stop = await store.subscribe("topic", (text) => void heard.push(text));
  await until(() => reads > 0, "a read");
  await store.publish("topic", "text");
  await until(() => heard.length > 0, "the text");
  const before = reads;
  await until(() => reads > before + 2, "later reads");
  stop();
  await store.close();
  assertEquals(heard, ["text"]);
});

Deno.test("an operation that exceeded its timeout is not repeated", async () => {
  let writes = 0;
  const { pass, open } = gate();
  const engine = await spoil(() => ({
    async set() {
      writes++;
      await pass;
      throw new Error("no connection");
    },
  }));
  const store = closeAtEnd(customStore(engine, { timeoutMs: 30 }));
  await assertRejects(async () => await store.set("key", "value", { ttlMs: 1000 }), Error, "within 30 ms");
  open();
  await turn(5);
  assertEquals(writes, 1);
});

Deno.test("the timeout of an operation whose last attempt has failed has the cause of this attempt", async () => {
  let attempts = 0;
  const engine = await spoil(() => ({
    // The first attempt fails, and the next attempt does not end.
    get: () => attempts++ ? new Promise<never>(() => {}) : Promise.reject(new Error("no connection")),
  }));
  const store = closeAtEnd(customStore(engine, { timeoutMs: 200 }));
  const { cause } = await assertRejects(async () => await store.get("key"), Error);
  assert(cause instanceof Error);
  assertEquals(cause.message, "no connection");
});

Deno.test("an operation does not run if its engine connects after the timeout", async () => {
  let started = 0;
  const engine = await spoil(() => ({
    set: () => ++started > 0,
    listen: () => {
      started++;
      return () => {};
    },
  }));
  const first = gate();
  const store = customStore(async () => {
    await first.pass;
    return engine;
  }, { timeoutMs: 3000 });
  await timesOut(() => store.set("key", "value", { ttlMs: 1000 }), 3000);
  first.open();
  await turn(5);
  assertEquals(started, 0);
  await store.close();
  const second = gate();
  const other = closeAtEnd(customStore(async () => {
    await second.pass;
    return engine;
  }, { timeoutMs: 3000 }));
  await timesOut(() => other.subscribe("topic", () => {}), 3000);
  second.open();
  await turn(5);
  assertEquals(started, 0);
});

Deno.test("a listener that starts after the timeout is stopped", async () => {
  let stopped = 0;
  const { pass, open } = gate();
  const engine = await spoil(() => ({
    async listen() {
      await pass;
      return () => void stopped++;
    },
  }));
  const store = closeAtEnd(customStore(engine, { timeoutMs: 30 }));
  await assertRejects(async () => await store.subscribe("topic", () => {}), Error, "within 30 ms");
  open();
  await until(() => stopped > 0, "the listener is stopped");
  assertEquals(stopped, 1);
});

Deno.test("every call of close waits until the engine is closed", async () => {
  let isClosed = false;
  const engine = await spoil(() => ({ close: () => turn(3).then(() => void (isClosed = true)) }));
  const store = customStore(engine);
  await store.get("key");
  store.close();
  await store.close();
  assertEquals(isClosed, true);
});

Deno.test("a value that expires while it is being replaced does not free its bytes twice", async () => {
  let now = 0;
  let isRunning = false;
  // The clock advances on each read.
  const store = memoryStore({ bytes: 2600, clock: { ...fakeClock(), now: () => isRunning ? now++ : now } });
  const write = async (length: number) => await store.set("first", "x".repeat(length), { ttlMs: 10 });
  await write(500);
  [now, isRunning] = [9, true];
  await assertRejects(() => write(1300), Error, sentence("2600"));
});

Deno.test("a truthy engine result other than true does not count as a successful write", async () => {
  const odd: readonly unknown[] = [undefined, null, 1, 0, "OK", "", {}, { changes: 0 }, [], Symbol("true")];
  for (const value of odd) {
    // The cast makes the wrong return value compile.
    const engine = await spoil(() => ({ set: () => value as never, delete: () => value as never }));
    const store = closeAtEnd(customStore(engine));
    for (const run of [() => store.set("key", "a", { ttlMs: 1000 }), () => store.delete("key")]) {
      await assertRejects(async () => await run(), Error, sentence());
    }
  }
});

Deno.test("a value that the engine returns without a version is refused, because a write with this version would replace any value", async () => {
  const odd: readonly unknown[] = [
    "text",
    1,
    true,
    {},
    { value: "a" },
    { version: "1" },
    { value: "a", version: 1 },
    [],
  ];
  for (const value of odd) {
    const store = customStore(await spoil(() => ({ get: () => value as never }))); // The cast makes the wrong return value compile.
    await assertRejects(async () => await store.get("key"), Error, sentence());
    await store.close();
  }
  for (const absent of [undefined, null]) {
    const store = customStore(await spoil(() => ({ get: () => absent as never }))); // Some clients return this value for a missing key.
    assertEquals(await store.get("key"), undefined);
    await store.close();
  }
});

/** Options of a value and of a log. */
const MINUTE = { ttlMs: 60_000 };
const LOG = { ttlMs: 60_000, max: 100 };

/** Creates an engine that fails while a flag is set, and counts how many times the engine was created and closed. */
function makeMortal(options?: Parameters<typeof customStore>[1]) {
  const memory = memoryStore();
  const mortal = { made: 0, closed: 0, commands: 0, isDead: false };
  const store = customStore(async () => {
    mortal.made++;
    let isDead = false;
    const engine = await memory[INTERNALS].connect();
    return wrapEngine(engine, async ({ run }) => {
      mortal.commands++;
      isDead ||= mortal.isDead;
      if (isDead) throw new Error("the connection is gone");
      return await run();
    }, { close: () => void mortal.closed++ });
  }, options);
  return { mortal, store };
}

Deno.test("an engine that fails three times in a row is closed, and a new engine is created", async () => {
  const { mortal, store } = makeMortal();
  await store.set("key", "value", MINUTE);
  mortal.isDead = true;
  for (let i = 0; i < 3; i++) {
    assertEquals(mortal.closed, 0);
    await assertRejects(async () => await store.get("key"), Error, sentence());
  }
  assertEquals([mortal.made, mortal.closed], [1, 1]);
  mortal.isDead = false;
  await assertRejects(async () => await store.get("key"), Error, sentence());
  await until(() => gets(store, "key"), "a new engine");
  assertEquals([mortal.made, mortal.closed], [2, 1]);
  await store.close();
  assertEquals(mortal.closed, 2);
});

Deno.test("while an engine is unavailable, one operation per second tests whether the engine is available again", async () => {
  const { mortal, store } = makeMortal();
  mortal.isDead = true;
  for (let i = 0; i < 3; i++) await assertRejects(async () => await store.get("key"), Error, sentence());
  let tested = 0;
  await until(async () => {
    const before = mortal.commands;
    const errors = await Promise.all(Array.from({ length: 5 }, () => failure(() => store.get("key"))));
    // Only the error of the operation that reached the engine has a cause.
    tested = errors.filter((error) => Object(error).cause !== undefined).length;
    return mortal.commands > before;
  }, "an attempt");
  assertEquals(tested, 1);
  await store.close();
});

Deno.test("a connection attempt that never ends times out, and the store tries again", async () => {
  let made = 0;
  const signals: AbortSignal[] = [];
  const memory = memoryStore();
  const store = closeAtEnd(customStore(({ signal }) => {
    signals.push(signal);
    return ++made === 1 ? new Promise<never>(() => {}) : memory[INTERNALS].connect();
  }, { timeoutMs: 30 }));
  const clock = fakeClock();
  // The timeout of an attempt to connect is five times as long.
  await withTimersOn(clock, 150, async () => {
    await timesOut(() => store.get("key"), 30);
    assertEquals(made, 1);
    await clock.advance(150);
  });
  await until(() => gets(store, "key"), "a second attempt");
  assertEquals([made, signals.map(({ aborted }) => aborted)], [2, [true, false]]);
});

Deno.test("an engine that connects after the timeout is closed", async () => {
  let [made, closed] = [0, 0];
  const late = gate();
  const memory = memoryStore();
  const store = closeAtEnd(customStore(async () => {
    const engine = await memory[INTERNALS].connect();
    if (++made > 1) return engine;
    await late.pass;
    return wrapEngine(engine, ({ run }) => run(), { close: () => void closed++ });
  }, { timeoutMs: 30 }));
  await until(() => gets(store, "key"), "a second attempt");
  late.open();
  await until(() => closed === 1, "the first engine is closed");
});

Deno.test("subscribers of a replaced engine are notified by the next engine", async () => {
  const { mortal, store } = makeMortal({ pollMs: 100 });
  const heard: string[] = [];
  await store.subscribe("topic", (text) => void heard.push(text));
  mortal.isDead = true;
  await until(() => mortal.closed > 0, "the engine was replaced, although nobody used the store");
  mortal.isDead = false;
  await until(() => gets(store, "key"), "a new engine");
  await store.publish("topic", "text");
  await until(() => heard.length > 0, "the text");
  assertEquals(heard, ["text"]);
  await store.close();
});

Deno.test("an operation that can never succeed is neither repeated nor counted as a timeout", async () => {
  for (const [title, wait] of [["later", turn], ["at once", undefined]] as const) {
    for (const error of [new RangeError(`too large, ${title}`), new TypeError(`no text, ${title}`)]) {
      let tries = 0;
      const engine = await spoil(() => ({
        set: () => {
          tries++;
          if (!wait) throw error;
          return wait().then(() => Promise.reject(error));
        },
      }));
      let made = 0;
      const store = closeAtEnd(customStore(() => (made++, engine)));
      for (let i = 0; i < 5; i++) assertEquals(await failure(() => store.set("key", "value", MINUTE)), error);
      assertEquals([tries, made], [5, 1]);
      assertEquals(await store.get("key"), undefined);
    }
  }
});

Deno.test("a value that exceeds the engine's stated maximum size is refused, and the store stays usable", async () => {
  let writes = 0;
  const engine = await spoil((engine) => ({
    valueBytes: 10,
    set: (...args) => (writes++, engine.set(...args)),
  }));
  for (const connect of [() => engine, async () => (await turn(), engine)]) {
    const store = closeAtEnd(customStore(connect));
    for (let i = 0; i < 5; i++) {
      assertEquals(String(await failure(() => store.set("key", "é".repeat(6), MINUTE))), sentence("RangeError", 10));
      assertEquals(String(await failure(() => store.append("log", "é".repeat(6), LOG))), sentence("RangeError", 10));
    }
    assertEquals(writes, 0);
    assertEquals(typeof await store.set("key", "é".repeat(5), MINUTE), "string");
    writes = 0;
  }
  const wrong = customStore(await spoil(() => ({ valueBytes: NaN })));
  await assertRejects(async () => await wrong.get("key"), TypeError, sentence("valueBytes", NaN));
});

Deno.test("an engine without a required method is refused, and the error names the method", async () => {
  const engine = await spoil(() => ({ list: undefined }));
  for (const connect of [() => engine, () => Promise.resolve(engine)]) {
    const store = closeAtEnd(customStore(connect));
    await assertRejects(async () => await store.get("key"), TypeError, sentence("list()"));
  }
});

Deno.test("if an operation of a synchronous engine fails, the store retries it, and later replaces the engine", async () => {
  let [left, made] = [2, 0];
  const engine = await spoil((engine) => ({
    get(...args) {
      if (left-- > 0) throw new Error("the file is locked");
      return engine.get(...args);
    },
  }));
  const store = closeAtEnd(customStore(() => (made++, engine)));
  assertEquals(await store.get("key"), undefined);
  assertEquals(made, 1);
  left = Infinity;
  for (let i = 0; i < 3; i++) await assertRejects(async () => await store.get("key"), Error, sentence());
  left = 0;
  await until(() => gets(store, "key"), "a new engine");
  assertEquals(made, 2);
});

Deno.test("an entry whose response was lost is appended only once, also by a synchronous engine", async () => {
  for (const isSync of [true, false]) {
    const lose = <T>(value: T): T => {
      if (left-- > 0) throw new Error("the response was lost");
      return value;
    };
    let left = 2;
    const engine = await spoil((engine) => ({
      append(...args) {
        const id = engine.append(...args);
        return isSync ? lose(id) : Promise.resolve(id).then(lose);
      },
    }));
    const store = closeAtEnd(customStore(engine));
    assertEquals(await store.append("log", "a", { ttlMs: 60_000, max: 10 }), 1);
    assertEquals(await store.append("log", "b", { ttlMs: 60_000, max: 10 }), 2);
    const { entries } = await store.read("log", { limit: 10 });
    assertEquals(entries.map(({ value }) => value), ["a", "b"]);
  }
});

Deno.test("a connect function that throws is called again", async () => {
  let made = 0;
  const memory = memoryStore();
  const store = closeAtEnd(customStore(() => {
    if (++made < 3) throw new Error("no such folder");
    return memory[INTERNALS].connect();
  }));
  assertEquals(await store.get("key"), undefined);
  assertEquals(made, 3);
});

Deno.test("an operation that times out is aborted, and each operation has its own signal", async () => {
  const signals: [string, AbortSignal][] = [];
  const memory = await memoryStore()[INTERNALS].connect();
  const engine = wrapEngine(memory, ({ name, args }) => {
    const { signal } = Object(args.at(-1));
    signals.push([name, signal]);
    return new Promise<never>(() => {});
  });
  const store = closeAtEnd(customStore(engine, { timeoutMs: 60 }));
  const operations = [
    () => store.get("key"),
    () => store.set("key", "value", MINUTE),
    () => store.delete("key"),
    () => store.list("key", { limit: 1 }),
    () => store.append("log", "value", LOG),
    () => store.read("log", { limit: 1 }),
    () => store.trim("log", 1),
  ];
  const errors = await Promise.all(operations.map(failure));
  for (const error of errors) assertEquals(String(error), sentence(60));
  assertEquals(signals.map(([name]) => name), ["get", "set", "delete", "list", "append", "read", "trim"]);
  assertEquals(new Set(signals.map(([, signal]) => signal)).size, 7);
  for (const [name, { aborted, reason }] of signals) {
    assertEquals([aborted, String(reason)], [true, sentence(60)], name);
  }

  const other = customStore(engine);
  const pending = failure(() => other.get("key"));
  await until(() => signals.length === 8, "the operation");
  await other.close();
  assertEquals(String(await pending), sentence());
  assertEquals(signals[7][1].aborted, true);
});

Deno.test("thousands of subscribed topics are read in batches, and other operations run between the batches", async () => {
  const memory = await memoryStore()[INTERNALS].connect();
  let [reading, most] = [0, 0];
  const read = new Set<unknown>();
  const slow = wrapEngine(memory, async ({ name, args, run }) => {
    if (name === "read" && isStarted) {
      most = Math.max(most, ++reading);
      read.add(args[0]);
      await turn(2);
      reading--;
    }
    return await run();
  }, { heads: undefined, listen: undefined });
  let isStarted = false;
  const store = closeAtEnd(customStore(slow, { pending: 20, pollMs: 10 }));
  for (let i = 0; i < 3000; i++) await store.subscribe(`topic${i}`, () => {});
  isStarted = true;
  await until(async () => {
    for (let i = 0; i < 20; i++) assertEquals(await store.get("key"), undefined);
    return read.size === 3000;
  }, "each topic has been read");
  assert(most <= 32, `${most} reads ran at the same time`);
});

Deno.test("an engine that can return the states of all topics gets a single request for all topics", async () => {
  const memory = await memoryStore()[INTERNALS].connect();
  const asked: number[] = [];
  let reads = 0;
  const engine = wrapEngine(memory, async ({ name, args, run }) => {
    if (name === "heads") asked.push(Object(args[0]).length);
    if (name === "read") reads++;
    return await run();
  }, { listen: undefined });
  const store = closeAtEnd(customStore(engine, { pollMs: 20 }));
  const heard: string[] = [];
  for (let i = 0; i < 500; i++) await store.subscribe(`topic${i}`, (text) => void heard.push(text));
  await until(() => asked.length > 2, "the states");
  const before = reads;
  await store.publish("topic7", "text");
  await until(() => heard.length > 0, "the text");
  assertEquals([heard, reads - before, asked.at(-1)], [["text"], 1, 500]);
});

Deno.test("a listener that was lost is started again, and until then topics are read more often", async () => {
  const memory = memoryStore();
  const inner = await memory[INTERNALS].connect();
  const lost: ((error?: unknown) => void)[] = [];
  const events: string[] = [];
  const rings = new Set<(log: string) => void>();
  const engine = wrapEngine(inner, ({ run }) => run(), {
    listen(onRing, onLost) {
      lost.push(onLost);
      rings.add(onRing);
      const stop = inner.listen?.((log) => rings.has(onRing) && onRing(log), onLost);
      return async () => (await stop)?.();
    },
  });
  const store = customStore(engine);
  openServer({
    store,
    observer: {
      store: ({ state, operation, error }) => void events.push(`${state} ${operation} ${error}`),
    },
  });
  const heard: string[] = [];
  await store.subscribe("topic", (text) => void heard.push(text));
  rings.clear();
  // With a listener, topics are read once per second. On this clock, this second does not end.
  await withTimersOn(fakeClock(), 1000, async () => {
    lost[0](new Error("the connection is gone"));
    lost[0](new Error("told twice"));
    await store.publish("topic", "1");
    await until(() => heard.length === 1, "the first text");
  });
  await until(() => lost.length === 2, "the listener has started again");
  await until(() => events.length === 2, "the observer");
  assertEquals(events, ["degraded listen Error: the connection is gone", "recovered listen undefined"]);
  await store.publish("topic", "2");
  assertEquals(heard, ["1", "2"]);
});

Deno.test("if a topic lost its data and has grown beyond a subscriber's position since, the subscriber gets a gap", async () => {
  let engine = await memoryStore()[INTERNALS].connect();
  // Simulates an engine in memory that loses its data while the connection stays open.
  const proxy = wrapEngine(engine, ({ name, args }) => Reflect.apply(Reflect.get(engine, name), engine, args), {
    listen: undefined,
  });
  const store = customStore(proxy, { pollMs: 60_000 });
  const heard: unknown[] = [];
  for (const text of ["a", "b"]) await store.publish("topic", text);
  await store.subscribe("topic", (text) => void heard.push(text), { onGap: (last) => heard.push(last) });
  await store.publish("topic", "c");
  engine = await memoryStore()[INTERNALS].connect();
  for (const text of ["1", "2", "3", "4"]) await store.publish("topic", text);
  await store.close();
  assertEquals(heard, []);

  const other = closeAtEnd(customStore(proxy, { pollMs: 20 }));
  await other.subscribe("topic", (text) => void heard.push(text), { onGap: (last) => heard.push(last) });
  engine = await memoryStore()[INTERNALS].connect();
  await other.publish("topic", "5");
  for (let i = 6; i < 12; i++) await other.publish("topic", `${i}`);
  await until(() => heard.includes("11"), "the last text");
  assertEquals(heard, [7, "5", "6", "7", "8", "9", "10", "11"]);
});

Deno.test("a synchronous engine whose epoch changes on each read does not block the process", async () => {
  const engine = await memoryStore()[INTERNALS].connect();
  let reads = 0;
  const store = closeAtEnd(customStore(
    wrapEngine(engine, ({ name, args }) => {
      const made: unknown = Reflect.apply(Reflect.get(engine, name), engine, args);
      return name === "read" ? { ...made as object, epoch: `${reads++}` } : made;
    }, { listen: undefined }),
    { pollMs: 5 },
  ));
  const gaps: number[] = [];
  await store.publish("topic", "a");
  await store.subscribe("topic", () => {}, { onGap: (last) => void gaps.push(last) });
  await until(() => gaps.length > 3, "a gap was reported in each interval");
  assert(reads < 200, `${reads} reads`);
});

Deno.test("a server without an observer prints a message when its store fails, and another when its store recovers", async () => {
  const { mortal, store } = makeMortal();
  const printed: string[] = [];
  const { error } = console;
  console.error = (...words: unknown[]) => void printed.push(words.join(" "));
  const server = openServer({ store, observer: { call() {} } });
  try {
    mortal.isDead = true;
    server.resourceUpdated("note://1");
    server.listChanged("tools");
    await until(() => printed.length > 0, "the failure");
    mortal.isDead = false;
    await until(() => {
      server.resourceUpdated("note://2");
      return printed.length > 1;
    }, "the recovery");
  } finally {
    console.error = error;
  }
  const [failed, ...later] = printed;
  // Compare the printed error without its stack and its cause.
  assertEquals(failed.split("\n").slice(0, 2).join("\n"), sentence("append", "Error: "));
  assertEquals(later, [sentence("append")]);
});

async function gets(store: Store, key: string): Promise<boolean> {
  return await failure(() => store.get(key)) === undefined;
}

/** Returns the error of an operation, or `undefined` if the operation succeeds. */
async function failure(run: () => unknown): Promise<unknown> {
  try {
    await run();
  } catch (error) {
    return error;
  }
}

Deno.test("a server does not start with a closed store", async () => {
  const options = { name: "s", version: "1.0.0", secret: "x".repeat(32) };
  const closed = memoryStore();
  await using first = createServer({ ...options, store: closed });
  await first.ready();
  await closed.close();
  await assertRejects(() => first.ready(), TypeError, sentence("closed"));
  const shared = memoryStore();
  const second = createServer({ ...options, store: shared });
  await using third = createServer({ ...options, store: shared });
  await second.close();
  await third.ready();
  await third.close();
  assertThrows(() => createServer({ ...options, store: shared }), TypeError, sentence("closed"));
});
