// Questions of a server with sessions behind a proxy: its handler runs once, although a caller without a session sends a
// new request with each answer.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, McpError, type Params, tool, ToolError } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { behaviour, raise, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { answerAll, callRound, createUpstream, pairs, proxyOf, type Round } from "./fixture.ts";

const form = { type: "object", properties: { by: { type: "string" } } } as const;

/** A server that books with two questions, and notes what happens. */
function createBooking() {
  const events: string[] = [];
  const book = tool({
    name: "book",
    async run(_input, ctx) {
      events.push("begin");
      ctx.signal.addEventListener("abort", () => events.push("abort"));
      const name = await ctx.elicit("name", { message: "Name?", schema: form });
      const seat = await ctx.elicit("seat", { message: "Seat?", schema: form });
      events.push("end");
      return `${name.content?.by} on ${seat.content?.by}`;
    },
  });
  return { events, book };
}

const ask = (client: Pick<Client, "request">, params?: Params) => callRound(client, "book", params);
const answer = (round: Round, by: string) => answerAll(round, { action: "accept", content: { by } });

const parts = { eras: ["modern"], transports: ["http"], perInstance: "services" } as const;
const client = { capabilities: { elicitation: {} } };

pairs("the server behind the proxy runs once per call if it has sessions", async (join, { behind }) => {
  const { book, events } = createBooking();
  const { client } = await join({
    upstream: { handlers: [book] },
    client: { onElicit: ({ message }) => ({ action: "accept", content: { by: message } }) },
  });
  const texts = await Promise.all(Array.from({ length: 4 }, async () => textOf(await client.callTool("book"))));
  assertEquals(texts, Array(4).fill("up: Name? on up: Seat?"));
  const runs = events.filter((event) => event === "begin").length;
  assertEquals(behind === "legacy" ? runs === 4 : runs > 4, true);
});

behaviour("a parked call belongs to its caller, and an answer counts once", async (connect) => {
  const { book, events } = createBooking();
  const upstream = createUpstream("legacy", { handlers: [book] });
  const handlers = [proxyOf(upstream, "http")];
  const { client: ada, server, join } = await connect({ handlers }, { ...client, principal: { id: "ada" } });
  const eve = await join({ ...client, principal: { id: "eve" } });
  const first = await ask(ada);
  await assertRejects(() => ask(eve, answer(first, "Eve")), McpError);
  const second = await ask(ada, answer(first, "Ada"));
  // The repeated answer is not used for the second question.
  const again = await ask(ada, answer(first, "Bob"));
  assertEquals(again.inputRequests, second.inputRequests);
  const last = await ask(ada, answer(second, "1A"));
  assertEquals([last.resultType, textOf(last)], ["complete", "Ada on 1A"]);
  const repeated = await ask(ada, answer(second, "2B"));
  assertEquals(textOf(repeated), "Ada on 1A");
  assertEquals(events, ["begin", "end"]);
  await server.close();
  await upstream.close();
}, parts);

behaviour("without an identified caller, each round of a parked call counts once", async (connect) => {
  const { book, events } = createBooking();
  const upstream = createUpstream("legacy", { handlers: [book] });
  const { client: anybody, server } = await connect({ handlers: [proxyOf(upstream, "http")] }, client);
  const first = await ask(anybody);
  const second = await ask(anybody, answer(first, "Ada"));
  const used = await ask(anybody, answer(first, "Bob"));
  assertEquals(textOf(used), sentence("already used"));
  assertEquals(textOf(await ask(anybody, answer(second, "1A"))), "Ada on 1A");
  assertEquals(textOf(await ask(anybody, answer(second, "2B"))), sentence("no longer waits"));
  assertEquals(events, ["begin", "end"]);
  await server.close();
  await upstream.close();
}, parts);

behaviour("a parked call ends after ten minutes, as the state of its caller does", async (connect) => {
  const clock = fakeClock();
  const { book, events } = createBooking();
  const upstream = createUpstream("legacy", { handlers: [book] });
  const { client: ada, server } = await connect({ clock, handlers: [proxyOf(upstream, "http")] }, {
    ...client,
    principal: { id: "ada" },
  });
  const first = await ask(ada);
  await clock.advance(9 * 60_000);
  assertEquals(events, ["begin"]);
  await clock.advance(61_000);
  await until(() => events.includes("abort"), "the call behind the proxy was cancelled");
  await assertRejects(() => ask(ada, answer(first, "Ada")), McpError, sentence("has expired"));
  await server.close();
  await upstream.close();
}, parts);

