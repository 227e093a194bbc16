// A store that does not respond from the start is reported with its cause, whatever uses it first.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { mount, resource, type Server, type ServerOptions, tool } from "../../mod.ts";
import { idempotent, quota } from "../../src/layers/layers.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { health } from "../../src/observe/observe.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { advanceUntil, textOf, until } from "../support/behaviour.ts";
import { customStore, memoryStore, type Store, type StoreEngine } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { createLosable, type Losable, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";
import { withTimersOn } from "../support/timers.ts";

const handlers = [
  tasks(),
  tool({ name: "work", use: [task()], run: () => "worked" }),
  tool({ name: "pay", use: [idempotent(() => "once")], run: () => "paid" }),
  tool({ name: "count", use: [quota({ rate: { calls: 5, perMs: 60_000 }, shared: true })], run: () => "counted" }),
];

/** A server whose store is down, and the events about the store. */
interface Site {
  readonly client: Connection;
  readonly engine: Losable;
  readonly events: StoreEvent[];
  readonly fetch: (path: string) => Promise<Response>;
}

async function withSite(use: (site: Site) => Promise<void>, options: Partial<ServerOptions> = {}): Promise<void> {
  const engine = createLosable({ timeoutMs: 200 });
  engine.isLost = true;
  const events: StoreEvent[] = [];
  const server = openServer({
    handlers,
    store: engine.open(),
    routes: [health()],
    observer: { store: (event) => void events.push(event), fault() {} },
    ...options,
  });
  await using client = await connectTest(server, { extensions: [taskClient()], principal: { id: "ada" } });
  const fetch = (path: string) => server.fetch(new Request(`http://localhost${path}`));
  await use({ client, engine, events, fetch });
}

/** Returns the messages of an error and of its causes. */
function toCauses(error: unknown): string {
  return error instanceof Error ? `${error.message} ${toCauses(error.cause)}` : "";
}

const uses: Readonly<Record<string, (site: Site) => Promise<unknown>>> = {
  "a task": ({ client }) => client.callTool("work"),
  "an idempotency key": ({ client }) => client.callTool("pay"),
  "a shared rate": ({ client }) => client.callTool("count"),
  "the health check": ({ fetch }) => fetch("/ready"),
};

for (const [name, run] of Object.entries(uses)) {
  Deno.test(`a store that is down from the start is reported once with its cause, and its recovery: ${name}`, async () => {
    await withSite(async (site) => {
      const { events, engine } = site;
      for (let i = 0; i < 3; i++) await run(site).catch(() => {});
      await until(() => events.length > 0, "the event");
      assertEquals(events.map(({ state }) => state), ["degraded"]);
      assertStringIncludes(toCauses(events[0].error), "the network is gone");
      engine.isLost = false;
      await until(async () => {
        await run(site).catch(() => {});
        return events.some(({ state }) => state === "recovered");
      }, "the recovery");
    });
  });
}

Deno.test("a store that can read but not write is reported once, and recovers with the first write", async () => {
  let isFull = true;
  const { connect } = memoryStore()[INTERNALS];
  const store = customStore(async () =>
    wrapEngine(await connect(), ({ name, run }) => {
      if (isFull && ["set", "append", "delete", "trim"].includes(name)) throw new Error("the disk is full");
      return run();
    })
  );
  await withSite(async ({ client, fetch, events }) => {
    for (let i = 0; i < 3; i++) {
      await client.callTool("pay").catch(() => {});
      assertEquals((await fetch("/ready")).status, 200);
    }
    assertEquals(events.map(({ state }) => state), ["degraded"]);
    assertStringIncludes(toCauses(events[0].error), "the disk is full");
    isFull = false;
    await until(async () => {
      await client.callTool("pay").catch(() => {});
      return events.some(({ state }) => state === "recovered");
    }, "the recovery");
    assertEquals(events.length, 2);
  }, { store });
});

Deno.test("a task that cannot begin names the store, also for the client", async () => {
  await withSite(async ({ client }) => {
    const { message } = await client.callTool("work").then(() => new Error("no error"), (error: Error) => error);
    assertEquals(message, sentence("store"));
  });
});

Deno.test("without an observer, a store that is down from the start is printed with its cause", async () => {
  const printed: unknown[][] = [];
  const { error } = console;
  console.error = (...args) => void printed.push(args);
  try {
    await withSite(async ({ client }) => {
      await client.callTool("work").catch(() => {});
      await until(() => printed.length > 0, "the line");
    }, { observer: undefined });
  } finally {
    console.error = error;
  }
  const text = printed.flat().map((each) => `${each} ${toCauses(each)}`).join(" ");
  assert(text.includes("the network is gone"), text);
});

// `server.ready()` begins to connect to the store, so that the first operation need not wait. The server starts even if
// the store does not respond.

interface EarlySite {
  readonly server: Server;
  readonly events: StoreEvent[];
  /** The number of calls of the connect function. */
  count(): number;
}

function startEarly(
  connect: (signal: AbortSignal) => Promise<StoreEngine>,
  options: Partial<ServerOptions> = {},
): EarlySite {
  const events: StoreEvent[] = [];
  let count = 0;
  const store = customStore(({ signal }) => {
    count++;
    return connect(signal);
  }, { timeoutMs: 200 });
  const observer: ServerOptions["observer"] = { store: (event) => void events.push(event) };
  const server = openServer({ store, observer, ...options });
  return { server, events, count: () => count };
}

const memory = memoryStore();
const open = async () => await memory[INTERNALS].connect();

Deno.test("ready() connects to the store once, and createServer() does not", async () => {
  const { server, events, count } = startEarly(open);
  assertEquals(count(), 0);
  await server.ready();
  await until(() => count() === 1, "the store has connected");
  await server.ready();
  server.resourceUpdated("note://1");
  await server.close();
  assertEquals([count(), events], [1, []]);
});

Deno.test("ready() of mounted servers connects the store of each server", async () => {
  const sites = [startEarly(open, { path: "/a" }), startEarly(open, { path: "/b" })];
  await using mounted = mount(sites.map(({ server }) => server));
  await mounted.ready();
  await until(() => sites.every(({ count }) => count() === 1), "both stores have connected");
});

Deno.test("ready() does not wait for a store that never connects, and the server closes while the store connects", async () => {
  const signals: AbortSignal[] = [];
  const { server, events } = startEarly((signal) => {
    signals.push(signal);
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await server.ready();
  assertEquals(signals.map(({ aborted }) => aborted), [false]);
  await server.close();
  assertEquals([signals.map(({ aborted }) => aborted), events], [[true], []]);
});

Deno.test("if the store fails while the server starts, the observer gets one event, and ready() does not reject", async () => {
  let isDown = true;
  const { server, events } = startEarly(async () => {
    if (isDown) throw new Error("the network is gone");
    return await open();
  });
  await server.ready();
  await until(() => events.length > 0, "the event");
  await server.ready();
  isDown = false;
  await until(async () => {
    server.resourceUpdated("note://1");
    await server.ready();
    return events.some(({ state }) => state === "recovered");
  }, "the store works again");
  assertEquals(events.map(({ state }) => state), ["degraded", "recovered"]);
});

// Every operation of the store takes a third of its timeout. Calls that do not need the store are not affected. Other
// calls are slow, but are neither lost nor refused, and no instance treats the store as unavailable.

/** The timeout of store operations in milliseconds. No other timer of the test takes exactly as long. */
const TIMEOUT_MS = 303;
const TEXT = "line\n".repeat(2000);

let runs = 0;

/** An instance with a slow store. */
interface Slow extends AsyncDisposable {
  readonly server: Server;
  /** The store operations that have started, except polling for changes. */
  readonly operations: string[];
  /** The store events that were reported to the observer. */
  readonly states: string[];
}

function startSlow(shared: Store, clock: FakeClock): Slow {
  const operations: string[] = [];
  const states: string[] = [];
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, run }) => {
      if (name !== "read" && name !== "heads") operations.push(name);
      await new Promise<void>((resolve) => clock.start(resolve, TIMEOUT_MS / 3));
      return run();
    }), { timeoutMs: TIMEOUT_MS, pollMs: 50 });
  const server = openServer({
    clock,
    store,
    handlers: [
      tool({ name: "quick", run: () => "quick" }),
      tool({ name: "pay", use: [idempotent(() => "key")], run: () => `paid ${++runs}` }),
      tool({ name: "all", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => TEXT }),
      resource({ uri: "note://1", name: "note", read: () => "text" }),
    ],
    observer: { store: ({ state }) => void states.push(state) },
  });
  return { server, operations, states, [Symbol.asyncDispose]: () => server.close() };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a slow store delays only calls that need the store (${era})`, async () => {
    const clock = fakeClock();
    await withTimersOn(clock, TIMEOUT_MS, () => advanceUntil(clock, TIMEOUT_MS / 6, useSlowStore(era, clock)));
  });
}

async function useSlowStore(era: "modern" | "legacy", clock: FakeClock): Promise<void> {
  runs = 0;
  const shared = memoryStore({ clock });
  await using a = startSlow(shared, clock);
  await using b = startSlow(shared, clock);
  const ada = { era, principal: { id: "ada" } };
  await using here = await connectTest(a.server, ada);
  await using there = await connectTest(b.server, ada);
  await using far = await there.subscribe({ resourceSubscriptions: ["note://1"] });
  // The first call in a session may mark the session as used, so it comes before the measurement.
  await here.callTool("quick");
  const before = a.operations.length;
  for (let i = 0; i < 100; i++) {
    assertEquals(textOf(await here.callTool("quick")), "quick");
    assertEquals((await here.listTools()).length, 3);
  }
  assertEquals(a.operations.slice(before), []);
  // The same call on both instances runs the handler once.
  const both = await Promise.all([here, there].map((client) => client.callTool("pay")));
  assertEquals([...both.map(textOf), runs], ["paid 1", "paid 1", 1]);
  const { content } = await here.callTool("all");
  const { contents } = await there.readResource(String(Object(content[1]).uri));
  assertEquals(String(Object(contents[0]).text).startsWith("line\n"), true);
  // Each change arrives once.
  for (let count = 1; count <= 3; count++) {
    a.server.resourceUpdated("note://1");
    await far.take(1);
  }
  assertEquals([a.states, b.states], [[], []]);
}
