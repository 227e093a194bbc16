// What passes through a proxy: results, entries of lists, questions, progress and log messages, in all pairs of eras.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { McpError, media, prompt, resourceLink, tool } from "../../mod.ts";
import { behaviour, gate, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { createUpstream, pairs, proxyOf } from "./fixture.ts";

const form = { type: "object", properties: { by: { type: "string" } } } as const;
const names = (listed: readonly { readonly name: string }[]) => listed.map(({ name }) => name);

pairs("results keep structured content, media, links, metadata and errors", async (join) => {
  const output = { type: "object", properties: { sum: { type: "number" } } } as const;
  const add = tool({ name: "add", output, run: () => ({ sum: 3 }) });
  const mixed = tool({
    name: "mixed",
    run: () => ({
      content: [
        media(new Uint8Array([1, 2]), "image/png"),
        resourceLink("note://1"),
      ],
      _meta: { "example.com/trace": "7" },
    }),
  });
  const failing = tool({
    name: "failing",
    run: () => ({ content: [{ type: "text", text: "No flight on that date." }], isError: true }),
  });
  const refusing = tool({
    name: "refusing",
    run() {
      throw new McpError(-31_000, "The archive is closed", { page: 9 });
    },
  });
  const { client } = await join({ upstream: { handlers: [add, mixed, failing, refusing] } });
  const sum = await client.callTool("add");
  assertEquals([sum.structuredContent, textOf(sum)], [{ sum: 3 }, '{"sum":3}']);
  const { content, _meta } = await client.callTool("mixed");
  assertEquals(content.map(({ type }) => type), ["image", "resource_link"]);
  assertEquals(Object(_meta)["example.com/trace"], "7");
  const failed = await client.callTool("failing");
  assertEquals([failed.isError, textOf(failed)], [true, "No flight on that date."]);
  const { code, message, data } = await assertRejects(() => client.callTool("refusing"), McpError);
  assertEquals([code, message, data], [-31_000, "The archive is closed", { page: 9 }]);
});

pairs("entries keep their schemas, titles, annotations, icons and unknown members", async (join) => {
  const input = { type: "object", properties: { city: { type: "string", description: "Name" } }, required: ["city"] };
  const listed = {
    name: "weather",
    title: "The weather",
    description: "Tells the weather",
    inputSchema: input,
    outputSchema: { type: "object" },
    annotations: { readOnlyHint: true, vendor: "v" },
    icons: [{ src: "https://example.com/icon.png" }],
    _meta: { "example.com/kind": "sky" },
    vendor: { level: 3 },
  };
  const weather = tool.from(listed, () => ({ content: [], structuredContent: {} }));
  const { client } = await join({ upstream: { handlers: [weather] } });
  const [own] = await client.listTools();
  const { execution: _, ...shown } = own;
  assertEquals(shown, listed);
});

pairs("prompts pass with their arguments, and completion of the arguments", async (join) => {
  const review = prompt({
    name: "review",
    description: "Reviews code",
    input: {
      type: "object",
      properties: { code: { type: "string" }, language: { type: "string" } },
      required: ["code"],
    },
    complete: { language: (value, { code }) => [`${value}o`, `of ${code}`] },
    run: ({ code, language }) => `Review ${language}: ${code}`,
  });
  const { client } = await join({ upstream: { handlers: [review] }, proxy: { prefix: "up_" } });
  const [listed] = await client.listPrompts();
  assertEquals([
    listed.name,
    listed.description,
    listed.arguments?.map(({ name, required }) => [name, required ?? false]),
  ], [
    "up_review",
    "Reviews code",
    [["code", true], ["language", false]],
  ]);
  const { messages } = await client.getPrompt("up_review", { code: "x", language: "go" });
  assertEquals(messages, [{ role: "user", content: { type: "text", text: "Review go: x" } }]);
  const { values } = await client.complete(
    { type: "ref/prompt", name: "up_review" },
    { name: "language", value: "g" },
    { arguments: { code: "x" } },
  );
  assertEquals(values, ["go", "of x"]);
  await assertRejects(() => client.getPrompt("up_review"), McpError, sentence("required"));
});

pairs("progress passes if the caller requests it, and log messages at the caller's level", async (join, pair) => {
  const work = tool({
    name: "work",
    async run(_input, ctx) {
      await ctx.progress(1, { total: 2, message: "half" });
      await ctx.log.warning("careful", { logger: "db" });
      await ctx.log.debug("details");
      await ctx.progress(2, { total: 2 });
      return "done";
    },
  });
  const logs: unknown[] = [];
  const seen: unknown[] = [];
  const { client } = await join({
    upstream: { handlers: [work], capabilities: { logging: true } },
    server: { capabilities: { logging: true } },
    client: {
      logLevel: "info",
      onNotification: ({ method, params }) => void (method === "notifications/message" && logs.push(params)),
    },
  });
  await client.callTool("work", {}, { onProgress: (progress) => void seen.push(progress) });
  assertEquals(seen.map((each) => Object(each).progress), [1, 2]);
  assertEquals([Object(seen[0]).total, Object(seen[0]).message], [2, "half"]);
  // On a pipe that all callers share, a log message does not say to which call it belongs.
  const isUnknown = pair.behind === "modern" && pair.transport === "pipe";
  const expected = isUnknown ? [] : [["warning", "db", "careful"]];
  assertEquals(logs.map((each) => [Object(each).level, Object(each).logger, Object(each).data]), expected);
});

pairs("cancelling a call cancels the call behind the proxy", async (join) => {
  const begun = gate();
  let reason: string | undefined;
  const slow = tool({
    name: "slow",
    async run(_input, ctx) {
      begun.open();
      await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
      return "never";
    },
  });
  const watch = tool({ name: "other", run: () => "fine" });
  const { client } = await join({
    upstream: {
      handlers: [slow, watch],
      use: [async (ctx, next) => {
        ctx.signal.addEventListener("abort", () => reason = "aborted");
        return await next();
      }],
    },
  });
  const stop = new AbortController();
  const call = client.callTool("slow", {}, { signal: stop.signal });
  await begun.pass;
  stop.abort();
  await assertRejects(() => call);
  await until(() => reason, "the call behind the proxy was aborted");
  assertEquals(textOf(await client.callTool("other")), "fine");
});

pairs(
  "forms and pages reach the user with the name of the server that asks, and the answers reach the server",
  async (join) => {
    const ask = tool({
      name: "ask",
      async run(_input, ctx) {
        const asked = await Promise.all([
          ctx.elicit("first", { message: "First?", schema: form }),
          ctx.elicit("second", { message: "Second?", schema: form }),
        ]);
        const { action } = await ctx.elicitUrl("page", { message: "Open it?", url: "https://example.com/page" });
        return `${asked.map(({ content }) => content?.by)} ${action}`;
      },
    });
    const { client } = await join({
      upstream: { handlers: [ask] },
      proxy: { name: "booking" },
      client: {
        onElicit: ({ message }) => ({ action: "accept", content: { by: message } }),
        onElicitUrl: ({ message, url }) => ({
          action: message === "booking: Open it?" && url.endsWith("/page") ? "accept" : "decline",
        }),
      },
    });
    assertEquals(textOf(await client.callTool("ask")), "booking: First?,booking: Second? accept");
  },
);

pairs("a declined form, a model and roots pass", async (join) => {
  const use = tool({
    name: "use",
    async run(_input, ctx) {
      const { action } = await ctx.elicit("first", { message: "First?", schema: form });
      const { content } = await ctx.sample("second", {
        messages: [{ role: "user", content: { type: "text", text: "Hi" } }],
        maxTokens: 5,
      });
      const [root] = await ctx.roots();
      return `${action} ${JSON.stringify(content)} ${root.uri}`;
    },
  });
  const { client } = await join({
    upstream: { handlers: [use] },
    client: {
      onElicit: () => ({ action: "decline" }),
      onSample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "Hello" } }),
      roots: [{ uri: "file:///work" }],
    },
  });
  assertEquals(textOf(await client.callTool("use")), 'decline {"type":"text","text":"Hello"} file:///work');
});