behaviour("a parked call ends with its server, and with the cancellation of its request", async (connect) => {
  const { book, events } = createBooking();
  let seats = 0;
  const slow = tool({
    name: "slow",
    async run(_input, ctx) {
      events.push("begin");
      ctx.signal.addEventListener("abort", () => events.push("abort"));
      await ctx.elicit("name", { message: "Name?", schema: form });
      seats++;
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      return "never";
    },
  });
  const upstream = createUpstream("legacy", { handlers: [book, slow] });
  const { client: ada, server } = await connect({ handlers: [proxyOf(upstream, "http")] }, {
    ...client,
    principal: { id: "ada" },
  });
  const first = await callRound(ada, "slow");
  const stop = new AbortController();
  const { signal } = stop;
  const again = { name: "slow", arguments: {}, ...answer(first, "Ada") };
  const call = ada.request("tools/call", again, { rounds: false, signal });
  await until(() => seats, "the handler continues");
  stop.abort();
  await assertRejects(() => call);
  await until(() => events.includes("abort"), "the call behind the proxy was cancelled");
  await ask(ada);
  assertEquals(events, ["begin", "abort", "begin"]);
  await server.close();
  await until(() => events.length === 4, "the parked call ended with the server");
  await upstream.close();
}, parts);

behaviour("a parked call ends if the next run of its caller's handler does not continue it", async (connect) => {
  const { book, events } = createBooking();
  const upstream = createUpstream("legacy", { handlers: [book] });
  let later: (ctx: Context) => unknown = () => undefined;
  let runs = 0;
  const plan = tool({
    name: "plan",
    async run(_input, ctx) {
      const early = runs++ ? await later(ctx) : undefined;
      return early === undefined ? await ctx.callTool("book") : String(early);
    },
  });
  const { client: ada, server } = await connect({ handlers: [plan, proxyOf(upstream, "http")] }, {
    ...client,
    principal: { id: "ada" },
  });
  const begin = async (next: typeof later) => {
    runs = 0;
    events.splice(0);
    later = next;
    return await callRound(ada, "plan");
  };
  for (
    const [what, run] of Object.entries({
      "an early result": (): unknown => "early",
      "an error of the tool": (): never => raise(new ToolError("no")),
      "another error": (): never => raise(new McpError(7, "no")),
    })
  ) {
    const first = await begin(run);
    await callRound(ada, "plan", answer(first, "Ada")).catch(() => {});
    await until(() => events.includes("abort"), `the call behind the proxy was cancelled after ${what}`);
    assertEquals(events, ["begin", "abort"]);
  }
  // A further question keeps the call.
  let round = await begin(async (ctx) => void await ctx.elicit("own", { message: "Own?", schema: form }));
  for (const by of ["own", "Ada", "1A"]) round = await callRound(ada, "plan", answer(round, by));
  assertEquals([round.resultType, events], ["complete", ["begin", "end"]]);
  await server.close();
  await upstream.close();
}, parts);

behaviour(
  "the calls that wait are limited for each caller, and the other server decides what it does",
  async (connect) => {
    const ask = tool({
      name: "ask",
      async run(_input, ctx) {
        try {
          return (await ctx.elicit("name", { message: "Name?", schema: form })).action;
        } catch {
          return "without an answer";
        }
      },
    });
    const limits = { calls: { runningPerClient: 64 } };
    const upstream = createUpstream("legacy", { handlers: [ask], limits });
    const { client: ada, server, join } = await connect({ handlers: [proxyOf(upstream, "http")] }, {
      ...client,
      principal: { id: "ada" },
    });
    for (let at = 0; at < 20; at++) assertEquals((await callRound(ada, "ask")).resultType, "input_required");
    assertEquals(textOf(await callRound(ada, "ask")), "without an answer");
    const bob = await join({ ...client, principal: { id: "bob" } });
    assertEquals((await callRound(bob, "ask")).resultType, "input_required");
    await server.close();
    await upstream.close();
  },
  parts,
);

