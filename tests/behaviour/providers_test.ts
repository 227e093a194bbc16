// Providers find tools and prompts when a client asks for them. `find` decides about calls, and `list` about lists.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  createServer,
  group,
  McpError,
  prompt,
  promptProvider,
  resourceProvider,
  service,
  type Tool,
  tool,
  toolProvider,
  type ToolProviderOptions,
} from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, gate, raise, started, textOf, turn } from "../support/behaviour.ts";
import { hasInstances } from "../support/instances.ts";
import { sentence } from "../support/messages.ts";

const say = (name: string, text = name) => tool({ name, run: () => text });

/** Creates a provider of tools with fixed names. */
function provide(name: string, names: readonly string[], options: Partial<ToolProviderOptions> = {}) {
  const toTool = (each: string) => say(each, `${each} of ${name}`);
  return toolProvider({
    name,
    list: () => names.map(toTool),
    find: (each) => names.includes(each) ? toTool(each) : undefined,
    ...options,
  });
}

/** A provider that gives each user a tool. */
const byUser = toolProvider({
  list: (_cursor, { principal }) => principal ? [say(`of_${principal.id}`)] : [],
  find: (name, { principal }) => name === `of_${principal?.id}` ? say(name) : undefined,
});

behaviour("a tool that a provider finds for one caller is an unknown tool for another caller", async (connect) => {
  const { client: ada, join } = await connect({ handlers: [byUser] }, { principal: { id: "ada" } });
  const eve = await join({ principal: { id: "eve" } });
  assertEquals((await ada.listTools()).map(({ name }) => name), ["of_ada"]);
  assertEquals((await eve.listTools()).map(({ name }) => name), ["of_eve"]);
  assertEquals(textOf(await ada.callTool("of_ada")), "of_ada");
  const refusals = [];
  for (const name of ["of_ada", "of_bob", "__proto__", "constructor", "toString", ""]) {
    const { code, message, data } = Object(await assertRejects(() => eve.callTool(name)));
    refusals.push([code, message.replace(JSON.stringify(name), "it"), data]);
  }
  for (const refusal of refusals) assertEquals(refusal, refusals[0]);
  assertEquals(refusals[0][1], "Unknown tool: it");
});

behaviour("a call of an own tool waits for a slot, also beside a provider", async (connect) => {
  const { pass, open } = gate();
  const wait = tool({ name: "wait", run: () => pass.then(() => "waited") });
  const limits = { calls: { running: 1, runningPerClient: 1 } };
  const { client } = await connect({ handlers: [wait, say("quick"), provide("p", ["found"])], limits });
  const first = started(client.callTool("wait"));
  const second = started(client.callTool("quick"));
  await turn(10);
  open();
  assertEquals([textOf(await first), textOf(await second)], ["waited", "quick"]);
});

