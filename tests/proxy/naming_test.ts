// Names and texts of a proxy: prefixes, filters, changes, order, and what another server must not hide in a text.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { createServer, group, McpError, prompt, resource, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { createUpstream, pairs, proxyOf } from "./fixture.ts";

const say = (name: string, text = name) => tool({ name, run: () => text });
const names = (listed: readonly { readonly name: string }[]) => listed.map(({ name }) => name);
const handlers = ["issues_list", "issues_create", "repos_list", "admin_wipe"].map((name) => say(name));

pairs("include and exclude select tools, for lists and for calls", async (join) => {
  const tools = { include: ["issues_*", "admin_*"], exclude: ["*_wipe"] };
  const { client } = await join({ upstream: { handlers }, proxy: { prefix: "gh_", tools } });
  assertEquals(names(await client.listTools()), ["gh_issues_list", "gh_issues_create"]);
  assertEquals(textOf(await client.callTool("gh_issues_create")), "issues_create");
  for (const name of ["gh_repos_list", "gh_admin_wipe", "issues_list"]) {
    await assertRejects(() => client.callTool(name), McpError, "Unknown tool");
  }
});

pairs("change works as transform, and the prefix precedes a new name", async (join) => {
  const input = { type: "object", properties: { query: { type: "string" }, tenant: { type: "string" } } } as const;
  const find = tool({ name: "find", input, run: (input) => JSON.stringify(input) });
  const change = {
    find: { name: "search", description: "Finds", input: { query: { name: "q" }, tenant: { value: "acme" } } },
  };
  const { client } = await join({ upstream: { handlers: [find] }, proxy: { prefix: "up_", tools: { change } } });
  const [{ name, description, inputSchema }] = await client.listTools();
  assertEquals([name, description, Object.keys(Object(inputSchema.properties))], ["up_search", "Finds", ["q"]]);
  assertEquals(JSON.parse(textOf(await client.callTool("up_search", { q: "x" }))), { query: "x", tenant: "acme" });
  await assertRejects(() => client.callTool("up_find"), McpError, "Unknown tool");
});

behaviour("a tool that cannot be changed as described is left out with a report", async (connect, { transport }) => {
  const input = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } } } as const;
  const upstream = createUpstream("modern", { handlers: [tool({ name: "odd", input, run: () => "" }), say("fine")] });
  const tools = { change: { odd: { input: { a: { name: "b" } } } } };
  const way = transport === "http" ? "http" : "pipe";
  const { client, server, takeFaults } = await connect({ handlers: [proxyOf(upstream, way, { tools })] });
  assertEquals(names(await client.listTools()), ["fine"]);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("transform")]);
  await assertRejects(() => client.callTool("odd"), McpError, "Unknown tool");
  await server.close();
  await upstream.close();
}, { perInstance: "handlers" });

pairs("odd and long names become valid names of their own, and lead to their tools", async (join) => {
  const long = "x".repeat(70);
  const odd = ["with space", "a/b", "a:b", long, `${long}y`].map((name) =>
    tool.from({ name, inputSchema: { type: "object" } }, () => ({ content: [{ type: "text", text: name }] }))
  );
  const { client } = await join({ upstream: { handlers: [...odd, say("plain")] }, proxy: { prefix: "up_" } });
  const listed = names(await client.listTools());
  assertEquals(new Set(listed).size, 6);
  assert(listed.every((name) => /^up_[\w.-]{1,61}$/.test(name)), listed.join());
  const texts: string[] = [];
  for (const name of listed) texts.push(textOf(await client.callTool(name)));
  assertEquals(texts.sort(), ["a/b", "a:b", long, `${long}y`, "plain", "with space"].sort());
});