behaviour("the questions of calls that wait count towards the memory of their client", async (connect) => {
  const ask = tool({
    name: "ask",
    async run(_input, ctx) {
      const question = ctx.elicit("name", { message: "x".repeat(15_000), schema: form });
      return (await question.catch(() => ({ action: "without an answer" }))).action;
    },
  });
  const upstream = createUpstream("legacy", { handlers: [ask] });
  const limits = { memory: { bytesPerClient: 500_000 } };
  const { client: ada, server, join } = await connect({ handlers: [proxyOf(upstream, "http")], limits }, {
    ...client,
    principal: { id: "ada" },
  });
  const types = new Set<string>();
  for (let at = 0; at < 18; at++) {
    types.add(await callRound(ada, "ask").then(({ resultType }) => resultType, () => "refused"));
  }
  // The other server gets no answer, or the client cannot even call.
  assert(types.has("input_required") && types.size > 1, [...types].join());
  const bob = await join({ ...client, principal: { id: "bob" } });
  assertEquals((await callRound(bob, "ask")).resultType, "input_required");
  await server.close();
  await upstream.close();
}, parts);

Deno.test("the answer of a parked call reaches the instance on which it waits, through the store", async () => {
  const { book, events } = createBooking();
  const upstream = createUpstream("legacy", { handlers: [book] });
  const store = memoryStore();
  const create = () =>
    createServer({
      name: "gateway",
      version: "1.0.0",
      secret: "a secret of at least 32 characters",
      store,
      auth: ({ headers }) => ({ id: headers.get("x-user") ?? "nobody" }),
      observer: { fault: ({ error }) => void faults.push(error) },
      handlers: [proxyOf(upstream, "http")],
    });
  const faults: unknown[] = [];
  const instances = [create(), create()];
  let requests = 0;
  const fetch = async (request: Request) => await instances[requests++ % 2].fetch(request);
  const open = (user: string) =>
    connect("http://localhost/mcp", {
      era: "modern",
      fetch,
      headers: { "x-user": user },
      onElicit: ({ message }) => ({ action: "accept", content: { by: `${user} ${message}` } }),
    });
  const ada = await open("ada");
  const bob = await open("bob");
  const texts = await Promise.all([ada, bob, ada].map(async (client) => textOf(await client.callTool("book"))));
  assertEquals(texts, ["ada", "bob", "ada"].map((user) => `${user} up: Name? on ${user} up: Seat?`));
  assertEquals(events.filter((event) => event === "begin").length, 3);
  // The instance on which a call waits has ended.
  const direct = (at: number) =>
    connect("http://localhost/mcp", {
      era: "modern",
      fetch: async (request) => await instances[at].fetch(request),
      headers: { "x-user": "ada" },
      capabilities: { elicitation: {} },
    });
  const [left, right] = [await direct(0), await direct(1)];
  const first = await ask(left);
  await left.close();
  await instances[0].close();
  const lost = await ask(right, answer(first, "Ada"));
  assertEquals(textOf(lost), sentence("may have run"));
  for (const client of [ada, bob, right]) await client.close();
  await instances[1].close();
  await store.close();
  await upstream.close();
  assertEquals(faults, []);
});

pairs("a tool that can only run as a task is called and awaited, and runs once", async (join, { era }) => {
  const { book, events } = createBooking();
  const slow = tool({
    name: "slow",
    use: [task({ required: true, pollIntervalMs: 10 })],
    async run(input, ctx) {
      await ctx.progress(1, { total: 2 });
      return String(await book.run(Object(input), ctx as never));
    },
  });
  const onElicit = ({ message }: { readonly message: string }) => ({
    action: "accept" as const,
    content: { by: message },
  });
  const { client, join: joinAnother } = await join({
    upstream: { handlers: [slow, tasks()] },
    client: { onElicit, extensions: [taskClient()] },
  });
  assertEquals((await client.listTools()).map(({ name }) => name), ["slow"]);
  assertEquals(textOf(await client.callTool("slow")), "up: Name? on up: Seat?");
  assertEquals(events, ["begin", "end"]);
  if (era === "legacy") return;
  const other = await joinAnother({ onElicit });
  assertEquals((await assertRejects(() => other.callTool("slow"), McpError)).code, -32_021);
}, { behind: ["modern"] });