behaviour("a prototype's name can be the name of a found tool", async (connect) => {
  const { client } = await connect({ handlers: [provide("odd", ["__proto__", "constructor"])] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["__proto__", "constructor"]);
  assertEquals(textOf(await client.callTool("__proto__")), "__proto__ of odd");
  assertEquals(textOf(await client.callTool("constructor")), "constructor of odd");
  await assertRejects(() => client.callTool("toString"));
});

behaviour(
  "own tools take precedence, then the first provider whose find does not return undefined",
  async (connect) => {
    const hidden = tool({ name: "hidden", allow: () => false, run: () => "" });
    const handlers = [provide("first", ["own", "a", "hidden"]), provide("second", ["a", "b"]), say("own"), hidden];
    const { client } = await connect({ handlers });
    assertEquals((await client.listTools()).map(({ name }) => name), ["own", "a", "b"]);
    assertEquals(textOf(await client.callTool("own")), "own");
    assertEquals(textOf(await client.callTool("a")), "a of first");
    assertEquals(textOf(await client.callTool("b")), "b of second");
    // A name that the author uses never leads to another server.
    await assertRejects(() => client.callTool("hidden"), McpError, "Unknown tool");
  },
);

behaviour("a provider that `allow` hides is not asked, and the next provider answers", async (connect) => {
  const asked: string[] = [];
  const secret = provide("secret", ["a"], {
    allow: ({ principal }) => principal?.id === "ada",
    find(name, { principal }) {
      asked.push(`${principal?.id}`);
      return name === "a" ? say("a", "secret") : undefined;
    },
  });
  const { client: ada, join } = await connect({ handlers: [secret, provide("open", ["a"])] }, {
    principal: { id: "ada" },
  });
  const eve = await join({ principal: { id: "eve" } });
  assertEquals(textOf(await eve.callTool("a")), "a of open");
  assertEquals(textOf(await ada.callTool("a")), "secret");
  assertEquals([...new Set(asked)], ["ada"]);
});

behaviour("`find` decides about scopes, requirements and schemas of a found tool", async (connect) => {
  const found: readonly Tool[] = [
    tool({ name: "scoped", scopes: ["a"], run: () => "scoped" }),
    tool({ name: "asking", requires: ["elicitation"], run: () => "asking" }),
    tool({ name: "typed", input: z.object({ n: z.number() }), run: ({ n }) => n + 1 }),
    tool({ name: "shown", allow: ({ principal }) => principal?.id === "ada", run: () => "shown" }),
    tool({
      name: "varied",
      forCaller: ({ principal }) => ({ description: `For ${principal?.id}` }),
      run: () => "varied",
    }),
  ];
  const provider = toolProvider({ list: () => found, find: (name) => found.find((each) => each.name === name) });
  const { client: ada, join } = await connect({ handlers: [provider] }, {
    principal: { id: "ada", scopes: ["a"] },
    capabilities: {},
  });
  const eve = await join({ principal: { id: "eve", scopes: [] }, capabilities: {} });
  assertEquals(textOf(await ada.callTool("scoped")), "scoped");
  assertEquals(Object(await assertRejects(() => eve.callTool("scoped"))).code, -31403);
  await assertRejects(() => ada.callTool("asking"), McpError, "elicitation");
  assertEquals(textOf(await ada.callTool("typed", { n: 1 })), "2");
  assertEquals((await ada.callTool("typed", { n: "1" })).isError, true);
  assertEquals(textOf(await ada.callTool("shown")), "shown");
  await assertRejects(() => eve.callTool("shown"), McpError, 'Unknown tool: "shown"');
  const names = (await eve.listTools()).map(({ name, description }) => description ?? name);
  assertEquals(names, ["scoped", "asking", "typed", "For eve"]);
});

behaviour("a group's names, tags, middleware and allow apply to found handlers, and so do rules", async (connect) => {
  const ran: string[] = [];
  const inner = provide("p", ["a", "b"], { tags: ["found"], use: [(_ctx, next) => (ran.push("provider"), next())] });
  const all = group("all", [group("of", [inner])], {
    use: [(_ctx, next) => (ran.push("group"), next())],
    allow: ({ principal }) => principal?.id === "ada",
    tags: ["all"],
  });
  const { client: ada, join, server } = await connect({ handlers: [all] }, { principal: { id: "ada" } });
  const eve = await join({ principal: { id: "eve" } });
  const list = async () => (await ada.listTools()).map(({ name }) => name);
  assertEquals(await list(), ["all_of_a", "all_of_b"]);
  assertEquals(await eve.listTools(), []);
  assertEquals(textOf(await ada.callTool("all_of_a")), "a of p");
  assertEquals(ran, ["group", "provider"]);
  for (const name of ["a", "of_a", "all_of_c"]) await assertRejects(() => ada.callTool(name), McpError, "Unknown tool");
  await assertRejects(() => eve.callTool("all_of_a"), McpError, "Unknown tool");
  server.handlers.disable({ tool: "all_of_a" });
  assertEquals(await list(), ["all_of_b"]);
  await assertRejects(() => ada.callTool("all_of_a"), McpError, "Unknown tool");
  server.handlers.disable({ tag: "found" });
  assertEquals(await list(), []);
  // The last rule of a tool applies.
  server.handlers.enable({ tool: "all_of_a" });
  assertEquals(await list(), ["all_of_a"]);
  server.handlers.enable({ tag: "all" });
  assertEquals(await list(), ["all_of_a", "all_of_b"]);
  for (const name of ["all_of", "all"]) {
    server.handlers.disable({ group: name });
    assertEquals(await list(), []);
    await assertRejects(() => ada.callTool("all_of_a"), McpError, "Unknown tool");
    server.handlers.enable({ tool: "all_of_a" });
    assertEquals(await list(), ["all_of_a"]);
    server.handlers.enable({ group: name });
    assertEquals(await list(), ["all_of_a", "all_of_b"]);
  }
  server.handlers.remove(all);
  assertEquals(await list(), []);
}, { perInstance: "handlers" });

behaviour(
  "layers of a provider, of its server and of found tools run, and the state of a layer starts",
  async (connect) => {
    const rate = quota({ rate: { calls: 2, perMs: 60_000 } });
    const { client } = await connect({ handlers: [provide("p", ["a", "b"], { use: [rate] })] });
    await client.callTool("a");
    await client.callTool("a");
    await assertRejects(() => client.callTool("a"), McpError);
    // All tools of the provider share the rate.
    await assertRejects(() => client.callTool("b"), McpError);
  },
  { perInstance: "limits" },
);

behaviour("a provider and the tools that it finds can use services", async (connect) => {
  const db = service("db", () => new Map([["a", "text"]]));
  const found = tool({ name: "a", services: { db }, run: (_, { services }) => services.db.get("a") });
  const other = service("other", () => "other");
  const late = tool({ name: "late", services: { other }, run: (_, { services }) => services.other });
  const provider = toolProvider({
    services: { db },
    allow: ({ services }) => services.db.size > 0,
    list: (_, { services }) => services.db.size ? [found, late] : [],
    find: (name, { services }) => services.db.has(name) ? found : name === "late" ? late : undefined,
  });
  const { client } = await connect({ handlers: [provider] });
  assertEquals((await client.listTools()).length, 2);
  assertEquals(textOf(await client.callTool("a")), "text");
  assertEquals(textOf(await client.callTool("late")), "other");
});

behaviour("pages of providers follow each other, after the server's own tools", async (connect) => {
  const paged = toolProvider({
    name: "paged",
    list: (cursor = "0") => ({ tools: [say(`p${cursor}`)], nextCursor: cursor === "2" ? undefined : `${+cursor + 1}` }),
    find: (name) => /^p\d$/.test(name) ? say(name) : undefined,
  });
  const many = provide("many", Array.from({ length: 600 }, (_, at) => `m${at}`));
  const { client: ada, join } = await connect({ handlers: [say("own"), paged, many] }, { principal: { id: "ada" } });
  const names = (await ada.listTools()).map(({ name }) => name);
  assertEquals(names.slice(0, 5), ["own", "p0", "p1", "p2", "m0"]);
  assertEquals(new Set(names).size, 604);
  // A cursor belongs to its caller.
  const eve = await join({ principal: { id: "eve" } });
  const { nextCursor } = await ada.request("tools/list");
  await assertRejects(() => eve.request("tools/list", { cursor: nextCursor }), McpError, "cursor");
});

behaviour("list gets only its own cursors, also if a page is an array or does not fit on one page", async (connect) => {
  const cursors: unknown[] = [];
  const rows = Array.from({ length: 300 }, (_, at) => `row${at}`);
  const paged = toolProvider({
    list(cursor) {
      cursors.push(cursor);
      return cursor === undefined ? { tools: [say("first")], nextCursor: "2" } : rows.map((row) => say(row));
    },
    find: () => undefined,
  });
  const notes = resourceProvider({
    scheme: "note",
    name: "notes",
    list(cursor) {
      cursors.push(cursor);
      const entries = (cursor === undefined ? ["first"] : rows).map((name) => ({ uri: `note://${name}`, name }));
      // An array is also a page, although its type is that of a template.
      return cursor === undefined ? { resources: entries, nextCursor: "2" } : entries as never;
    },
    read: () => undefined,
  });
  const { client } = await connect({ handlers: [paged, notes] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["first", ...rows]);
  assertEquals(cursors.splice(0), [undefined, "2", "2"]);
  assertEquals((await client.listResources()).map(({ name }) => name), ["first", ...rows]);
  assertEquals(cursors, [undefined, "2", "2"]);
});

behaviour("prompts of a provider are found, listed and completed", async (connect) => {
  const find = (name: string) =>
    prompt({
      name,
      input: z.object({ city: z.string().optional() }),
      complete: { city: (_value, _others, { principal }) => [`of ${principal?.id}`] },
      run: ({ city }) => `${name} ${city}`,
    });
  const byUser = promptProvider({
    list: (_, { principal }) => ({ prompts: [find(`${principal?.id}`)] }),
    find: (name, { principal }) => name === principal?.id ? find(name) : undefined,
  });
  const own = prompt({ name: "own", run: () => "own" });
  const { client: ada, join } = await connect({ handlers: [own, byUser] }, { principal: { id: "ada" } });
  const eve = await join({ principal: { id: "eve" } });
  assertEquals((await ada.listPrompts()).map(({ name }) => name), ["own", "ada"]);
  const { messages } = await ada.getPrompt("ada", { city: "Oslo" });
  assertEquals(messages, [{ role: "user", content: { type: "text", text: "ada Oslo" } }]);
  const argument = { name: "city", value: "" };
  assertEquals((await ada.complete({ type: "ref/prompt", name: "ada" }, argument)).values, ["of ada"]);
  assertEquals((await ada.complete({ type: "ref/prompt", name: "own" }, argument)).values, []);
  const refusals = [];
  for (const name of ["ada", "bob"]) {
    for (
      const ask of [() => eve.getPrompt(name), () => eve.complete({ type: "ref/prompt", name }, argument)]
    ) refusals.push(Object(await assertRejects(ask)).message.replace(name, "it"));
  }
  assertEquals([...new Set(refusals)], ['Unknown prompt: "it"']);
});

/** What `list` and `find` can return, each with its description and what is reported. */
const JUNK: readonly (readonly [junk: unknown, name: string, ...words: string[]])[] = [
  [null, "null", "null", "tool()"],
  ["a", "a text", '"a"', "tool()"],
  [Promise.resolve(5), "a promise of a number", "5", "tool()"],
  [{ name: "a", run: () => "" }, "options", "an object", "tool()"],
  [{ ...say("a") }, "a copy of a tool", "an object", "tool()"],
  [prompt({ name: "a", run: () => "" }), "a prompt", 'prompt "a"', "tool()"],
  [provide("other", ["a"]), "a provider", 'tool "provider other"', "tool()"],
  [tool.from({ name: "" } as never, () => ({ content: [] })), "an entry without a name", "1 to 2000 characters"],
];

for (const [junk, name, ...words] of JUNK) {
  behaviour(`a provider that returns ${name} fails with words, and does not break lists`, async (connect) => {
    const provider = toolProvider({
      name: "junk",
      list: () => [junk as never, say("good")],
      find: (name) => name === "good" ? say("good") : junk as never,
    });
    const { client, takeFaults } = await connect({ handlers: [provider], mapError: () => "no luck" });
    for (let i = 0; i < 3; i++) assertEquals((await client.listTools()).map(({ name }) => name), ["good"]);
    // A promise in a list is not awaited.
    const listed = junk instanceof Promise ? "an object" : words[0];
    const faults = takeFaults().map(({ error }) => Object(error).message);
    // Each instance that has served a list reports the provider once.
    assertEquals([...new Set(faults)], [sentence(listed, ...words.slice(1))]);
    assert(hasInstances || faults.length === 1, `${faults.length} reports`);
    assertEquals(textOf(await client.callTool("good")), "good");
    await assertRejects(() => client.callTool("bad"), McpError, "no luck");
    assertEquals(takeFaults().map(({ error }) => Object(error).message), [
      sentence(...words),
    ]);
  });
}

behaviour("a provider that throws fails the call, and an McpError of it is sent unchanged", async (connect) => {
  const provider = toolProvider({
    list: () => raise(new Error("secret")),
    find: (name) => raise(name === "known" ? new McpError(4, "no such thing") : new Error("secret")),
  });
  const { client, takeFaults } = await connect({ handlers: [provider], mapError: () => undefined });
  await assertRejects(() => client.listTools(), McpError, "Internal error");
  await assertRejects(() => client.callTool("a"), McpError, "Internal error");
  await assertRejects(() => client.callTool("known"), McpError, "no such thing");
  assertEquals(takeFaults().map(({ error }) => Object(error).message), ["secret", "secret"]);
});

behaviour("a found tool of another name fails the call with words", async (connect) => {
  const provider = toolProvider({ name: "p", find: () => say("other") });
  const { client, takeFaults } = await connect({ handlers: [provider] });
  await assertRejects(() => client.callTool("a"), McpError, "Internal error");
  const [{ error }] = takeFaults();
  assertEquals(Object(error).message, sentence('tool "a"', 'tool provider "p"', 'tool "other"', "undefined"));
});

behaviour("an entry that is not JSON is left out of the list", async (connect) => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const bad = [{ "example.com/big": 1n }, cyclic].map((_meta, i) => tool({ name: `bad${i}`, _meta, run: () => "" }));
  const provider = toolProvider({ list: () => [...bad, say("good")], find: () => undefined });
  const { client, takeFaults } = await connect({ handlers: [provider] });
  assertEquals((await client.listTools()).map(({ name }) => name), ["good"]);
  assertEquals(takeFaults().length, 1);
}, { perInstance: "observer" });

behaviour("a cursor that never ends fails with words", async (connect) => {
  const same = toolProvider({ name: "same", list: () => ({ tools: [], nextCursor: "x" }), find: () => undefined });
  let count = 0;
  const endless = toolProvider({
    name: "endless",
    list: () => ({ tools: [], nextCursor: `${count++}` }),
    find: () => undefined,
  });
  for (const [handler, ...words] of [[same, "same page"], [endless, "1000 pages"]] as const) {
    const { client, takeFaults } = await connect({ handlers: [handler] });
    let cursor: unknown;
    const walk = async () => {
      do cursor = (await client.request("tools/list", cursor === undefined ? {} : { cursor })).nextCursor; while (
        cursor !== undefined
      );
    };
    await assertRejects(walk, McpError, "Internal error");
    assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence(handler.name, ...words)]);
  }
}, { transports: ["memory"] });

