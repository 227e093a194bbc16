// Tests of the test kit itself. If the kit missed a fault, every test that uses it would be unreliable.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, type Fetch, tool, ToolError } from "../../mod.ts";
import { connectTest, fakeClock, fakeContext, McpError, type Served } from "../../src/testing/testing.ts";
import { Transcript } from "../../src/core/kit/transcript.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { behaviour, plainTool, started, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { withTimersOn } from "../support/timers.ts";

Deno.test("a fake clock runs timers in order, each at its own time", async () => {
  const clock = fakeClock(1000);
  const log: unknown[] = [];
  const note = (name: string) => () => void log.push([name, clock.now(), clock.date()]);
  clock.start(note("late"), 100);
  clock.start(note("early"), 10);
  clock.start(note("also early"), 10);
  const drop = clock.start(note("dropped"), 20);
  clock.start(() => {
    drop();
    clock.start(note("nested"), 5);
    Promise.resolve().then(() => clock.start(note("after a promise"), 1));
  }, 15);
  await clock.advance(9);
  assertEquals([log, clock.waiting], [[], 5]);
  await clock.advance(60);
  assertEquals(log, [
    ["early", 10, 1010],
    ["also early", 10, 1010],
    ["after a promise", 16, 1016],
    ["nested", 20, 1020],
  ]);
  assertEquals([clock.now(), clock.waiting], [69, 1]);
});

const shop = tool({
  name: "shop",
  input: z.object({ item: z.string() }),
  async run({ item }, ctx) {
    await ctx.progress(1, { total: 2 });
    await ctx.progress(1);
    await ctx.log.info({ item }, { logger: "shop" });
    const answer = await ctx.elicit("sure", { message: `Buy ${item}?`, schema: z.object({ ok: z.boolean() }) });
    if (answer.action !== "accept") throw new ToolError(answer.action);
    return `${ctx.principal?.id} ${answer.content.ok}`;
  },
});

Deno.test("a fake context answers, records, and validates like a real context", async () => {
  const answers = { sure: { action: "accept", content: { ok: true } } };
  const ctx = fakeContext({ answers, principal: { id: "ada" }, params: { _meta: { tag: 1 } } });
  assertEquals(await shop.run({ item: "tea" }, ctx), "ada true");
  assertEquals(ctx.progressed, [{ progress: 1, total: 2 }]);
  assertEquals(ctx.logged, [{ level: "info", logger: "shop", data: { item: "tea" } }]);
  assertEquals(ctx.asked.map(({ key, method, params }) => [key, method, params.message]), [
    ["sure", "elicitation/create", "Buy tea?"],
  ]);
  assertEquals([ctx.method, ctx.meta.tag], ["tools/call", 1]);
  const run = (options: Parameters<typeof fakeContext>[0]) =>
    Promise.resolve(shop.run({ item: "tea" }, fakeContext(options)));
  await assertRejects(() => run({ answers: { sure: { action: "decline" } } }), ToolError, "decline");
  await assertRejects(() => run({}), TypeError, sentence('"sure"'));
  await assertRejects(() => run({ answers: { sure: { action: "accept", content: { ok: 1 } } } }), TypeError, "ok");
  await assertRejects(() => run({ answers: { sure: true } }), TypeError, "action");
  await assertRejects(() => run({ answers, client: { capabilities: {} } }), Error, sentence("elicitation"));
});

Deno.test("a fake context samples, lists roots, runs ctx.once, and can be cancelled", async () => {
  const stop = new AbortController();
  const ctx = fakeContext({
    answers: {
      joke: { role: "assistant", model: "m", content: { type: "text", text: "Ha" } },
      roots: { roots: [{ uri: "file:///a" }] },
    },
    signal: stop.signal,
  });
  assertEquals((await ctx.sample("joke", { messages: [], maxTokens: 1 })).model, "m");
  assertEquals(await ctx.roots(), [{ uri: "file:///a" }]);
  assertEquals(await ctx.once("at", () => ({ at: new Date(0) as unknown })), { at: "1970-01-01T00:00:00.000Z" });
  assertEquals(ctx.signal.aborted, false);
  stop.abort("enough");
  assertEquals([ctx.signal.aborted, ctx.signal.reason.message, ctx.signal.reason.why], [true, "enough", "client"]);
  await ctx.progress(5);
  assertEquals(ctx.progressed, []);
  assertEquals(fakeContext({ signal: stop.signal }).signal.aborted, true);
});

type Answer = (request: Request, body: { readonly id: number }) => Response | Promise<Response>;

/** Creates a server that sends the same response to every request. */
function answering(answer: Answer): Served & { readonly fetch: Fetch } {
  return {
    fetch: async (request) => await answer(request, request.method === "POST" ? await request.json() : { id: 0 }),
    [INTERNALS]: {
      openPipe: () => {
        throw new Error("no pipe");
      },
    },
  };
}

