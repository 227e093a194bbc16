// An answer with `singleUse` is accepted once, however many times its request is sent, and to whichever instances.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { Sealer } from "../../src/server/call/sealer.ts";
import { customStore, memoryStore, type Store, type StoreEngine } from "../../src/stores/stores.ts";
import { fakeClock, fakeContext } from "../../src/testing/testing.ts";
import { closeAtEnd } from "../support/running.ts";
import { behaviour, plainTool } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { type Round, sendRound as call } from "../support/rounds.ts";
import { sentence } from "../support/messages.ts";

type Json = { readonly [key: string]: unknown };

const SECRET = "a secret of at least thirty-two characters";
const yes = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } as const;
const accepted = { action: "accept", content: { ok: true } };

function open(options: Partial<ServerOptions> = {}, path = "/mcp") {
  /** The payments so far. */
  const paid: string[] = [];
  const pay = tool({
    name: "pay",
    input: { type: "object" },
    async run(_input, ctx) {
      const sure = await ctx.elicit("sure", { message: "Pay?", schema: yes, singleUse: true });
      if (sure.content?.ok) paid.push("pay");
      return sure.action;
    },
  });
  const visit = plainTool("visit", async (ctx) => {
    const { action } = await ctx.elicitUrl("page", { message: "Pay", url: "https://a.example/", singleUse: true });
    paid.push("visit");
    return action;
  });
  const order = plainTool("order", async (ctx) => {
    const first = await ctx.elicit("first", { message: "First?", schema: yes });
    const second = await ctx.elicit("second", { message: "Second?", schema: yes, singleUse: true });
    const third = await ctx.elicit("third", { message: "Third?", schema: yes });
    paid.push("order");
    return [first, second, third].map(({ action }) => action).join();
  });
  const server = closeAtEnd(
    createServer({ name: "shop", version: "1.0.0", path, handlers: [pay, visit, order], ...options }),
  );
  return { server, path, paid };
}

const answer = (state: string | undefined, key = "sure"): Json => ({
  requestState: state,
  inputResponses: { [key]: key === "page" ? { action: "accept" } : accepted },
});

function assertUsed({ status, code, says }: Round): void {
  assertEquals([status, code], [400, -32602], says);
  assertEquals(says, sentence());
}

for (const [title, makeStore] of [["memory", undefined], ["a store", memoryStore]] as const) {
  Deno.test(`a consent leads to one payment (${title})`, async () => {
    const shop = open({ store: makeStore?.() });
    for (const [name, key] of [["pay", "sure"], ["visit", "page"]] as const) {
      const { state } = await call(shop, name);
      assertEquals((await call(shop, name, answer(state, key))).text, "accept");
      for (let i = 0; i < 3; i++) assertUsed(await call(shop, name, answer(state, key)));
      // The request is also refused with another answer, and without an answer.
      assertUsed(await call(shop, name, { requestState: state, inputResponses: { [key]: { action: "decline" } } }));
      assertUsed(await call(shop, name, { requestState: state }));
    }
    assertEquals(shop.paid, ["pay", "visit"]);
  });

  Deno.test(`of many requests with the same answer, one runs (${title})`, async () => {
    const shop = open({ store: makeStore?.() });
    const { state } = await call(shop, "pay");
    const answers = await Promise.all(Array.from({ length: 50 }, () => call(shop, "pay", answer(state))));
    assertEquals(shop.paid, ["pay"]);
    assertEquals(answers.filter(({ text }) => text === "accept").length, 1);
    for (const each of answers) if (each.text === undefined) assertUsed(each);
  });

  Deno.test(`in a call with several rounds, each round after the question is accepted once (${title})`, async () => {
    const shop = open({ store: makeStore?.() });
    const first = await call(shop, "order");
    // The first question does not use singleUse, so its answer is accepted repeatedly.
    const [second, again] = [
      await call(shop, "order", answer(first.state, "first")),
      await call(shop, "order", answer(first.state, "first")),
    ];
    assertEquals([second.asked, again.asked], [["second"], ["second"]]);
    const third = await call(shop, "order", answer(second.state, "second"));
    assertEquals(third.asked, ["third"]);
    assertUsed(await call(shop, "order", answer(second.state, "second")));
    assertEquals((await call(shop, "order", answer(third.state, "third"))).text, "accept,accept,accept");
    assertUsed(await call(shop, "order", answer(third.state, "third")));
    assertEquals(shop.paid, ["order"]);
  });

  Deno.test(`after an invalid answer, the question is asked again with a new state (${title})`, async () => {
    const shop = open({ store: makeStore?.() });
    const { state } = await call(shop, "pay");
    const misfit = await call(shop, "pay", { requestState: state, inputResponses: { sure: { action: "accept" } } });
    assertEquals(misfit.asked, ["sure"]);
    assertUsed(await call(shop, "pay", answer(state)));
    assertEquals((await call(shop, "pay", answer(misfit.state))).text, "accept");
    assertEquals(shop.paid, ["pay"]);
  });

  Deno.test(`an answer counts as used only for its own caller, and expires like other answers (${title})`, async () => {
    const clock = fakeClock();
    const shop = open({ store: makeStore?.(), clock, limits: testLimits({ calls: { stateMs: 1000 } }) });
    const ada = await call(shop, "pay", {}, "ada");
    assertEquals((await call(shop, "pay", answer(ada.state), "bob")).says, sentence("requestState"));
    assertEquals((await call(shop, "pay", answer(ada.state), "ada")).text, "accept");
    const late = await call(shop, "pay", {}, "ada");
    await clock.advance(1001);
    assertEquals((await call(shop, "pay", answer(late.state), "ada")).says, sentence("requestState", "calls.stateMs"));
    assertEquals(shop.paid, ["pay"]);
  });
}

