// Every operation of the store takes a third of its timeout. Calls that do not need the store are not affected. Other
// calls are slow, but are neither lost nor refused, and no instance treats the store as unavailable.
import { assertEquals } from "@std/assert";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, textOf } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { withTimersOn } from "../support/timers.ts";

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

function start(shared: Store, clock: FakeClock): Slow {
  const operations: string[] = [];
  const states: string[] = [];
  const store = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, run }) => {
      if (name !== "read" && name !== "heads") operations.push(name);
      await new Promise<void>((resolve) => clock.start(resolve, TIMEOUT_MS / 3));
      return run();
    }), { timeoutMs: TIMEOUT_MS, pollMs: 50 });
  const server = createServer({
    name: "notes",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
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
  await using a = start(shared, clock);
  await using b = start(shared, clock);
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