pairs("invisible characters of texts and questions are shown", async (join) => {
  const hidden = "Safe\u200b\u{e0041}\u202e";
  const shown = "Safe‹U+200B›‹U+E0041›‹U+202E›";
  const input = {
    type: "object",
    properties: { a: { type: "string", description: hidden, default: hidden } },
  } as const;
  const form = { type: "object", properties: { by: { type: "string", title: hidden } } } as const;
  const ask = tool({
    name: "ask",
    title: hidden,
    description: hidden,
    input,
    run: async (_input, ctx) => (await ctx.elicit("who", { message: hidden, schema: form })).action,
  });
  const asked: unknown[] = [];
  const { client } = await join({
    upstream: { handlers: [ask, prompt({ name: "p", description: hidden, run: () => hidden })] },
    client: { onElicit: (request) => (asked.push(request), { action: "cancel" }) },
  });
  const [listed] = await client.listTools();
  const { a } = Object(listed.inputSchema.properties);
  assertEquals([listed.title, listed.description, a.description, a.default], [shown, shown, shown, hidden]);
  assertEquals((await client.listPrompts())[0].description, shown);
  assertEquals(textOf(await client.callTool("ask")), "cancel");
  const { message, requestedSchema } = Object(asked[0]);
  assertEquals([message, requestedSchema.properties.by.title], [`up: ${shown}`, shown]);
});

behaviour("own handlers come first, then proxies as written; of equal names the first is used", async (connect) => {
  const left = createUpstream("modern", { handlers: [say("own", "left"), say("both", "left"), say("l")] });
  const right = createUpstream("legacy", { handlers: [say("both", "right"), say("r")] });
  const handlers = [
    proxyOf(left, "http", { name: "left" }),
    proxyOf(right, "http", { name: "right" }),
    say("own", "own"),
  ];
  const { client, server, takeFaults } = await connect({ handlers });
  assertEquals(names(await client.listTools()), ["own", "both", "l", "r"]);
  assertEquals(textOf(await client.callTool("own")), "own");
  assertEquals(textOf(await client.callTool("both")), "left");
  assertEquals(textOf(await client.callTool("r")), "r");
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("only the first")]);
  // The name still belongs to the first server while it is down.
  await left.close();
  const lost = await client.callTool("both");
  assert(lost.isError, textOf(lost));
  assertEquals(names(await client.listTools()), ["own", "both", "l", "r"]);
  takeFaults();
  await server.close();
  takeFaults();
  await right.close();
}, { perInstance: "handlers" });

behaviour("a proxy in a group has the names of the group, and its allow and tags", async (connect, { transport }) => {
  const upstream = createUpstream("modern", { handlers: [say("list")] });
  const gh = proxyOf(upstream, transport === "http" ? "http" : "pipe", { prefix: "gh_" });
  const { client, server } = await connect({ handlers: [group("team", [gh], { tags: ["remote"] })] });
  assertEquals(names(await client.listTools()), ["team_gh_list"]);
  assertEquals(textOf(await client.callTool("team_gh_list")), "list");
  server.handlers.disable({ tag: "remote" });
  await until(async () => !(await client.listTools()).length, "the tools are hidden");
  await assertRejects(() => client.callTool("team_gh_list"), McpError, "Unknown tool");
  await server.close();
  await upstream.close();
}, { perInstance: "handlers" });

pairs("a rule for a proxy applies to everything that it serves", async (_join, { era, transport, behind }) => {
  const note = resource({ uri: "note://1", name: "note", read: () => "milk" });
  const handlers = [say("list"), prompt({ name: "plan", run: () => "p" }), note];
  const upstream = createUpstream(behind, { handlers });
  const remote = proxyOf(upstream, transport, transport === "pipe" ? { share: "all" } : {});
  const server = createServer({ name: "gateway", version: "1.0.0", handlers: [say("own"), remote] });
  await using client = await connectTest(server, { era });
  const list = async () => [
    ...names(await client.listTools()),
    ...names(await client.listPrompts()),
    ...names(await client.listResources()),
  ];
  assertEquals(await list(), ["own", "list", "plan", "note"]);
  server.handlers.disable(remote);
  assertEquals(await list(), ["own"]);
  await assertRejects(() => client.callTool("list"), McpError, "Unknown tool");
  await assertRejects(() => client.getPrompt("plan"), McpError, "Unknown prompt");
  await assertRejects(() => client.readResource("note://1"), McpError, "not found");
  server.handlers.enable(remote);
  assertEquals(await list(), ["own", "list", "plan", "note"]);
  await server.close();
  await upstream.close();
});