/** Deletes all values in a store, as if the database had been emptied. */
async function lose(store: Store): Promise<void> {
  for (const { key } of await store.list("", { limit: 1000 })) await store.delete(key);
}

Deno.test("after the store has lost its data, no earlier answer is accepted, whether it was used or not", async () => {
  const store = memoryStore();
  const shops = [open({ store, secret: SECRET }), open({ store, secret: SECRET })];
  const [used, unused] = [await call(shops[0], "pay"), await call(shops[0], "pay")];
  assertEquals((await call(shops[0], "pay", answer(used.state))).text, "accept");
  await lose(store);
  for (const state of [used.state, unused.state]) {
    for (const shop of shops) assertUsed(await call(shop, "pay", answer(state)));
  }
  // An instance that starts after the loss accepts none of them either.
  const late = open({ store, secret: SECRET });
  assertUsed(await call(late, "pay", answer(used.state)));
  for (const shop of [...shops, late]) {
    const { state } = await call(shop, "pay");
    assertEquals((await call(shop, "pay", answer(state))).text, "accept");
    assertUsed(await call(shops[0], "pay", answer(state)));
  }
  assertEquals(shops[0].paid.length + shops[1].paid.length + late.paid.length, 4);
});

Deno.test("an instance that starts after the store has lost its data refuses earlier answers, even if it gets them first", async () => {
  const store = memoryStore();
  const first = open({ store, secret: SECRET });
  const { state } = await call(first, "visit", {}, "ada");
  assertEquals((await call(first, "visit", answer(state, "page"), "ada")).text, "accept");
  await lose(store);
  const second = open({ store, secret: SECRET });
  assertUsed(await call(second, "visit", answer(state, "page"), "ada"));
  assertEquals([first.paid, second.paid], [["visit"], []]);
});

Deno.test("the first answers on a new store are accepted, also from an instance whose clock is slow", async () => {
  const store = memoryStore();
  const slow = open({ store, secret: SECRET, clock: fakeClock(Date.now() - 300_000) });
  const fast = open({ store, secret: SECRET });
  const states = [await call(fast, "pay"), await call(slow, "pay"), await call(slow, "pay", {}, "ada")];
  const answers = [
    await call(slow, "pay", answer(states[0].state)),
    await call(fast, "pay", answer(states[1].state)),
    await call(fast, "pay", answer(states[2].state), "ada"),
  ];
  assertEquals(answers.map(({ text }) => text), ["accept", "accept", "accept"]);
});

Deno.test("of two instances that share a store, only one accepts an answer", async () => {
  const store = memoryStore();
  const shops = [open({ store, secret: SECRET }), open({ store, secret: SECRET })];
  for (let i = 0; i < 20; i++) {
    const { state } = await call(shops[i % 2], "pay");
    const answers = await Promise.all([0, 1, 0, 1].map((at) => call(shops[at], "pay", answer(state))));
    assertEquals(answers.filter(({ text }) => text === "accept").length, 1);
    for (const each of answers) if (each.text === undefined) assertUsed(each);
  }
  assertEquals([...shops[0].paid, ...shops[1].paid].length, 20);
});

