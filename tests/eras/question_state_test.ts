// The sealed state of a question: which caller and call can use it, and for how long.
import { assertEquals } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { closeAtEnd } from "../support/running.ts";
import { testLimits } from "../support/limits.ts";
import { type Round, sendRound } from "../support/rounds.ts";
import { sentence } from "../support/messages.ts";
import { plainTool } from "../support/behaviour.ts";

type Json = { readonly [key: string]: unknown };

const accept = (content: Json = {}) => ({ action: "accept", content });
const yes = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } as const;

type Held = ReturnType<typeof start>;

function start(options: Partial<ServerOptions> = {}) {
  const faults: unknown[] = [];
  const order = (name: string) =>
    tool({
      name,
      input: { type: "object" },
      async run(input, ctx) {
        const first = await ctx.elicit("first", { message: "First?", schema: yes });
        // The question depends on the answer to an earlier question, and on other data.
        const content = first.action === "accept" ? first.content : {};
        const text = `Second after ${JSON.stringify(content)} for ${JSON.stringify(input)}?`;
        const second = await ctx.elicit("second", { message: text, schema: yes });
        return `${first.action} ${second.action}`;
      },
    });
  const inherited = plainTool(
    "inherited",
    async (ctx) => (await ctx.elicit("constructor", { message: "?", schema: yes })).action,
  );
  const large = plainTool(
    "large",
    async (ctx) => (await ctx.elicit("first", { message: "?".repeat(2000), schema: yes })).action,
  );
  const endless = plainTool("endless", async (ctx) => {
    for (let i = 0;; i++) await ctx.elicit(`q${i}`, { message: `${i}?`, schema: yes });
  });
  const handlers = [order("order"), order("other"), inherited, large, endless];
  const server = closeAtEnd(createServer({
    name: "answers",
    version: "1.0.0",
    handlers,
    observer: { fault: ({ error }) => faults.push(error) },
    ...options,
  }));
  return { server, faults, path: options.path ?? "/mcp" };
}

/** Calls a tool. In the result, `asked` contains the messages of the questions. */
async function call(held: Held, name: string, more: Json = {}, principal?: string): Promise<Round> {
  const round = await sendRound(held, name, more, principal);
  return { ...round, asked: round.messages };
}

/** Returns the error message of a refused call. */
async function refuse(held: Held, name: string, more: Json, principal?: string): Promise<string> {
  const { status, code, says } = await call(held, name, more, principal);
  assertEquals([status, code], [400, -32602], says);
  return says;
}

Deno.test("a call asks its questions one after another, and then returns its result", async () => {
  const held = start();
  const first = await call(held, "order");
  assertEquals(first.asked, ["First?"]);
  const second = await call(held, "order", {
    inputResponses: { first: accept({ ok: true }) },
    requestState: first.state,
  });
  assertEquals(second.asked, ['Second after {"ok":true} for {}?']);
  // The state contains the first answer. The client need not send this answer again, and a different answer is ignored.
  const inputResponses = { second: accept({ ok: false }), first: { action: "decline" } };
  const last = await call(held, "order", { inputResponses, requestState: second.state });
  assertEquals([last.text, last.asked, last.state], ["accept accept", [], undefined]);
});

Deno.test("a question is asked again after an answer of the wrong shape, or after an answer to another question", async () => {
  const held = start();
  const { state } = await call(held, "order");
  const bad: readonly unknown[] = [undefined, null, 5, {}, { action: "maybe" }, accept(), accept({ ok: 1 })];
  for (const first of bad) {
    const again = await call(held, "order", { inputResponses: { first }, requestState: state });
    assertEquals(again.asked, ["First?"], JSON.stringify(first));
  }
  const early = { first: accept({ ok: true }), second: accept({ ok: true }) };
  const ahead = await call(held, "order", { inputResponses: early, requestState: state });
  assertEquals(
    ahead.asked,
    ['Second after {"ok":true} for {}?'],
    "an answer was accepted before its question was asked",
  );
});

Deno.test("answers without the state of their question are ignored", async () => {
  const held = start();
  const inputResponses = { first: accept({ ok: true }), second: { action: "decline" } };
  assertEquals((await call(held, "order", { inputResponses })).asked, ["First?"]);
  assertEquals((await call(held, "order", { inputResponses: {} })).asked, ["First?"]);
});

