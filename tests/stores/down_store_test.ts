// A store that does not respond from the start is reported with its cause, whatever uses it first.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { health } from "../../src/observe/observe.ts";
import { quota } from "../../src/layers/layers.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { until } from "../support/behaviour.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { createLosable, type Losable, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";

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
  const server = createServer({
    name: "down",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers,
    store: engine.open(),
    routes: [health()],
    observer: { store: (event) => void events.push(event), fault() {} },
    ...options,
  });
  const client = await connectTest(server, { extensions: [taskClient()], principal: { id: "ada" } });
  const fetch = (path: string) => server.fetch(new Request(`http://localhost${path}`));
  await use({ client, engine, events, fetch });
  await client.close();
  await server.close();
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
