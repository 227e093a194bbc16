// A call with an idempotency key starts its handler only while no other instance can assume that its instance has ended.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, McpError } from "../../src/testing/testing.ts";
import { gate, textOf, until } from "../support/behaviour.ts";
import { type Command, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const LEASE_MS = 400;
const ada = { principal: { id: "ada" } };

interface Instance extends AsyncDisposable {
  readonly server: Server;
  readonly store: Store;
  /** If set, runs each command of the engine. */
  around?: (command: Command) => unknown;
}

function startInstance(shared: Store, run: () => string): Instance {
  const instance: Pick<Instance, "around"> = {};
  const store = customStore(async () =>
    wrapEngine(
      await shared[INTERNALS].connect(),
      async (command) => await (instance.around ? instance.around(command) : command.run()),
    ), { leaseMs: LEASE_MS, timeoutMs: 20_000 });
  const server = openServer({
    store,
    handlers: [tool({ name: "pay", use: [idempotent({ key: () => "key", rerun: true })], run })],
    observer: { store() {} },
  });
  return Object.assign(instance, { server, store, [Symbol.asyncDispose]: () => server.close() });
}

/** Delays the response to the write of the key until the lease of the instance has expired. */
function delayClaim(instance: Instance, pass: Promise<void>): { readonly isClaimed: boolean } {
  const delayed = { isClaimed: false };
  const { lease } = instance.store;
  instance.around = async ({ name, args: [key], run }) => {
    if (name === "set" && key === lease.id && delayed.isClaimed) throw new Error("no route to the store");
    const done = await run();
    if (name === "set" && key !== lease.id && !delayed.isClaimed) {
      delayed.isClaimed = true;
      await pass;
      instance.around = undefined;
    }
    return done;
  };
  return delayed;
}

Deno.test("a handler does not start if another instance has taken over its key", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const { pass, open } = gate();
  await using a = startInstance(shared, () => (runs.push("a"), "paid by a"));
  await using b = startInstance(shared, () => (runs.push("b"), "paid by b"));
  await using here = await connectTest(a.server, ada);
  await using there = await connectTest(b.server, ada);
  const delayed = delayClaim(a, pass);
  const first = assertRejects(() => here.callTool("pay"), McpError, sentence("pay", "lease"));
  await until(() => delayed.isClaimed, "the key is claimed");
  assertEquals(textOf(await there.callTool("pay")), "paid by b");
  open();
  assertEquals((await first).code, -31503);
  assertEquals(textOf(await here.callTool("pay")), "paid by b");
  assertEquals(runs, ["b"]);
});

Deno.test("a handler starts after its instance has its lease again, if no other instance has taken over its key", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  const { pass, open } = gate();
  await using a = startInstance(shared, () => (runs.push("a"), "paid by a"));
  await using here = await connectTest(a.server, ada);
  const delayed = delayClaim(a, pass);
  const first = here.callTool("pay");
  await until(() => delayed.isClaimed, "the key is claimed");
  await until(() => a.store.lease.heldUntil < performance.now(), "the lease has expired");
  open();
  assertEquals(textOf(await first), "paid by a");
  assertEquals(runs, ["a"]);
  assert(await shared.get(a.store.lease.id));
});