behaviour("a huge page fails with words, and a huge array is cut into pages", async (connect) => {
  const names = Array.from({ length: 5000 }, (_, at) => `t${at}`);
  const all = names.map((name) => say(name));
  const page = toolProvider({ name: "page", list: () => ({ tools: all }), find: () => undefined });
  const { client, takeFaults } = await connect({ handlers: [page] });
  await assertRejects(() => client.listTools(), McpError, "Internal error");
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("page", "5000", "1000")]);
  const { client: other } = await connect({ handlers: [provide("array", names)] });
  assertEquals((await other.request("tools/list")).tools, (await other.listTools()).slice(0, 250));
}, { transports: ["memory"] });

behaviour("a list that hangs ends with the deadline of the call, and gives its slot back", async (connect) => {
  const clock = fakeClock();
  const provider = toolProvider({ list: () => new Promise(() => {}), find: () => undefined });
  const { client } = await connect({
    handlers: [provider],
    clock,
    limits: { calls: { timeoutMs: 1000, running: 1 } },
  });
  const listing = client.request("tools/list");
  const error = Object(await assertRejects(() => advanceUntil(clock, 100, listing)));
  assert(error instanceof McpError, String(error));
  await assertRejects(() => client.callTool("a"), McpError, "Unknown tool");
}, { transports: ["memory"] });