const json = (value: unknown, status = 200) => Response.json(value, { status });
const sse = (...events: unknown[]) =>
  new Response(
    events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join(""),
    {
      headers: { "content-type": "text/event-stream" },
    },
  );
const ok = (id: unknown) => ({ jsonrpc: "2.0", id, result: { ok: true } });

Deno.test("the client refuses an invalid response to its request", async () => {
  const bad: Readonly<Record<string, readonly [answer: Answer, ...names: readonly (string | number)[]]>> = {
    "the id of another request": [() => json(ok(99)), 99],
    "a result that is not an object": [(_, { id }) => json({ jsonrpc: "2.0", id, result: 5 })],
    "a message without jsonrpc": [(_, { id }) => json({ id, result: {} })],
    "an HTML page": [
      () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } }),
      502,
      "text/html",
    ],
    "no content": [() => new Response(null, { status: 202 }), 202],
    "a stream without a response": [
      () => sse({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: 1 } }),
    ],
    "two responses": [(_, { id }) => sse(ok(id), ok(id))],
  };
  for (const [name, [answer, ...names]] of Object.entries(bad)) {
    await using client = await connectTest(answering(answer));
    await assertRejects(() => client.request("tools/list"), Error, sentence(...names), name);
  }
});

Deno.test("the client refuses what most clients only report: missing content, and an error for a notification", async () => {
  await using client = await connectTest(
    answering((_, { id }) => json({ jsonrpc: "2.0", id, result: { structuredContent: {} } })),
  );
  await assertRejects(() => client.callTool("t"), McpError, sentence("content"));
  const error = { code: -32601, message: "no" };
  await using other = await connectTest(answering(() => json({ jsonrpc: "2.0", id: null, error })));
  const refused = await assertRejects(() => other.notify("notifications/x"), McpError, sentence("notifications/x"));
  assertEquals([refused.code, refused.status], [-32601, 200]);
});

Deno.test("an error has a code, a message, data and a status", async () => {
  const error = { code: -32099, message: "No paper", data: { tray: 2 } };
  await using client = await connectTest(answering((_, { id }) => json({ jsonrpc: "2.0", id, error }, 400)));
  const thrown = await assertRejects(() => client.request("print"), McpError);
  assertEquals({ ...thrown }, { name: "McpError", code: -32099, data: { tray: 2 }, remote: true, status: 400 });
  assertEquals(thrown.message, "No paper");
  const refused = await assertRejects(() => client.notify("notifications/x"), McpError);
  assertEquals([refused.code, refused.status], [-32099, 400]);
});

Deno.test("a failed handshake is reported, and closes the connection", async () => {
  const error = { code: -32602, message: "No" };
  const failing = connectTest(answering((_, { id }) => json({ jsonrpc: "2.0", id, error }, 400)), { era: "legacy" });
  assertEquals((await assertRejects(() => failing, McpError)).code, -32602);
});

Deno.test("a transport that the server does not support is refused", async () => {
  const server = createServer({ name: "s", version: "1" });
  await assertRejects(() => connectTest(server, { transport: "stdio" }), TypeError, sentence("stdio"));
  await assertRejects(
    () => connectTest("./server.ts", { transport: "http" }),
    TypeError,
    sentence("http"),
  );
  await server.close();
});

Deno.test("the headers of a request can be replaced or removed", async () => {
  const seen: (string | null)[][] = [];
  await using client = await connectTest(answering(({ headers }, { id }) => {
    seen.push(["mcp-method", "mcp-name", "x-extra", "accept"].map((name) => headers.get(name)));
    return json(ok(id));
  }));
  await client.request("tools/call", { name: "ä " });
  await client.request("tools/list", {}, { headers: { "mcp-method": "other", "x-extra": "1", accept: null } });
  assertEquals(seen, [
    ["tools/call", "=?base64?w6Qg?=", null, "application/json, text/event-stream"],
    ["other", null, "1", null],
  ]);
});

Deno.test("in a transcript, equal values are replaced with the same name", () => {
  const transcript = new Transcript();
  const state = { requestState: "abc", nested: [{ requestState: "def" }, { errorId: "0a1b2c3d" }] };
  const text = '{"requestState":"<state 1>","nested":[{"requestState":"<state 2>"},{"errorId":"<error 1>"}]}';
  assertEquals([transcript.toText(state), transcript.toText(state)], [text, text]);
  const failed = (isError: boolean) => ({ content: [{ type: "text", text: "Internal error (0a1b2c3d)" }], isError });
  assertEquals(transcript.toText(failed(true)), JSON.stringify(failed(true)).replace("0a1b2c3d", "<error 1>"));
  assertEquals(transcript.toText(failed(false)), JSON.stringify(failed(false)));
  assertEquals(transcript.reveal(text), JSON.stringify(state));
  assertEquals(transcript.reveal("<state 9>"), "<state 9>");
});