pairs("a question ends when the server behind the proxy no longer waits for its answer", async (join) => {
  const ask = tool({
    name: "ask",
    run: async (_input, ctx) => (await ctx.elicit("who", { message: "Who?", schema: form })).action,
  });
  let asked = 0;
  const { client } = await join({
    upstream: { handlers: [ask], limits: { calls: { answerMs: 40 } } },
    client: {
      onElicit: () => {
        asked++;
        return new Promise(() => {});
      },
    },
  });
  await assertRejects(() => client.callTool("ask"), McpError, sentence("calls.answerMs"));
  assertEquals([asked, client.received.map(({ method }) => method)], [1, ["notifications/cancelled"]]);
}, { behind: ["legacy"], eras: ["legacy"] });

pairs("a prompt may ask too", async (join) => {
  const ask = prompt({
    name: "ask",
    run: async (_input, ctx) => `by ${(await ctx.elicit("who", { message: "Who?", schema: form })).content?.by}`,
  });
  const { client } = await join({
    upstream: { handlers: [ask] },
    client: { onElicit: ({ message }) => ({ action: "accept", content: { by: message } }) },
  });
  const { messages } = await client.getPrompt("ask");
  assertEquals(messages[0].content, { type: "text", text: "by up: Who?" });
});

pairs("the server behind the proxy decides what it does without a capability of the caller", async (join) => {
  const ask = tool({
    name: "ask",
    async run(_input, ctx) {
      try {
        return (await ctx.elicit("who", { message: "Who?", schema: form })).action;
      } catch (error) {
        return `without: ${Object(error).code}`;
      }
    },
  });
  const { client } = await join({ upstream: { handlers: [ask] } });
  const text = textOf(await client.callTool("ask"));
  assert(text.startsWith("without: "), text);
});