Deno.test("consent to one price is not accepted for another price", async () => {
  const buy = tool({
    name: "buy",
    input: { type: "object", properties: { price: { type: "number" } } },
    async run({ price }, ctx) {
      const sure = await ctx.elicit("sure", { message: `Pay ${price}?`, schema: yes });
      return sure.action === "accept" ? `paid ${price}` : "kept";
    },
  });
  const held = start({ handlers: [buy] });
  const inputResponses = { sure: accept({ ok: true }) };
  const { state } = await call(held, "buy", { arguments: { price: 10 } });
  const rows: readonly Json[] = [
    { arguments: { price: 12 }, inputResponses },
    { arguments: { price: 10 }, inputResponses },
    { arguments: {}, inputResponses },
  ];
  for (const row of rows) assertEquals((await call(held, "buy", row)).text, undefined, JSON.stringify(row));
  await refuse(held, "buy", { arguments: { price: 12 }, inputResponses, requestState: state });
  const paid = await call(held, "buy", { arguments: { price: 10 }, inputResponses, requestState: state });
  assertEquals(paid.text, "paid 10");
});

Deno.test("consent to a number is not accepted for another number with the same JSON representation", async () => {
  const pay = tool({
    name: "pay",
    input: { type: "object" },
    run: async (_input, ctx) => (await ctx.elicit("sure", { message: "Pay?", schema: yes })).action,
  });
  const held = start({ handlers: [pay] });
  const inputResponses = { sure: accept({ ok: true }) };
  const numbers = [null, 0, "raw -0", "raw 1e400", "raw -1e400", "Infinity", "-0"];
  for (const asked of numbers) {
    const { state } = await call(held, "pay", { arguments: { list: [asked] } });
    for (const given of numbers) {
      const more = { arguments: { list: [given] }, inputResponses, requestState: state };
      if (given === asked) assertEquals((await call(held, "pay", more)).text, "accept");
      else await refuse(held, "pay", more);
    }
  }
});

Deno.test("an answer to a question from one server is not accepted by another server with the same secret", async () => {
  const secret = "a secret that both servers share!";
  const servers: readonly Partial<ServerOptions>[] = [
    { name: "shop-test" },
    { name: "shop-prod" },
    { name: "shop-test", path: "/prod" },
  ];
  for (const one of servers) {
    for (const other of servers) {
      const [first, second] = [start({ secret, ...one }), start({ secret, ...other })];
      const { state } = await call(first, "order", {});
      const answer = { inputResponses: { first: accept({ ok: true }) }, requestState: state };
      if (one === other) assertEquals((await call(second, "order", answer)).asked?.length, 1);
      else {assertEquals(
          await refuse(second, "order", answer),
          sentence("requestState"),
          `${one.name} at ${other.name}`,
        );}
    }
  }
});

Deno.test("the name of a property that every object inherits does not count as an answer", async () => {
  const held = start();
  const { asked, state } = await call(held, "inherited", { inputResponses: {} });
  assertEquals(asked, ["?"]);
  assertEquals((await call(held, "inherited", { inputResponses: {}, requestState: state })).asked, ["?"]);
  const inputResponses = JSON.parse('{"constructor":{"action":"decline"}}');
  assertEquals((await call(held, "inherited", { inputResponses, requestState: state })).text, "decline");
});

Deno.test("inputResponses or requestState of the wrong type is refused", async () => {
  const held = start();
  for (const inputResponses of [[], "x", 5]) {
    assertEquals(await refuse(held, "order", { inputResponses }), sentence("inputResponses"));
  }
  for (const requestState of [5, {}, ["x"]]) {
    assertEquals(await refuse(held, "order", { requestState }), sentence("requestState"));
  }
  for (const requestState of ["", "x", "x".repeat(1000), "x".repeat(200_000)]) {
    assertEquals(await refuse(held, "order", { requestState }), sentence("requestState"));
  }
});