const wait = plainTool(
  "wait",
  ({ signal }) => new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve(""))),
);

behaviour("a request that exceeds its timeout is cancelled, and the handler's signal aborts", async (connect) => {
  let [running, aborted] = [0, 0];
  const slow = plainTool("slow", ({ signal }) =>
    new Promise<string>((resolve) => {
      running++;
      signal.addEventListener("abort", () => {
        aborted++;
        resolve("");
      });
    }));
  const { client } = await connect({ handlers: [slow] });
  const clock = fakeClock();
  await withTimersOn(clock, 80, async () => {
    const late = started(client.callTool("slow", {}, { timeoutMs: 80 }));
    await until(() => running === 1, "the call runs");
    await clock.advance(80);
    const error = await assertRejects(() => late, DOMException);
    assertEquals([error.name, error.message], ["TimeoutError", sentence("tools/call", 80)]);
  });
  await until(() => aborted > 0, "the signal");
  assertEquals(aborted, 1);
});

behaviour("a subscription can be iterated, read message by message, and closed", async (connect) => {
  const { client, server } = await connect({ handlers: [wait] });
  const subscription = await client.subscribe({ toolsListChanged: true });
  const heard: string[] = [];
  const reading = (async () => {
    for await (const { method } of subscription) heard.push(method);
  })();
  const missing = assertRejects(() => subscription.take(2), Error, sentence(1));
  server.handlers.remove(wait);
  await subscription.take(1);
  await subscription.close();
  await Promise.all([reading, missing]);
  assertEquals(heard, ["notifications/tools/list_changed"]);
  assertEquals(await subscription.ended, undefined);
  await client.close();
  await client.close();
});

behaviour("a request that is cancelled before it is sent is not sent", async (connect) => {
  const { client } = await connect({ handlers: [wait] });
  const before = client.transcript.length;
  await assertRejects(() => client.callTool("wait", {}, { signal: AbortSignal.abort() }), DOMException);
  assertEquals(client.transcript.length, before);
});

behaviour("a call whose connection the server closes is resumed until the call ends", async (connect) => {
  const leave = plainTool("leave", async (ctx) => {
    await ctx.progress(1);
    ctx.closeStream(10);
    await ctx.progress(2);
    await turn(5);
    await ctx.progress(3);
    return "left and came back";
  });
  const { client } = await connect({ handlers: [leave] });
  assertEquals(textOf(await client.callTool("leave", {}, { meta: { progressToken: 1 } })), "left and came back");
  assertEquals(client.received.map(({ params }) => params.progress), [1, 2, 3]);
  assert(client.transcript.some((line) => line.startsWith("→ GET") && line.includes("last-event-id: <event ")));
}, { eras: ["legacy"], transports: ["memory", "http"] });

Deno.test("a fake context returns the resources that the test passes", async () => {
  const ctx = fakeContext({ resources: { "a:text": "text", "a:list": [{ uri: "a:1", text: "1" }] } });
  assertEquals(await ctx.readResource("a:text"), [{ uri: "a:text", text: "text" }]);
  assertEquals(await ctx.readResource("a:list"), [{ uri: "a:1", text: "1" }]);
  await assertRejects(() => ctx.readResource("a:none"), Error, sentence());
});

Deno.test("a fake context returns what the fakes of the inner calls return", async () => {
  const add = tool({ name: "add", output: z.object({ sum: z.number() }), run: () => ({ sum: 1 }) });
  const given: unknown[] = [];
  const ctx = fakeContext({
    callTool: (name, input) => {
      given.push([name, input]);
      return { sum: 3 };
    },
    getPrompt: (name) => ({ messages: [name] }),
    list: (kind) => [{ name: kind }],
    complete: () => ({ values: ["a"] }),
  });
  assertEquals((await ctx.callTool(add, {})).sum, 3);
  assertEquals(await ctx.callTool("add", { a: 1 }), Object({ sum: 3 }));
  assertEquals(given, [["add", {}], ["add", { a: 1 }]]);
  assertEquals(await ctx.getPrompt("greet"), Object({ messages: ["greet"] }));
  assertEquals(await ctx.list("tools"), Object([{ name: "tools" }]));
  const ref = { type: "ref/prompt", name: "p" } as const;
  assertEquals(await ctx.complete(ref, { name: "a", value: "" }), { values: ["a"] });
  const bare = fakeContext();
  assertEquals(await bare.list("tools"), []);
  await assertRejects(() => bare.callTool(add, {}), TypeError, sentence("ctx.callTool"));
  await assertRejects(() => bare.getPrompt("greet"), TypeError, sentence("ctx.getPrompt"));
  await assertRejects(() => bare.complete(ref, { name: "a", value: "" }), TypeError, sentence("ctx.complete"));
});