behaviour("names and descriptions of 1 MB are served or refused, and never break a list", async (connect) => {
  const long = "x".repeat(1_000_000);
  const big = tool({ name: "big", description: long, run: () => "big" });
  const provider = toolProvider({
    list: () => [tool.from({ name: long, inputSchema: { type: "object" } }, () => ({ content: [] })), big],
    find: (name) => name === "big" ? big : undefined,
  });
  const { client, takeFaults } = await connect({ handlers: [provider] });
  assertEquals((await client.listTools()).map(({ description }) => description?.length), [1_000_000]);
  assertEquals(takeFaults().length, 1);
  await assertRejects(() => client.callTool(long.slice(0, 3000)), McpError, "Unknown tool");
});

Deno.test("providers of one kind need different names, and a tool and a provider can have the same name", () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers: [provide("p", []), say("p")] });
  try {
    server.handlers.add(provide("p", []));
  } catch (error) {
    assertEquals(Object(error).message, sentence('tool provider "p"', "name"));
    server.handlers.add(provide("q", []));
    const find = () => undefined;
    for (const [make, kind] of [[toolProvider, "tool"], [promptProvider, "prompt"]] as const) {
      server.handlers.add(make({ find }));
      const { message } = assertThrows(() => server.handlers.add(make({ find })), TypeError);
      assertEquals(message, sentence(`${kind} provider`, "name"));
    }
    return;
  }
  throw new Error("a second provider of the same name was added");
});