pairs("instructions are added to those of the server, if the author wants it", async (_join, { transport, behind }) => {
  for (const instructions of [true, false]) {
    const upstream = createUpstream(behind, { instructions: "Be\u200b brief.", handlers: [say("t")] });
    const server = createServer({
      name: "gateway",
      version: "1.0.0",
      instructions: "Be kind.",
      handlers: [proxyOf(upstream, transport, { instructions, ...transport === "pipe" && { share: "all" } })],
    });
    await server.ready();
    const client = await connect(server);
    const added = "Be kind.\n\nInstructions of up:\nBe‹U+200B› brief.";
    assertEquals(client.server.instructions, instructions ? added : "Be kind.");
    await client.close();
    await server.close();
    await upstream.close();
  }
});

pairs("a connected client can be the target, and stays open", async (_join, { transport, behind }) => {
  const upstream = createUpstream(behind, { handlers: [say("first")] });
  const fetch = async (request: Request) => await upstream.fetch(request);
  const target = transport === "pipe" ? await connect(upstream) : await connect("http://localhost/mcp", { fetch });
  const server = createServer({ name: "gateway", version: "1.0.0", handlers: [proxy(target, { prefix: "up_" })] });
  const client = await connect(server);
  assertEquals(names(await client.listTools()), ["up_first"]);
  assertEquals(textOf(await client.callTool("up_first")), "first");
  upstream.handlers.add(say("second"));
  await until(async () => names(await client.listTools()).includes("up_second"), "the change has arrived");
  await client.close();
  await server.close();
  assertEquals(textOf(await target.callTool("first")), "first");
  await target.close();
  await upstream.close();
});

pairs("a tool whose entry says that it can only run as a task is left out with a report", async (join) => {
  const listed = { name: "slow", inputSchema: { type: "object" }, execution: { taskSupport: "required" } };
  const slow = tool.from(listed, () => ({ content: [] }));
  const { client, takeFaults } = await join({ upstream: { handlers: [slow, say("fine")] } });
  assertEquals(names(await client.listTools()), ["fine"]);
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("as a task")]);
});

Deno.test("a prefix that begins another prefix is an error at start", () => {
  const make = (...prefixes: readonly string[]) =>
    createServer({
      name: "gateway",
      version: "1.0.0",
      handlers: prefixes.map((prefix, at) => proxy(`https://${at}.example.com/mcp`, { prefix, name: `${at}` })),
    });
  make("a_", "b_");
  make("", "");
  assertThrows(() => make("a_", "a_b_"), TypeError, sentence("prefix"));
  assertThrows(() => make("a_b_", "a_"), TypeError);
  assertThrows(() => make("a_", "a_"), TypeError);
});

Deno.test("two proxies of one name are refused with words", () => {
  const handlers = [proxy("https://example.com/a"), proxy("https://example.com/b")];
  const make = () => createServer({ name: "gateway", version: "1.0.0", handlers });
  assertThrows(make, TypeError, sentence('proxy "example.com"'));
});

Deno.test("options that contradict each other are refused with words", () => {
  const url = "https://example.com/mcp";
  const refused: readonly (readonly [ProxyOptions, string])[] = [
    [{ headers: () => ({}), share: "all" }, "share"],
    [{ headers: () => ({}), required: true }, "required"],
    [{ prefix: "with space" }, "prefix"],
    [{ name: "two\nlines" }, "line of text"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ instructions: true, allow: () => true }, "instructions"],
  ];
  for (const [options, word] of refused) assertThrows(() => proxy(url, options), TypeError, sentence(word));
  const targets: readonly (readonly [target: unknown, word: string])[] = [
    ["tracker.example.com/mcp", "http or https URL"],
    ["", "http or https URL"],
    ["ftp://tracker.example.com/", "http or https URL"],
    [undefined, "createServer"],
    [null, "createServer"],
    [{ url }, "createServer"],
    [{ command: "node", args: "server.js" }, "args"],
  ];
  for (const [target, word] of targets) {
    assertThrows(() => Reflect.apply(proxy, undefined, [target]), TypeError, sentence(word));
  }
  const own = createUpstream("modern");
  assertThrows(() => proxy(own, { headers: { authorization: "x" } }), TypeError, sentence("URL"));
  assertThrows(() => proxy(url, Object({ perfix: "a_" })), TypeError, sentence("did you mean prefix"));
});
