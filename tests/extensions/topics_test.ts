// The current notification of a topic: each subscriber gets the last one, whatever happens while it is loaded.
import { assertEquals } from "@std/assert";
import { createServer, extension, tool } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { Awaitable, LogPage } from "../../src/server/engine/store.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { connectTest, fakeClock, type TestSubscription } from "../../src/testing/testing.ts";
import { z } from "zod";
import { advanceUntil, behaviour, gate, turn, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";

const ID = "com.example/audit";
const declares = { extensions: [clientExtension({ id: ID })] };
const options = { eras: ["modern"], perInstance: "hooks" } as const;
const wanted = { extensions: { days: ["7"] } };
const handler = { method: "tools/call", params: { name: "add" } };
const add = tool({ name: "add", allow: async () => await turn().then(() => true), run: () => "" });

const toEvent = (at: unknown) => ({ method: "notifications/audit", params: { at } });
const listStates = ({ received }: TestSubscription) => received.map(({ params }) => params.at);

/** Creates an extension whose topics have a state. */
function watchDays(
  { load, watch, grant }: {
    readonly load: () => Awaitable<unknown>;
    readonly watch?: () => void;
    readonly grant?: () => Promise<unknown>;
  },
) {
  return extension({
    id: ID,
    listen: {
      days: {
        filter: z.array(z.string()),
        watch,
        grant: async (days) => (await grant?.(), days),
        load: async () => ({ ...toEvent(await load()), handler }),
      },
    },
  });
}

for (const count of [1, 3]) {
  behaviour(`the last of ${count} notifications that overtake a load stays the last notification`, async (connect) => {
    const [began, slow] = [gate(), gate()];
    let loads = 0;
    let state = 0;
    const audit = watchDays({
      async load() {
        const found = state;
        began.open();
        if (!loads++) await slow.pass;
        return found;
      },
    });
    const { client } = await connect({ handlers: [audit, add] }, declares);
    const subscription = await client.subscribe(wanted);
    await began.pass;
    while (state < count) audit.publish("days", { topic: "7", ...toEvent(++state), handler });
    slow.open();
    await until(() => loads > 1 && listStates(subscription).includes(count), "the last state");
    await turn(5);
    assertEquals(listStates(subscription).at(-1), count);
    assertEquals(listStates(subscription).filter((each) => each === count || each === 0), [count]);
  }, options);
}

behaviour("a load that finds a newer state than the notification that overtakes it is not lost", async (connect) => {
  const [began, slow] = [gate(), gate()];
  let loads = 0;
  const audit = watchDays({
    async load() {
      began.open();
      if (!loads++) await slow.pass;
      return "newer";
    },
  });
  const { client } = await connect({ handlers: [audit, add] }, declares);
  const subscription = await client.subscribe(wanted);
  await began.pass;
  audit.publish("days", { topic: "7", ...toEvent("older"), handler });
  slow.open();
  await until(() => listStates(subscription).length === 2, "both states");
  assertEquals(listStates(subscription), ["older", "newer"]);
}, options);

behaviour("a further subscriber gets a change that came after its subscription was granted", async (connect) => {
  const granting = gate();
  let state = "working";
  const seen: string[] = [];
  const audit = watchDays({
    load: () => state,
    grant: async () => {
      seen.push(state);
      if (seen.length > 1) await granting.pass;
    },
  });
  const { client, join } = await connect({ handlers: [audit, add] }, declares);
  const first = await client.subscribe(wanted);
  await until(() => first.received.length === 1, "the state");
  const other = await join(declares);
  const subscribing = other.subscribe(wanted);
  await until(() => seen.length === 2, "the subscription is decided");
  audit.publish("days", { topic: "7", ...toEvent(state = "completed"), handler });
  granting.open();
  const second = await subscribing;
  await until(() => second.received.length === 1, "the change");
  await turn(5);
  assertEquals([first, second].map(listStates), [["working", "completed"], ["completed"]]);
}, options);

Deno.test("a watch and a load that fail are repeated until they succeed, and each is reported once", async () => {
  const clock = fakeClock();
  const faults: unknown[] = [];
  const calls: string[] = [];
  const fail = (name: string, left: number) => {
    calls.push(name);
    if (calls.filter((each) => each === name).length <= left) throw new Error(`no ${name}`);
  };
  const audit = watchDays({
    watch: () => fail("watch", 3),
    load: () => (fail("load", 6), "loaded"),
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(Object(error).message) };
  await using server = createServer({ name: "one", version: "1", clock, observer, handlers: [audit, add] });
  await using client = await connectTest(server, declares);
  const subscription = await client.subscribe(wanted);
  await advanceUntil(clock, 1000, until(() => subscription.received.length === 1, "the state"));
  assertEquals(listStates(subscription), ["loaded"]);
  assertEquals(faults, ["no watch", "no load"]);
  assertEquals(calls, ["watch", "watch", "watch", "watch", ...Array.from({ length: 7 }, () => "load")]);
});

for (const part of ["watch", "load"] as const) {
  Deno.test(`a ${part} that fails is not repeated after the last subscriber has left`, async () => {
    const clock = fakeClock();
    let calls = 0;
    let isBroken = true;
    const run = () => {
      calls++;
      if (isBroken) throw new Error("broken");
      return "loaded";
    };
    const audit = watchDays({ load: () => "loaded", [part]: part === "load" ? run : () => void run() });
    await using server = createServer({
      name: "one",
      version: "1",
      clock,
      observer: { fault() {} },
      handlers: [audit, add],
    });
    await using client = await connectTest(server, declares);
    const subscription = await client.subscribe(wanted);
    await until(() => calls === 1, "the failed call");
    await subscription.close();
    await turn(3);
    await clock.advance(20_000);
    assertEquals(calls, 1);
    // A later subscriber begins anew.
    isBroken = false;
    const later = await client.subscribe(wanted);
    await until(() => later.received.length === 1, "the state");
  });
}

Deno.test("an instance that has missed notifications of other instances loads its topics again", async () => {
  const shared = memoryStore();
  let isDropping = false;
  let dropped = 0;
  const dropping = customStore(async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, run }) => {
      const result = await run();
      if (!isDropping || name !== "read" || !(result as LogPage).entries.length) return result;
      // The store has dropped the entries before this instance could read them.
      dropped++;
      const { last } = result as LogPage;
      return { ...result as LogPage, entries: [], first: last + 1 };
    })
  );
  let state = 1;
  const serve = (store: Store) => {
    const audit = watchDays({ load: () => state });
    const secret = "s".repeat(32);
    return { audit, server: createServer({ name: "one", version: "1", secret, store, handlers: [audit, add] }) };
  };
  const [first, second] = [serve(customStore(shared[INTERNALS].connect)), serve(dropping)];
  const client = await connectTest(second.server, declares);
  const subscription = await client.subscribe(wanted);
  await until(() => listStates(subscription).at(-1) === 1, "the first state");
  isDropping = true;
  first.audit.publish("days", { topic: "7", ...toEvent(state = 2), handler });
  await until(() => listStates(subscription).at(-1) === 2, "the missed state");
  assertEquals(dropped > 0, true);
  await client.close();
  for (const { server } of [first, second]) await server.close();
});