Deno.test("a state is valid only for its own tool, arguments and caller", async () => {
  const held = start();
  const args = { b: 1, a: { d: [1, { f: 2, e: 3 }], c: 4 } };
  const { state: requestState } = await call(held, "order", { arguments: args }, "ada");
  const inputResponses = { first: accept({ ok: true }) };
  const same = { a: { c: 4, d: [1, { e: 3, f: 2 }] }, b: 1 };
  assertEquals((await call(held, "order", { arguments: same, inputResponses, requestState }, "ada")).asked.length, 1);
  const others: readonly (readonly [name: string, args: unknown, principal?: string])[] = [
    ["other", args, "ada"],
    ["order", { ...args, b: 2 }, "ada"],
    ["order", { ...args, x: 1 }, "ada"],
    ["order", { b: 1, a: { ...args.a, d: [{ f: 2, e: 3 }, 1] } }, "ada"],
    ["order", undefined, "ada"],
    ["order", args, "bob"],
    ["order", args],
  ];
  for (const [name, given, principal] of others) {
    const says = await refuse(held, name, { arguments: given, inputResponses, requestState }, principal);
    assertEquals(says, sentence("requestState"));
  }
  const open = await call(held, "order", { arguments: args });
  assertEquals(
    await refuse(held, "order", { arguments: args, requestState: open.state }, "ada"),
    sentence("requestState"),
  );
});

Deno.test("a state is valid until it expires", async () => {
  const clock = fakeClock();
  const held = start({ clock, limits: testLimits({ calls: { stateMs: 1000 } }) });
  const { state: requestState } = await call(held, "order");
  await clock.advance(1000);
  assertEquals((await call(held, "order", { requestState })).asked, ["First?"]);
  await clock.advance(1);
  assertEquals(await refuse(held, "order", { requestState }), sentence("requestState", "calls.stateMs"));
});

Deno.test("a client is asked as many times as the limit allows", async () => {
  const held = start({ limits: testLimits({ calls: { rounds: 3 } }) });
  let requestState: string | undefined;
  for (let round = 0; round < 3; round++) {
    const inputResponses = round ? { [`q${round - 1}`]: accept({ ok: true }) } : undefined;
    const { asked, state } = await call(held, "endless", { inputResponses, requestState });
    assertEquals(asked, [`${round}?`]);
    requestState = state;
  }
  const says = await refuse(held, "endless", { inputResponses: { q2: accept({ ok: true }) }, requestState });
  assertEquals(says, sentence("calls.rounds", 3));
  assertEquals(held.faults, []);
});

Deno.test("a state that is too long is a server error, and is not sent", async () => {
  const held = start({ limits: testLimits({ calls: { stateBytes: 1000 } }) });
  const { code, state } = await call(held, "large");
  assertEquals([code, state, held.faults.length], [-32603, undefined, 1]);
  const roomy = start({ limits: testLimits({ calls: { stateBytes: 10_000 } }) });
  const { state: requestState } = await call(roomy, "large");
  assertEquals(
    (await call(roomy, "large", { requestState, inputResponses: { first: { action: "cancel" } } })).text,
    "cancel",
  );
});

Deno.test("a state can be exactly as long as the limit", async () => {
  const roomy = start();
  const length = (await call(roomy, "large")).state?.length ?? 0;
  for (const [stateBytes, code] of [[length, undefined], [length - 1, -32603]] as const) {
    const held = start({ limits: testLimits({ calls: { stateBytes } }) });
    assertEquals((await call(held, "large")).code, code);
  }
});

Deno.test("an invalid state gets 400, however long the check takes", async () => {
  const clock = fakeClock();
  const held = start({ clock, limits: testLimits({ streams: { openAfterMs: 1 } }) });
  const { decrypt } = crypto.subtle;
  const value = async (...args: Parameters<typeof decrypt>) => {
    await clock.advance(40);
    return await decrypt.apply(crypto.subtle, args);
  };
  Object.defineProperty(crypto.subtle, "decrypt", { configurable: true, value });
  try {
    await refuse(held, "order", { requestState: "x".repeat(1000) });
  } finally {
    Reflect.deleteProperty(crypto.subtle, "decrypt");
  }
});

Deno.test("a requestState that is null counts as absent, so answers with it are ignored", async () => {
  const held = start();
  const first = await call(held, "order");
  for (const more of [{}, { inputResponses: null }, { inputResponses: { first: accept({ ok: true }) } }]) {
    const { status, asked } = await call(held, "order", { requestState: null, ...more });
    assertEquals([status, asked], [first.status, first.asked]);
  }
  for (const requestState of [0, false, {}, []]) {
    assertEquals(await refuse(held, "order", { requestState }), sentence("not a string"));
  }
});