pairs("baggage and what the protocol reserves do not pass, other metadata does", async (join) => {
  const seen: Record<string, unknown>[] = [];
  const show = tool({
    name: "show",
    run(_input, ctx) {
      seen.push({ ...ctx.meta });
      return { content: [], _meta: { "io.modelcontextprotocol/own": 1, "example.com/own": 2 }, resultType: "odd" };
    },
  });
  const { client } = await join({ upstream: { handlers: [show] } });
  const meta = {
    baggage: "secret=1",
    "example.com/id": "7",
    traceparent: "00-1234567890abcdef1234567890abcdef-1234567890abcdef-01",
  };
  const result = await client.request("tools/call", { name: "show", arguments: {} }, { meta });
  assertEquals([seen[0].baggage, seen[0]["example.com/id"], typeof seen[0].traceparent], [undefined, "7", "string"]);
  const own = Object.keys(Object(result._meta)).filter((name) => !name.endsWith("/serverInfo"));
  assertEquals(own, ["example.com/own"]);
  assert(result.resultType === undefined || result.resultType === "complete");
});

pairs("a change of a list is announced once", async (join) => {
  const first = tool({ name: "first", run: () => "1" });
  const { client, upstream } = await join({ upstream: { handlers: [first] } });
  assertEquals(names(await client.listTools()), ["first"]);
  await using subscription = await client.subscribe({ toolsListChanged: true });
  upstream.handlers.add(tool({ name: "second", run: () => "2" }));
  await until(() => subscription.received.length, "the change was announced");
  assertEquals(names(await client.listTools()), ["first", "second"]);
  assertEquals(textOf(await client.callTool("second")), "2");
  upstream.handlers.remove(first);
  await until(() => subscription.received.length === 2, "the second change was announced");
  assertEquals(names(await client.listTools()), ["second"]);
  await assertRejects(() => client.callTool("first"), McpError, "Unknown tool");
});

pairs("a change of a list that nobody has requested is announced", async (join) => {
  const { client, upstream } = await join({
    upstream: { handlers: [tool({ name: "first", run: () => "1" }), prompt({ name: "p", run: () => "p" })] },
    proxy: { share: "all" },
  });
  assertEquals(textOf(await client.callTool("first")), "1");
  await using subscription = await client.subscribe({ promptsListChanged: true });
  upstream.handlers.add(prompt({ name: "q", run: () => "q" }));
  await until(() => subscription.received.length, "the change was announced");
  assertEquals(names(await client.listPrompts()), ["p", "q"]);
});

pairs("foreign hints are listed, and never trusted", async (join) => {
  const read = tool({ name: "read", annotations: { readOnlyHint: true }, run: () => "" });
  const { client } = await join({ upstream: { handlers: [read] } });
  assertEquals((await client.listTools())[0].annotations, { readOnlyHint: true });
  const { client: searching } = await join({
    upstream: { handlers: [read] },
    server: { handlers: [toolSearch()] },
  });
  const found = await searching.callTool("call_read_only_tool", { name: "read" });
  assertEquals([found.isError, textOf(found)], [true, sentence("read", "call_tool")]);
});

behaviour("the cache hints of a list pass, and never widen those of the server", async (connect) => {
  await using upstream = Object.assign(
    createUpstream("modern", { ttlMs: 5000, handlers: [tool({ name: "a", run: () => "" })] }),
    {
      [Symbol.asyncDispose]: () => upstream.close(),
    },
  );
  const { client, server } = await connect({ ttlMs: 60_000, handlers: [proxyOf(upstream, "http")] });
  const { ttlMs, cacheScope } = await client.request("tools/list");
  assertEquals([ttlMs, cacheScope], [5000, "private"]);
  await server.close();
}, { eras: ["modern"] });