Deno.test("without a store, only the process that asked accepts the answer", async () => {
  const [asked, other] = [open({ secret: SECRET }), open({ secret: SECRET })];
  const { state } = await call(asked, "pay");
  const refused = await call(other, "pay", answer(state));
  assertEquals([refused.status, refused.code], [400, -32602]);
  assertEquals(refused.says, sentence());
  // A process with a store refuses the answer too, because its store has no record of the first process's answers.
  const stored = open({ secret: SECRET, store: memoryStore() });
  assertEquals((await call(stored, "pay", answer(state))).code, -32602);
  const { state: ofStore } = await call(stored, "pay");
  assertEquals((await call(asked, "pay", answer(ofStore))).code, -32602);
  assertEquals((await call(asked, "pay", answer(state))).text, "accept");
  assertEquals([other.paid, stored.paid, asked.paid], [[], [], ["pay"]]);
});

Deno.test("another server with the same secret and store does not accept the answer", async () => {
  const store = memoryStore();
  const [one, other] = [
    open({ store, secret: SECRET }),
    open({ store, secret: SECRET, name: "other" }),
  ];
  const { state } = await call(one, "pay");
  assertEquals((await call(other, "pay", answer(state))).says, sentence("requestState"));
  assertEquals((await call(one, "pay", answer(state))).text, "accept");
});

Deno.test("a server still rejects a used answer after the state of its path was evicted from memory", async () => {
  const pay = plainTool(
    "pay",
    async (ctx) => (await ctx.elicit("sure", { message: "?", schema: yes, singleUse: true })).action,
  );
  await using server = createServer({
    name: "shop",
    version: "1.0.0",
    path: "/t/:tenant/mcp",
    pathSchema: z.object({ tenant: z.string() }),
    limits: testLimits({ endpoints: { open: 1 } }),
    handlers: [pay],
  });
  const [acme, umbra] = ["acme", "umbra"].map((tenant) => ({ server, paid: [], path: `/t/${tenant}/mcp` }));
  const { state } = await call(acme, "pay");
  assertEquals((await call(acme, "pay", answer(state))).text, "accept");
  await call(umbra, "pay");
  assertUsed(await call(acme, "pay", answer(state)));
});

/** Creates a store that can become unavailable. */
function makeFragile(): { readonly store: Store; isLost: boolean; garble: boolean } {
  const memory = memoryStore()[INTERNALS];
  const fragile = { store: customStore(wrap, { timeoutMs: 200 }), isLost: false, garble: false };
  async function wrap(): Promise<StoreEngine> {
    const engine = await memory.connect();
    return wrapEngine(engine, async ({ name, run }) => {
      if (fragile.isLost && (name === "get" || name === "set")) throw new Error("lost");
      const found = await run();
      return name === "get" && found && fragile.garble ? { ...Object(found), value: "garbage" } : found;
    });
  }
  return fragile;
}

Deno.test("while the store is unavailable, an answer is refused without being used up", async () => {
  const fragile = makeFragile();
  const shop = open({ store: fragile.store, secret: SECRET });
  const { state } = await call(shop, "pay");
  fragile.isLost = true;
  const lost = await call(shop, "pay", answer(state));
  assertEquals([lost.status, lost.code, lost.retryAfter], [503, -31503, "1"], lost.says);
  assertEquals(lost.says, sentence());
  assertEquals(shop.paid, []);
  fragile.isLost = false;
  let paid = await call(shop, "pay", answer(state));
  while (paid.status === 503) paid = await call(shop, "pay", answer(state));
  assertEquals(paid.text, "accept");
  assertUsed(await call(shop, "pay", answer(state)));
});

Deno.test("if the record of used answers is unreadable, answers to older questions are refused", async () => {
  const fragile = makeFragile();
  const clock = fakeClock();
  const shop = open({ store: fragile.store, secret: SECRET, clock });
  const [first, second] = [await call(shop, "pay"), await call(shop, "pay")];
  assertEquals((await call(shop, "pay", answer(first.state))).text, "accept");
  await clock.advance(1);
  fragile.garble = true;
  assertEquals((await call(shop, "pay", answer(first.state))).code, -32602);
  fragile.garble = false;
  const cut = await call(shop, "pay", answer(second.state));
  assertEquals([cut.status, cut.code], [400, -32602]);
  const { state } = await call(shop, "pay");
  assertEquals((await call(shop, "pay", answer(state))).text, "accept");
});

