// The lease of a process is renewed whatever clients and the author's code do to the store, and the process knows until
// when other processes certainly see the lease.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type StoreOptions } from "../../src/stores/stores.ts";
import { type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { gate, until } from "../support/behaviour.ts";
import { type Command, openOn, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

/**
 * Opens a store whose commands run through `around`, and whose lease runs on a fake clock. `connects` counts the
 * connections.
 */
function open(around: (command: Command) => unknown, options: StoreOptions = {}) {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const opened = { connects: 0, shared, clock };
  const store = openOn(clock, async () => {
    opened.connects++;
    return wrapEngine(await shared[INTERNALS].connect(), around);
  }, options);
  return Object.assign(opened, { store });
}

/** Advances a clock by 10 ms at a time until a condition holds. */
async function advanceTo(clock: FakeClock, condition: () => unknown, what: string): Promise<void> {
  await until(async () => {
    if (await condition()) return true;
    await clock.advance(10);
    return await condition();
  }, what);
}

Deno.test("heldUntil and the term of a lease tell until when other processes certainly see it", async () => {
  const leaseMs = 400;
  let isCut = false;
  const { store, shared, clock } = open(async ({ run }) => {
    if (isCut) throw new Error("no route to the store");
    return await run();
  }, { leaseMs });
  const { lease } = store;
  assertEquals(lease.heldUntil, 0);
  await clock.advance(1000);
  const release = await lease.hold();
  const known = lease.heldUntil;
  assertEquals(known, clock.now() + leaseMs);
  const term = await lease.confirm();
  // Renewals do not change the term.
  await advanceTo(clock, () => lease.heldUntil > known, "a renewal");
  assertEquals(await lease.confirm(), term);
  isCut = true;
  // Before the time that the process knows, other processes see the lease.
  for (; clock.now() < lease.heldUntil; await clock.advance(10)) {
    assert(await shared.get(lease.id));
  }
  await advanceTo(clock, async () => await shared.get(lease.id) === undefined, "the lease has expired");
  await assertRejects(async () => await lease.confirm(), Error);
  isCut = false;
  assertEquals([await lease.confirm(), await shared.get(lease.id) !== undefined], [term + 1, true]);
  release();
  await store.close();
});

Deno.test("a lease that has expired is acquired again before hold resolves, even if it is still in use", async () => {
  let isCut = false;
  const { store, shared, clock } = open(async ({ run }) => {
    if (isCut) throw new Error("no route to the store");
    return await run();
  }, { leaseMs: 300 });
  await store.lease.hold();
  isCut = true;
  await advanceTo(clock, async () => await shared.get(store.lease.id) === undefined, "the lease has expired");
  await assertRejects(() => store.lease.hold(), Error);
  isCut = false;
  await store.lease.hold();
  assert(await shared.get(store.lease.id));
  await store.close();
});

Deno.test("a store in memory renews its lease by its own clock", async () => {
  const clock = fakeClock();
  const store = closeAtEnd(memoryStore({ clock, leaseMs: 5000 }));
  const release = await store.lease.hold();
  const term = await store.lease.confirm();
  for (let seconds = 0; seconds < 60; seconds++) {
    await clock.advance(1000);
    assertEquals([await store.get(store.lease.id) !== undefined, await store.lease.confirm()], [true, term]);
  }
  release();
  await clock.advance(10_000);
  assertEquals([await store.get(store.lease.id), store.lease.heldUntil < clock.now()], [undefined, true]);
});

Deno.test("a missed renewal is repeated at once, so that the lease does not expire", async () => {
  const leaseMs = 3000;
  let failures = 0;
  let isFailing = false;
  const { store, shared, clock } = open(async ({ name, run }) => {
    if (name === "set" && isFailing && ++failures <= 25) throw new Error("no route to the store");
    return await run();
  }, { leaseMs });
  await store.lease.hold();
  const known = store.lease.heldUntil;
  isFailing = true;
  await clock.advance(leaseMs / 3);
  await until(async () => {
    assert(await shared.get(store.lease.id));
    // The attempts of an operation take real time, so the clock is slower than the system's clock.
    await clock.advance(2);
    return store.lease.heldUntil > known;
  }, "a renewal");
  assert(failures > 25, `${failures}`);
  assert(clock.now() < known, "the lease was renewed too late");
  await store.close();
});

Deno.test("failures of operations that clients may cause neither stop the renewals nor replace the engine", async () => {
  const opened = open(async ({ name, args: [key], run }) => {
    if (name === "get" && key === "broken") throw new Error("this operation fails");
    return await run();
  }, { leaseMs: 300 });
  const { store, shared, clock } = opened;
  await store.lease.hold();
  for (; clock.now() < 900; await clock.advance(50)) {
    const failed = await Promise.allSettled(Array.from({ length: 20 }, async () => await store.get("broken")));
    assertEquals(failed.every(({ status }) => status === "rejected"), true);
    assert(await shared.get(store.lease.id));
    // Other operations are not refused.
    assertEquals(await store.get("works"), undefined);
  }
  assertEquals(opened.connects, 1);
  await store.close();
});

Deno.test("if the engine responds to nobody, operations fail at once, and the engine is replaced", async () => {
  let isCut = false;
  const opened = open(async ({ run }) => {
    if (isCut) throw new Error("no route to the store");
    return await run();
  }, { leaseMs: 60_000 });
  const { store } = opened;
  await store.lease.hold();
  isCut = true;
  await until(async () => {
    const error = await assertRejects(async () => await store.get("key"), Error);
    return error.message.includes("the last 3 operations failed");
  }, "operations fail at once");
  isCut = false;
  await until(async () => {
    try {
      return await store.get("key") === undefined;
    } catch {
      return false;
    }
  }, "the store is back");
  assertEquals(opened.connects, 2);
  await store.close();
});

Deno.test("operations of the author's code leave room in `pending` for the process, and its lease is never refused", async () => {
  const { pass, open: finish } = gate();
  const { store, clock } = open(async ({ name, run }) => {
    if (name === "get") await pass;
    return await run();
  }, { pending: 8, leaseMs: 300 });
  const waiting = Array.from({ length: 6 }, async () => await store.get("key"));
  await assertRejects(async () => await store.get("key"), Error, sentence("pending"));
  const { lease } = store;
  await lease.hold();
  const known = lease.heldUntil;
  await advanceTo(clock, () => lease.heldUntil > known, "a renewal");
  finish();
  await Promise.all(waiting);
  await store.close();
});

Deno.test("subscriptions of the author's code leave room in `subscriptions` for the process", async () => {
  const store = closeAtEnd(customStore(memoryStore()[INTERNALS].connect, { subscriptions: 8 }));
  for (let i = 0; i < 6; i++) await store.subscribe(`topic${i}`, () => {});
  await assertRejects(async () => await store.subscribe("topic", () => {}), Error, sentence("subscriptions"));
});
