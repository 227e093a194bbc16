// The test kit's client extends the library's client: it has the same methods and options, and further members for
// tests.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, prompt, resource, tool } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, textOf, turn } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { withTimersOn } from "../support/timers.ts";

const handlers = [
  tool({
    name: "ask",
    async run(_input, ctx) {
      await ctx.log.info("asking");
      const form = await ctx.elicit("form", {
        message: "Name?",
        schema: z.object({ name: z.string().default("Ada") }),
      });
      const page = await ctx.elicitUrl("page", { message: "Pay", url: "https://example.com/pay" });
      const sample = await ctx.sample("joke", { messages: [], maxTokens: 1 });
      const roots = await ctx.roots();
      return [form.content?.name, page.action, sample.model, roots.length].join();
    },
  }),
  resource({ uri: "note://{id}", name: "note", list: () => [{ uri: "note://1", name: "1" }], read: ({ id }) => id }),
  prompt({
    name: "greet",
    input: z.object({ who: z.string() }),
    complete: { who: () => ["Ada", "Alan"] },
    run: ({ who }) => `Hello, ${who}`,
  }),
];

const answers = {
  onElicit: () => ({ action: "accept" }) as const,
  onElicitUrl: () => ({ action: "decline" }) as const,
  onSample: () => ({ role: "assistant", content: { type: "text", text: "Ha" }, model: "m" }) as const,
  roots: () => [{ uri: "file:///a" }],
};

Deno.test("the test kit's client has every member of the library's client", async () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers });
  await using tested = await connectTest(server);
  await using client = await connectClient(server);
  for (const name of Reflect.ownKeys(client)) assert(Object.hasOwn(tested, name), String(name));
  const extra = Object.keys(tested).filter((name) =>
    !Object.hasOwn(client, name) && tested[name as keyof typeof tested]
  );
  assertEquals(extra.sort(), ["era", "faults", "path", "received", "transcript", "transport", "url", "warnings"]);
});

behaviour("every method works with the options of the library's client", async (join, way) => {
  const notified: string[] = [];
  const { client, server } = await join({ handlers }, {
    ...answers,
    logLevel: "debug",
    info: { name: "kit", version: "2" },
    onNotification: ({ method }) => void notified.push(method),
  });
  assertEquals([client.era, client.transport, client.path], [way.era, way.transport, "/mcp"]);
  assertEquals([client.server.era, client.server.version], [way.era, way.version]);
  assertEquals((await client.listTools()).map(({ name }) => name), ["ask"]);
  assertEquals((await client.listResources()).map(({ uri }) => uri), ["note://1"]);
  assertEquals((await client.listResourceTemplates()).map(({ uriTemplate }) => uriTemplate), ["note://{id}"]);
  assertEquals((await client.listPrompts()).map(({ name }) => name), ["greet"]);
  assertEquals(textOf(await client.callTool("ask")), "Ada,decline,m,1");
  assert(notified.includes("notifications/message") && client.received.length >= notified.length);
  assertEquals((await client.readResource("note://x")).contents[0].text, "x");
  assertEquals((await client.getPrompt("greet", { who: "Ada" })).messages.length, 1);
  const argument = { name: "who", value: "A" };
  assertEquals((await client.complete({ type: "ref/prompt", name: "greet" }, argument)).values, ["Ada", "Alan"]);
  const before = client.received.length;
  await client.setLogLevel("error");
  await client.callTool("ask");
  assertEquals(client.received.slice(before), []);
  assert(client.transcript.some((line) => line.includes(`"name":"kit"`)));
  const subscription = await client.subscribe({ toolsListChanged: true });
  const read = (async () => {
    const seen = [];
    for await (const { method } of subscription) seen.push(method);
    return seen;
  })();
  server.listChanged("tools");
  await subscription.take(1);
  await subscription.close();
  assertEquals(await read, ["notifications/tools/list_changed"]);
  assertEquals(subscription.received.length, 1);
}, { perInstance: "later" });

Deno.test("both clients iterate subscriptions in the same way, and deliver each change once", async () => {
  for (const open of [connectTest, connectClient]) {
    const clock = fakeClock();
    const server = createServer({ name: "s", version: "1.0.0", handlers, clock });
    await using client = await open(server);
    await using subscription = await client.subscribe({ toolsListChanged: true, promptsListChanged: true });
    server.listChanged("tools");
    server.listChanged("prompts");
    await clock.advance(100);
    await turn(5);
    for (const list of ["tools", "prompts"]) {
      for await (const { method } of subscription) {
        assertEquals(method, `notifications/${list}/list_changed`);
        break;
      }
    }
    await server.close();
  }
});

Deno.test("headers are sent with every HTTP request, and timeoutMs limits each request", async () => {
  const seen: unknown[] = [];
  const server = createServer({
    name: "s",
    version: "1.0.0",
    handlers: [
      tool({ name: "see", run: (_input, { http }) => void seen.push(http?.headers.get("x-tag")) }),
      tool({ name: "wait", run: (_input, { signal }) => new Promise((_, reject) => (signal.onabort = reject)) }),
    ],
  });
  const clock = fakeClock();
  await withTimersOn(clock, 50, async () => {
    await using client = await connectTest(server, { headers: { "x-tag": "1" }, timeoutMs: 50 });
    await client.callTool("see");
    assertEquals(seen, ["1"]);
    const waiting = assertRejects(() => client.callTool("wait"), DOMException, sentence("tools/call", 50));
    await advanceUntil(clock, 50, waiting);
  });
  await server.close();
});

Deno.test("a revision implies its era, and combining an old revision with the modern era throws", async () => {
  const server = createServer({ name: "s", version: "1.0.0" });
  for (const version of ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
    const own = version === "2026-07-28" ? "modern" : "legacy";
    await using client = await connectTest(server, { revisions: [version] });
    assertEquals([client.era, client.server.version], [own, version]);
    if (own === "modern") continue;
    await assertRejects(
      () => connectTest(server, { revisions: [version], era: "modern" }),
      TypeError,
      sentence(version, "era"),
    );
  }
  await using odd = await connectTest(server, { revisions: ["2099-01-01"] });
  await assertRejects(() => odd.listTools(), McpError, sentence('"2099-01-01"'));
  await server.close();
});

Deno.test("the error for an unanswered question names the options that can answer the question", async () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers });
  await using client = await connectTest(server, {
    era: "legacy",
    transport: "pipe",
    capabilities: { elicitation: {} },
  });
  await assertRejects(
    () => client.callTool("ask"),
    McpError,
    sentence("onElicit", "onElicitUrl", "onSample", "connectTest"),
  );
  await server.close();
});