for (const [title, makeStore] of [["memory", undefined], ["a store", memoryStore]] as const) {
  Deno.test(`no answer is accepted twice, however many answers a client uses, and other clients are not affected (${title})`, async () => {
    const shop = open({ store: makeStore?.() });
    const other = await call(shop, "pay", {}, "bob");
    const used: (string | undefined)[] = [];
    for (let i = 0; i < 600; i++) {
      const { state } = await call(shop, "pay", {}, "ada");
      used.push(state);
      assertEquals((await call(shop, "pay", answer(state), "ada")).text, "accept", `answer ${i}`);
    }
    for (const state of used) {
      const refused = await call(shop, "pay", answer(state), "ada");
      assertEquals([refused.status, refused.code], [400, -32602], refused.says);
    }
    assertEquals((await call(shop, "pay", answer(other.state), "bob")).text, "accept");
    assertEquals(shop.paid.length, 601);
  });
}

Deno.test("a server that refuses a request because it is busy does not use up the answer", async () => {
  let release = () => {};
  const pass = new Promise<void>((resolve) => release = resolve);
  const block = tool({ name: "block", run: () => pass });
  const pay = plainTool(
    "pay",
    async (ctx) => (await ctx.elicit("sure", { message: "?", schema: yes, singleUse: true })).action,
  );
  const shop = open({ handlers: [block, pay], limits: testLimits({ calls: { running: 1, waiting: 1 } }) });
  const { state } = await call(shop, "pay");
  const running = [call(shop, "block"), call(shop, "block")];
  let busy = await call(shop, "pay");
  while (busy.status !== 503) busy = await call(shop, "pay");
  assertEquals((await call(shop, "pay", answer(state))).status, 503);
  release();
  await Promise.all(running);
  assertEquals((await call(shop, "pay", answer(state))).text, "accept");
  assertUsed(await call(shop, "pay", answer(state)));
});

Deno.test("a singleUse that is not a boolean is an error, and no question is asked", async () => {
  for (const singleUse of ["true", 1, null, Promise.resolve(true)]) {
    const faults: unknown[] = [];
    const pay = plainTool(
      "pay",
      (ctx) => ctx.elicit("sure", { message: "?", schema: yes, singleUse: singleUse as never }),
    );
    const shop = open({ handlers: [pay], observer: { fault: ({ error }) => faults.push(error) } });
    assertEquals((await call(shop, "pay")).asked, []);
    assertEquals(String(faults[0]), sentence('"sure"', "singleUse"));
  }
});

Deno.test("a requestState of an unknown version is refused like a requestState of another server", async () => {
  const shop = open({ secret: SECRET });
  const { state = "" } = await call(shop, "pay");
  const sealer = new Sealer({ secret: SECRET, realm: JSON.stringify(["shop", "/mcp"]) });
  const [version, value] = await sealer.open("requestState", state) as [number, unknown];
  assertEquals(version, 1);
  for (const other of [[2, value], [0, value], ["1", value], [value], value, null]) {
    const text = await sealer.seal("requestState", other);
    assertEquals((await call(shop, "pay", answer(text))).says, sentence("requestState"));
  }
  assertEquals((await call(shop, "pay", answer(state))).text, "accept");
});

behaviour("a question with singleUse is asked and answered like other questions", async (connect) => {
  let paid = 0;
  const pay = plainTool("pay", async (ctx) => {
    const one = await ctx.elicit("one", { message: "Pay?", schema: yes, singleUse: true });
    const two = await ctx.elicit("two", { message: "Sure?", schema: yes });
    if (one.content?.ok && two.content?.ok) paid++;
    return "paid";
  });
  const { client } = await connect({ handlers: [pay] }, { onElicit: () => accepted as never });
  assertEquals((await client.callTool("pay")).isError, undefined);
  assertEquals((await client.callTool("pay")).isError, undefined);
  assertEquals(paid, 2);
});

Deno.test("the fake context accepts singleUse", async () => {
  const ctx = fakeContext({ answers: { sure: accepted } });
  const sure = await ctx.elicit("sure", { message: "Pay?", schema: yes, singleUse: true });
  assertEquals([sure.action, ctx.asked[0].params.singleUse], ["accept", undefined]);
  assert(ctx.asked[0].params.message === "Pay?");
});
