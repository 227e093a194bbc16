// The types of providers and of transformed handlers. The compiler checks this file.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, prompt, promptProvider, resource, service, tool, toolProvider, transform } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { asTools } from "../../src/ready/ready.ts";

const search = tool({
  name: "search",
  input: z.object({ query: z.string(), tenant: z.string(), limit: z.number() }),
  output: z.object({ found: z.number() }),
  run: ({ limit }) => ({ found: limit }),
});

const find = transform(search, {
  name: "find",
  input: { query: { name: "q" }, tenant: { value: ({ principal }) => principal?.id ?? "" }, limit: { default: 3 } },
  run: (input, _ctx, next) => next({ ...input, query: input.query.trim() }),
});

Deno.test("a typed client knows the names of a transformed tool's arguments", async () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers: [find] });
  await using client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("find", { q: "x" });
  const found: number | undefined = structuredContent?.found;
  assertEquals(found, 3);
  await client.callTool("find", { q: "x", limit: 4 });
  // @ts-expect-error: a hidden argument.
  await client.callTool("find", { q: "x", tenant: "y" });
  // @ts-expect-error: the old name of an argument.
  await client.callTool("find", { query: "x" });
  // @ts-expect-error: an argument of another type.
  await client.callTool("find", { q: 1 });
});

Deno.test("a typed client can call any name if the server has a provider, and still knows its own tools", async () => {
  const other = toolProvider({ find: (name) => name === "other" ? tool({ name, run: () => "" }) : undefined });
  const server = createServer({ name: "s", version: "1.0.0", handlers: [find, other] });
  await using client = await connect<typeof server>(server);
  assertEquals((await client.callTool("other", { any: 1 })).isError, undefined);
  const { structuredContent } = await client.callTool("find", { q: "x" });
  const found: number | undefined = structuredContent?.found;
  assertEquals(found, 3);
  // @ts-expect-error: an argument of another type.
  await client.callTool("find", { q: 1 });
});

Deno.test("changes of arguments that do not exist, and handlers of another kind, do not compile", () => {
  const same: "search" = transform(search, { title: "S" }).name;
  assertEquals(same, "search");
  const listed = tool.from({ name: "x", inputSchema: {} }, () => "x");
  transform(listed, { name: "y", input: { anything: { value: (ctx) => ctx.principal?.id } } });
  const note = transform(resource({ uri: "note://{id}", name: "n", read: ({ id }) => id }), {
    run: ({ id }, _ctx, next) => next({ id: `${id}!` }),
  });
  assertEquals(note.uri({ id: "1" }), "note://1");
  const ask = transform(prompt({ name: "ask", input: z.object({ a: z.string() }), run: ({ a }) => a }), {
    input: { a: { name: "b" } },
  });
  const db = service("db", () => ({ all: () => [search] }));
  toolProvider({
    services: { db },
    list: (_cursor, { services }) => services.db.all(),
    find: (name, { services }) => services.db.all().find((each) => each.name === name),
    allow: ({ services }) => services.db.all().length > 0,
  });
  promptProvider({ list: () => ({ prompts: [ask] }), find: async (name) => await name === "ask" ? ask : undefined });
  // @ts-expect-error: a prompt is not a tool.
  toolProvider({ find: () => ask });
  // @ts-expect-error: a tool is not a prompt.
  promptProvider({ list: () => [search], find: () => undefined });
  const wrong = () => {
    // @ts-expect-error: there is no argument qury.
    transform(search, { input: { qury: { name: "q" } } });
    // @ts-expect-error: a resource has no arguments.
    transform(note, { input: {} });
  };
  assertEquals(typeof wrong, "function");
});

Deno.test("a typed client knows the tools of asTools", async () => {
  const note = resource({ uri: "note://{id}", name: "n", read: ({ id }) => id });
  const ask = prompt({ name: "ask", input: z.object({ a: z.string() }), run: ({ a }) => a });
  const handlers = [note, ask, asTools(note, { name: "note" }), asTools(ask, { name: "ask" }), asTools()] as const;
  const server = createServer({ name: "s", version: "1.0.0", handlers });
  await using client = await connect<typeof server>(server);
  assertEquals((await client.callTool("note", { id: "1" })).isError, undefined);
  assertEquals((await client.callTool("ask", { a: "1" })).isError, undefined);
  assertEquals((await client.callTool("read_resource", { uri: "note://1" })).isError, undefined);
  assertEquals((await client.callTool("list_resources")).isError, undefined);
  const wrong = () => [
    // @ts-expect-error: an argument of another type.
    client.callTool("read_resource", { uri: 1 }),
    // @ts-expect-error: there is no such tool.
    client.callTool("list_resource"),
    // @ts-expect-error: a tool is already a tool.
    asTools(search),
    // @ts-expect-error: a provider of tools has no resources.
    asTools(toolProvider({ find: () => undefined })),
  ];
  assertEquals(typeof wrong, "function");
});

Deno.test("entries whose type is an interface compile", () => {
  interface Operation {
    name: string;
    description: string;
    inputSchema: Record<string, unknown>;
    path: string;
  }
  const operation: Operation = { name: "x", description: "X", inputSchema: {}, path: "/x" };
  interface Text {
    name: string;
    arguments: { name: string; required: boolean }[];
    path: string;
  }
  const text: Text = { name: "x", arguments: [], path: "/x" };
  interface Page {
    name: string;
    uri: string;
    path: string;
  }
  const page: Page = { name: "x", uri: "note://1", path: "/x" };
  interface Pages {
    name: string;
    uriTemplate: string;
    path: string;
  }
  const pages: Pages = { name: "x", uriTemplate: "note://{id}", path: "/x" };
  const handlers = [
    tool.from(operation, () => "x"),
    prompt.from(text, () => ({ messages: [] })),
    resource.from(page, () => ({ contents: [] })),
    resource.from(pages, () => ({ contents: [] })),
  ];
  // @ts-expect-error: a title of another type.
  tool.from({ name: "x", inputSchema: {}, title: 1 }, () => "x");
  assertEquals(handlers.map(({ name }) => name), ["x", "x", "x", "x"]);
});
