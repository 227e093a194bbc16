// One of two instances cannot reach the store. This instance refuses calls that need the store, and runs other calls.
// After the recovery, both instances share state again.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { createLosable, type Losable } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";

interface Side extends AsyncDisposable {
  readonly server: Server;
  /** The instance's connection to the store. */
  readonly link: Losable;
  /** The store events that were reported to the observer. */
  readonly states: readonly string[];
}

let runs = 0;

function start(shared: Store): Side {
  const link = createLosable({ pollMs: 50 }, shared);
  const states: string[] = [];
  const server = createServer({
    name: "notes",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    store: link.open(),
    handlers: [
      tool({ name: "quick", run: () => "quick" }),
      tool({ name: "pay", use: [idempotent(() => "key")], run: () => `paid ${++runs}` }),
      resource({ uri: "note://1", name: "note", read: () => "text" }),
    ],
    observer: { store: ({ state }) => void states.push(state) },
  });
  return { server, link, states, [Symbol.asyncDispose]: () => server.close() };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`an instance that cannot reach the store refuses calls that need the store, and recovers automatically (${era})`, async () => {
    runs = 0;
    const shared = memoryStore();
    await using a = start(shared);
    await using b = start(shared);
    const ada = { era, principal: { id: "ada" } };
    await using here = await connectTest(a.server, ada);
    await using there = await connectTest(b.server, ada);
    await using near = await here.subscribe({ resourceSubscriptions: ["note://1"] });
    await using far = await there.subscribe({ resourceSubscriptions: ["note://1"] });
    assertEquals(textOf(await here.callTool("pay")), "paid 1");
    b.link.isLost = true;
    // Calls that do not need the store run on both instances.
    for (const client of [here, there]) {
      assertEquals(textOf(await client.callTool("quick")), "quick");
      assertEquals((await client.listTools()).length, 2);
    }
    // The other instance holds the key. This instance cannot read the key, so it does not run the call.
    assertEquals(textOf(await here.callTool("pay")), "paid 1");
    const error = await assertRejects(() => there.callTool("pay"), McpError, sentence("pay"));
    assertEquals([error.code, runs], [-31503, 1]);
    // The change reaches the clients of this instance.
    a.server.resourceUpdated("note://1");
    await near.take(1);
    b.server.resourceUpdated("note://1");
    await far.take(1);
    await until(() => b.states.includes("degraded"), "the observer is notified");
    assertEquals(a.states, []);
    b.link.isLost = false;
    await until(async () => {
      try {
        return textOf(await there.callTool("pay")) === "paid 1";
      } catch (error) {
        assert(error instanceof McpError && error.code === -31503);
        return false;
      }
    }, "the store is available again");
    // Changes reach the other instance again, in both directions.
    const [before, beforeFar] = [near.received.length, far.received.length];
    await until(() => {
      a.server.resourceUpdated("note://1");
      return far.received.length > beforeFar;
    }, "a change on the first instance has reached the second instance");
    await until(() => {
      b.server.resourceUpdated("note://1");
      return near.received.length > before + 1;
    }, "a change on the second instance has reached the first instance");
    assert(b.states.includes("recovered"), b.states.join());
    assertEquals(runs, 1);
  });
}
