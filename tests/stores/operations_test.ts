// How many requests the actions of a client send to the engine of a store.
import { assert, assertEquals } from "@std/assert";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";

interface Counted {
  /** Creates an instance that counts the requests to its engine. */
  start(): Server;
  /** Returns the operations since the last call of `take`. */
  take(): readonly string[];
}

function createCounted(): Counted {
  const { connect } = memoryStore()[INTERNALS];
  const asked: string[] = [];
  return {
    start() {
      const store = customStore(async () =>
        wrapEngine(await connect(), ({ name, run }) => {
          asked.push(name);
          return run();
        }), { pollMs: 60_000, leaseMs: 60_000 });
      return createServer({
        name: "notes",
        version: "1.0.0",
        secret: "a secret of at least thirty-two characters",
        store,
        handlers: [
          tool({ name: "quick", run: () => "quick" }),
          tool({
            name: "steps",
            run: async (_, ctx) => {
              for (let step = 1; step <= 20; step++) {
                await ctx.progress(step);
                // Fixed wait: the writes of one second are counted.
                await new Promise((resolve) => setTimeout(resolve, 10));
              }
              return "done";
            },
          }),
          resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
        ],
      });
    },
    take: () => asked.splice(0),
  };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`calls, lists and open subscriptions send no requests to the engine (${era})`, async () => {
    const { start, take } = createCounted();
    const server = start();
    await using client = await connectTest(server, { era });
    // The first request of a session and the first subscription of a process read data that other instances may have
    // written, so they come before the measurement.
    await client.callTool("quick");
    await using subscription = await client.subscribe({ toolsListChanged: true });
    // A session's stream is opened at the same time as these requests. The process then writes its lease and its claim,
    // announces the stream, and appends to the log of the stream. These operations can end in any order.
    const before: string[] = [];
    const count = (name: string) => before.filter((each) => each === name).length;
    await until(() => {
      before.push(...take());
      return era === "modern" || count("set") >= 2 && count("append") >= 2 && count("read") >= 2;
    }, "everything before");
    for (let i = 0; i < 5; i++) {
      await client.callTool("quick");
      await client.listTools();
      await client.listResources();
      await client.readResource("note://1");
    }
    assertEquals(take(), []);
    if (era === "modern") {
      await using other = await client.subscribe({ resourceSubscriptions: ["note://2"] });
      assertEquals([take(), other.granted.resourceSubscriptions], [[], ["note://2"]]);
    } else {
      await client.request("resources/subscribe", { uri: "note://2" });
      // The request waits for these two operations. After that, every instance reads the announcement, including this
      // instance.
      assertEquals(take().filter((name) => name !== "read"), ["set", "append"]);
    }
    await subscription.close();
    await server.close();
  });
}

Deno.test("a notification to many listeners on several instances takes one append, and one read per instance", async () => {
  const { start, take } = createCounted();
  const servers = [start(), start(), start()];
  await using stack = new AsyncDisposableStack();
  const subscriptions = [];
  for (const server of servers) {
    for (let i = 0; i < 10; i++) {
      const client = stack.use(await connectTest(server));
      subscriptions.push(stack.use(await client.subscribe({ resourceSubscriptions: ["note://1"] })));
    }
  }
  await until(() => take().length === 0, "everything before");
  servers[0].resourceUpdated("note://1");
  await Promise.all(subscriptions.map((each) => each.take(1)));
  const asked = take();
  assertEquals(asked.filter((name) => name === "append").length, 1);
  assert(asked.filter((name) => name === "read").length <= servers.length, asked.join());
  assertEquals(asked.filter((name) => !["append", "read"].includes(name)), []);
  // Several changes to one resource within a batch are written once.
  for (let i = 0; i < 100; i++) servers[1].resourceUpdated("note://1");
  await Promise.all(subscriptions.map((each) => each.take(2)));
  assertEquals(take().filter((name) => name === "append").length, 1);
  for (const server of servers) await server.close();
});

Deno.test("a stream's events are written at most four times a second, and once at its end", async () => {
  const { start, take } = createCounted();
  const server = start();
  await using client = await connectTest(server, { era: "legacy", transport: "http" });
  await client.callTool("quick");
  take();
  const began = performance.now();
  const seen: number[] = [];
  await client.callTool("steps", {}, { onProgress: ({ progress }) => void seen.push(progress) });
  assertEquals(seen.length, 20);
  let appends = 0;
  await until(() => (appends += take().filter((name) => name === "append").length) > 0, "the events");
  const most = Math.ceil((performance.now() - began) / 250) + 1;
  assert(appends <= most, `${appends} appends; at most ${most} are expected`);
  await server.close();
});
