// `asTools` makes tools that read resources and get prompts for their caller.
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import {
  type Context,
  group,
  type Handler,
  McpError,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  service,
  tool,
  ToolError,
  toolProvider,
  transform,
} from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { asTools } from "../../src/ready/ready.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import type { Connection } from "../../src/testing/testing.ts";
import { behaviour, textOf, turn } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const isAda = ({ principal }: Context) => principal?.id === "ada";
const config = resource({
  uri: "config://app",
  name: "app config",
  description: "Settings",
  read: () => ({ theme: "dark" }),
});
const notes = new Map([["todo", "Buy milk"], ["on paper", "Sell the car"]]);
const note = resource({
  uri: "note://{title}{?format}",
  name: "note",
  complete: { title: () => ["todo"] },
  read: ({ title, format }) => format === "html" ? `<p>${notes.get(title)}</p>` : notes.get(title),
});
const rows = resourceProvider({
  scheme: "row",
  name: "rows",
  read: (uri) => uri === "row://1" ? "one" : undefined,
});
const review = prompt({
  name: "review",
  description: "Reviews code",
  input: z.object({
    code: z.string().describe("The code"),
    style: z.enum(["short", "long"]).optional(),
    n: z.coerce.number().optional(),
  }),
  run: ({ code, style, n }) => [
    { role: "user", content: `${code} ${style} ${n} ${typeof n}` },
    { role: "assistant", content: { type: "image", data: "AAAA", mimeType: "image/png" } },
  ],
});

/** Returns the tool that a caller sees under a name. */
async function toolOf(client: Connection, name: string) {
  return Object((await client.listTools()).find((each) => each.name === name));
}

/** Returns the text and whether the call failed. */
async function call(client: Connection, name: string, args: Readonly<Record<string, unknown>> = {}) {
  const result = await client.callTool(name, args);
  return [textOf(result), result.isError ?? false] as const;
}

behaviour("fixed resources, templates, providers and prompts become read-only tools", async (connect) => {
  const { client } = await connect({
    handlers: [config, note, rows, review, asTools(config), asTools(note), asTools(rows), asTools(review)],
  });
  const listed = await client.listTools();
  const hints = { readOnlyHint: true, destructiveHint: false, openWorldHint: true };
  assertEquals(listed.map(({ name, title, description, annotations }) => [name, title, description, annotations]), [
    ["app_config", "app config", "Settings", hints],
    ["note", "Note", "Reads a resource of note://{title}{?format}.", hints],
    ["rows", "Rows", "Reads a resource of row:.", hints],
    ["review", "Review", "Reviews code", hints],
  ]);
  const inputs = listed.map(({ inputSchema: { properties, required } }) => [properties, required]);
  const text = { type: "string" };
  assertEquals<unknown>(inputs, [
    [{}, undefined],
    [{ title: text, format: text }, ["title"]],
    [{ uri: { ...text, description: "URI of the resource, which begins with row:" } }, ["uri"]],
    [
      {
        code: { ...text, description: "The code" },
        style: { ...text, enum: ["short", "long"] },
        n: Object(listed[3].inputSchema.properties).n,
      },
      ["code"],
    ],
  ]);
  assertEquals(await call(client, "app_config"), ['{"theme":"dark"}', false]);
  assertEquals(await call(client, "note", { title: "on paper" }), ["Sell the car", false]);
  assertEquals(await call(client, "note", { title: "todo", format: "html" }), ["<p>Buy milk</p>", false]);
  assertEquals(await call(client, "rows", { uri: "row://1" }), ["one", false]);
  assertEquals((await client.callTool("review", { code: "f()", style: "short", n: 7 })).content, [
    { type: "text", text: "user: f() short 7 number" },
    { type: "text", text: "assistant:" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
  ]);
  // The handlers are served as before.
  assertEquals((await client.listResources()).map(({ uri }) => uri), ["config://app"]);
  assertEquals((await client.listPrompts()).map(({ name }) => name), ["review"]);
});

behaviour("the schema of a template's variables is the schema of the arguments", async (connect) => {
  const place = z.object({ x: z.number().int() });
  const cell = resource({
    uri: "cell://{sheet}/{row}{?at}",
    name: "cell",
    variables: z.object({
      sheet: z.enum(["a", "b"]).describe("Sheet"),
      row: z.coerce.number().max(9),
      at: place.optional(),
    }),
    read: (variables) => JSON.stringify(variables),
  });
  const recursive = resource({
    uri: "tree://{node}",
    name: "tree",
    variables: {
      type: "object",
      properties: { node: { $ref: "#/definitions/name" } },
      definitions: { name: { type: "string", maxLength: 3 } },
    },
    read: ({ node }: Record<string, unknown>) => `${node}`,
  });
  const { client } = await connect({ handlers: [cell, recursive, asTools(cell), asTools(recursive)] });
  const { inputSchema } = await toolOf(client, "cell");
  assertEquals(inputSchema.properties.sheet.description, "Sheet");
  assertEquals(inputSchema.required, ["sheet", "row"]);
  assertEquals(await call(client, "cell", { sheet: "a", row: 3 }), ['{"sheet":"a","row":3}', false]);
  assertEquals(await call(client, "cell", { sheet: "a", row: 3, at: { x: 1 } }), [
    '{"sheet":"a","row":3,"at":{"x":1}}',
    false,
  ]);
  assertEquals(await call(client, "cell", { sheet: "c", row: 3 }), [sentence("cell", "sheet"), true]);
  assertEquals(await call(client, "cell", { sheet: "a", row: 99 }), [sentence("cell", "row"), true]);
  assertEquals(await call(client, "cell", { row: 1 }), [sentence("cell", "sheet"), true]);
  assertEquals(await call(client, "tree", { node: "abc" }), ["abc", false]);
  assertEquals(await call(client, "tree", { node: "abcd" }), [sentence("tree", "node"), true]);
});

behaviour("texts, media and other bytes become content of the tool", async (connect) => {
  const bytes = new Uint8Array([1, 2, 3]);
  const all = resource({
    uri: "all://x",
    name: "all",
    read: () => ({
      contents: [
        { uri: "all://x/a", mimeType: "text/plain", text: "A" },
        { uri: "all://x/b", mimeType: "image/png", blob: "AQID" },
        { uri: "all://x/c", mimeType: "audio/wav", blob: "AQID" },
        { uri: "all://x/d", mimeType: "application/zip", blob: "AQID" },
      ],
    }),
  });
  const image = resource({ uri: "image://x", name: "image", mimeType: "image/png", read: () => bytes });
  const empty = resource.from({ uri: "empty://x", name: "empty" }, () => ({ contents: [] }));
  const { client } = await connect({
    handlers: [all, image, empty, ...[all, image, empty].map((each) => asTools(each))],
  });
  assertEquals((await client.callTool("all")).content, [
    { type: "text", text: "all://x/a\nA" },
    { type: "image", mimeType: "image/png", data: "AQID" },
    { type: "audio", mimeType: "audio/wav", data: "AQID" },
    { type: "resource", resource: { uri: "all://x/d", mimeType: "application/zip", blob: "AQID" } },
  ]);
  assertEquals((await client.callTool("image")).content, [{ type: "image", mimeType: "image/png", data: "AQID" }]);
  assertEquals(await call(client, "empty"), ["The resource is empty.", false]);
});

behaviour("errors of the resource or prompt are words for the model", async (connect) => {
  const read = (title: string) => {
    if (title === "tool") throw new ToolError("Closed on Sundays");
    if (title === "mcp") throw new McpError(-31050, "Own code");
    if (title === "bug") throw new Error("secret");
    return undefined;
  };
  const note = resource({ uri: "note://{title}", name: "note", read: ({ title }) => read(title) });
  const ask = prompt({
    name: "ask",
    input: z.object({ title: z.string().max(4) }),
    run: ({ title }) => `${read(title)}`,
  });
  const { client, takeFaults } = await connect({ handlers: [note, ask, asTools(note), asTools(ask)] });
  for (const name of ["note", "ask"]) {
    assertEquals(await call(client, name, { title: "tool" }), ["Closed on Sundays", true]);
    assertEquals((await assertRejects(() => call(client, name, { title: "mcp" }), McpError)).code, -31050);
    assertEquals(takeFaults(), []);
    const [text, isError] = await call(client, name, { title: "bug" });
    const [{ id, error }, ...others] = takeFaults();
    assertEquals([text.includes(id), isError], [true, true]);
    assertEquals([Object(error).message, others.length], ["secret", 0]);
  }
  assertEquals(await call(client, "note", { title: "none" }), [sentence("note://none"), true]);
  assertEquals(await call(client, "ask", { title: "longer" }), [sentence("ask", "title"), true]);
});

behaviour("a caller without rights does not see the tool, and cannot use it", async (connect) => {
  const db = service("db", () => ({ admins: ["ada"] }));
  const hidden = resource({ uri: "hidden://x", name: "hidden", allow: isAda, read: () => "hidden" });
  const each = resource({
    uri: "each://{id}",
    name: "each",
    allow: (ctx, variables) => variables === undefined || isAda(ctx) || variables.id === "open",
    read: ({ id }) => id,
  });
  const served = prompt({
    name: "served",
    services: { db },
    allow: ({ principal, services }) => services.db.admins.includes(principal?.id ?? ""),
    run: () => "served",
  });
  const scoped = resource({ uri: "scoped://x", name: "scoped", scopes: ["read"], read: () => "scoped" });
  const { client: ada, join } = await connect({
    handlers: [
      hidden,
      each,
      scoped,
      group("team", [served, asTools(served)]),
      asTools(hidden),
      asTools(each),
      asTools(scoped),
      asTools(),
    ],
  }, { principal: { id: "ada", scopes: ["read"] } });
  const eve = await join({ principal: { id: "eve", scopes: [] } });
  const names = async (client: Connection) => (await client.listTools()).map(({ name }) => name);
  const shown = ["each", "scoped", "read_resource", "list_resources"];
  assertEquals((await names(ada)).toSorted(), ["hidden", "team_served", ...shown].toSorted());
  assertEquals((await names(eve)).toSorted(), shown.toSorted());
  assertEquals(await call(ada, "hidden"), ["hidden", false]);
  assertEquals(await call(ada, "team_served"), ["user: served", false]);
  const refused = async (name: string) => Object(await assertRejects(() => eve.callTool(name), McpError)).message;
  assertEquals((await refused("hidden")).replace("hidden", "none"), await refused("none"));
  assertEquals((await refused("team_served")).replace("team_served", "none"), await refused("none"));
  assertEquals((await assertRejects(() => eve.callTool("scoped"), McpError)).code, -31403);
  // A hidden resource cannot be told from an unknown one.
  assertEquals(await call(eve, "each", { id: "open" }), ["open", false]);
  assertEquals(await call(eve, "read_resource", { uri: "each://open" }), ["open", false]);
  for (const uri of ["hidden://x", "each://secret"]) {
    assertEquals(await call(eve, "read_resource", { uri }), [sentence(uri), true]);
    const [text] = await call(eve, "read_resource", { uri });
    const [unknown] = await call(eve, "read_resource", { uri: "none://x" });
    assertEquals(text.replace(uri, "none://x"), unknown);
  }
  assertEquals((await assertRejects(() => call(eve, "read_resource", { uri: "scoped://x" }), McpError)).code, -31403);
  const listed = async (client: Connection) => (await call(client, "list_resources"))[0].includes("hidden");
  assertEquals([await listed(ada), await listed(eve)], [true, false]);
});

behaviour("layers, guards, rates and tags of the resource hold for its tool", async (connect) => {
  const limited = resource({
    uri: "limited://x",
    name: "limited",
    use: [quota({ rate: { calls: 1, perMs: 3_600_000 } })],
    read: () => "limited",
  });
  const guarded = resource({
    uri: "guarded://{id}",
    name: "guarded",
    tags: ["secret"],
    use: [guard({ output: [() => "redacted"] })],
    read: ({ id }) => id,
  });
  const { client, server } = await connect({ handlers: [limited, guarded, asTools(limited), asTools(guarded)] });
  assertEquals(await call(client, "limited"), ["limited", false]);
  await assertRejects(() => call(client, "limited"), McpError, "handler.rate");
  assertEquals(await call(client, "guarded", { id: "x" }), ["redacted", false]);
  server.handlers.disable({ tag: "secret" });
  assertEquals(await toolOf(client, "guarded"), {});
  await assertRejects(() => call(client, "guarded", { id: "x" }), McpError, "Unknown tool");
  server.handlers.enable({ tag: "secret" });
  server.handlers.disable(guarded);
  assertEquals(await call(client, "guarded", { id: "x" }), [sentence("guarded://x"), true]);
}, { perInstance: "limits" });

behaviour("a prompt and a resource that ask the client work as tools", async (connect) => {
  const schema = z.object({ text: z.string() });
  const ask = async (ctx: Context, message: string) => (await ctx.elicit(message, { message, schema })).content?.text;
  let made = 0;
  const trip = prompt({
    name: "trip",
    input: z.object({ city: z.string() }),
    run: async ({ city }, ctx) => {
      const once = await ctx.once("made", () => ++made);
      return `${city} ${await ask(ctx, "When?")} ${await ask(ctx, "Who?")} ${once}`;
    },
  });
  const form = resource({
    uri: "form://{id}",
    name: "form",
    read: async ({ id }, ctx) => `${id} ${await ask(ctx, "Id?")}`,
  });
  const asked: string[] = [];
  const { client } = await connect({ handlers: [trip, form, asTools(trip), asTools(form)] }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { text: message.toUpperCase() } } as const;
    },
  });
  assertEquals(await call(client, "trip", { city: "Rome" }), ["user: Rome WHEN? WHO? 1", false]);
  assertEquals(await call(client, "form", { id: "a" }), ["a ID?", false]);
  assertEquals(asked, ["When?", "Who?", "Id?"]);
});

behaviour("a client without elicitation is refused by the requirements of the prompt", async (connect, { era }) => {
  const trip = prompt({ name: "trip", requires: ["elicitation"], run: () => "trip" });
  const { client } = await connect({ handlers: [trip, asTools(trip)] });
  assertEquals((await assertRejects(() => client.callTool("trip"), McpError)).code, era === "modern" ? -32021 : -32600);
});

behaviour("list_resources lists what the caller can read, in pages", async (connect) => {
  const many = resourceProvider({
    scheme: "many",
    name: "many",
    list: () => ({
      resources: Array.from({ length: 230 }, (_, i) => ({
        uri: `many://${i}`,
        name: `Many\n${i}`,
        description: i ? undefined : "x".repeat(1000),
      })),
    }),
    read: (uri) => uri,
  });
  const { client } = await connect({ handlers: [config, note, many, asTools()] });
  const lines = async (args: Record<string, unknown>) => (await call(client, "list_resources", args))[0].split("\n");
  const [first, ...entries] = await lines({});
  assertEquals(first, sentence("1 to 100 of 232", "101"));
  assertEquals(entries.length, 100);
  assertEquals(JSON.parse(entries[0]), { uri: "config://app", name: "app config", description: "Settings" });
  assertEquals(JSON.parse(entries[1]).description.length, 201);
  const [last, ...rest] = await lines({ from: 201 });
  assertEquals(last, sentence("201 to 232 of 232"));
  assertEquals(JSON.parse(rest[31]), { uriTemplate: "note://{title}{?format}", name: "note" });
  assertEquals(await call(client, "list_resources", { from: 233 }), [sentence("233", "232"), true]);
  assertEquals(await call(client, "list_resources", { from: 0 }), [sentence("from"), true]);
  assertEquals(await call(client, "read_resource", { uri: "many://7" }), ["many://7", false]);
  const listed = await client.listTools();
  assertEquals(listed.map(({ annotations }) => annotations?.readOnlyHint), [true, true]);
});

behaviour("list_resources of a server without resources, and of one with too many", async (connect) => {
  const { client: empty } = await connect({ handlers: [asTools()] });
  assertEquals(await call(empty, "list_resources"), ["There are no resources.", false]);
  const endless = resourceProvider({
    scheme: "many",
    name: "many",
    list: (cursor = "0") => ({ resources: [], nextCursor: `${Number(cursor) + 1}` }),
    read: (uri) => uri,
  });
  const { client } = await connect({ handlers: [endless, asTools()] });
  assertEquals(await call(client, "list_resources"), [sentence("too many"), true]);
});

behaviour("hostile arguments read nothing else", async (connect) => {
  const files = resource({ uri: "file://{+path}", name: "files", read: ({ path }) => `read ${path}` });
  const odd = resource({
    uri: "odd://{__proto__}/{constructor}{?toString}",
    name: "odd",
    read: (variables) => JSON.stringify(Object.entries(variables)),
  });
  const strange = prompt({
    name: "strange",
    input: {
      type: "object",
      properties: JSON.parse('{"__proto__":{"type":"string"},"constructor":{"type":"string"}}'),
      required: ["constructor"],
    },
    run: (input) => JSON.stringify(Object.entries(Object(input))),
  });
  const { client } = await connect({
    handlers: [
      config,
      note,
      rows,
      files,
      odd,
      strange,
      ...[note, rows, files, odd].map((x) => asTools(x)),
      asTools(strange),
    ],
  });
  const long = "x".repeat(1_000_000);
  for (
    const uri of ["config://app", "ROW://1", "row:../x", "row://a/%2e%2e/b", "note://todo", "", "__proto__", "row://2"]
  ) {
    assertEquals(await call(client, "rows", { uri }), [sentence(uri), true]);
  }
  for (const uri of [`row://${long}`, `config://${long}`]) {
    const [text, isError] = await call(client, "rows", { uri });
    assertEquals([text.length < 500, isError], [true, true]);
  }
  for (const title of ["..", ".", "a/b", "a\\b", "", "\0", "\ud800", `${long}/`]) {
    const [text, isError] = await call(client, "note", { title });
    assertEquals([text.includes("title"), text.length < 500, isError], [true, true, true]);
  }
  for (const path of ["a/../b", "..", "a/%2e%2e/b"]) {
    assertEquals(await call(client, "files", { path }), [sentence("path"), true]);
  }
  assertEquals(await call(client, "files", { path: "a/b c" }), ["read a/b c", false]);
  assertEquals((await call(client, "note", { title: long }))[0].length < 500, true);
  assertEquals(await call(client, "note", { title: "todo", extra: "x" }), [sentence("extra"), true]);
  const args = JSON.parse('{"__proto__":"a","constructor":"b","toString":"c"}');
  assertEquals(await call(client, "odd", args), ['[["toString","c"],["__proto__","a"],["constructor","b"]]', false]);
  assertEquals(await call(client, "odd", { constructor: "b" }), [sentence("odd", "__proto__"), true]);
  const { toString: _toString, ...both } = args;
  assertEquals(await call(client, "strange", JSON.parse('{"__proto__":"a","constructor":"b"}')), [
    'user: [["__proto__","a"],["constructor","b"]]',
    false,
  ]);
  assertEquals((await call(client, "strange", both))[1], false);
  assertEquals(await call(client, "strange", {}), [sentence("constructor"), true]);
});

behaviour("asTools works in groups, and with transform and toolProvider", async (connect) => {
  const outer = asTools(review, { name: "outer_review" });
  const renamed = transform(asTools(note), {
    name: "find_note",
    input: { title: { name: "t" }, format: { value: "html" } },
  });
  const found = asTools(note, { name: "found" });
  const { client } = await connect({
    handlers: [
      note,
      review,
      group("team", [
        review,
        asTools(review),
        transform(asTools(review), { name: "do" }),
        group("inner", [asTools(review)]),
      ], {
        tags: ["team"],
      }),
      group("all", [asTools()]),
      outer,
      renamed,
      toolProvider({ list: () => [found], find: (name) => name === "found" ? found : undefined }),
    ],
  });
  const names = (await client.listTools()).map(({ name }) => name);
  assertEquals(names, [
    "team_review",
    "team_do",
    "team_inner_review",
    "all_read_resource",
    "all_list_resources",
    "outer_review",
    "find_note",
    "found",
  ]);
  for (const name of names.filter((name) => name !== "all_list_resources" && /_(review|do)$/.test(name))) {
    assertEquals((await call(client, name, { code: "f" }))[0], "user: f undefined undefined undefined");
  }
  assertEquals(await call(client, "find_note", { t: "todo" }), ["<p>Buy milk</p>", false]);
  assertEquals(await call(client, "found", { title: "todo" }), ["Buy milk", false]);
  assertEquals(await call(client, "all_read_resource", { uri: "note://todo" }), ["Buy milk", false]);
});

behaviour("resources and prompts of another server become tools with their words", async (connect) => {
  const listed = { uriTemplate: "up://{id}{?n}", name: "Up stream", description: "Of upstream" };
  const up = resource.from(listed, (uri) => ({ contents: [{ uri, text: uri }] }));
  const args = [{ name: "a", description: "An a", required: true }, { name: "b" }];
  const greet = prompt.from({ name: "greet", arguments: args }, (input) => JSON.stringify(input));
  const { client } = await connect({ handlers: [up, greet, asTools(up), asTools(greet)] });
  assertEquals((await toolOf(client, "Up_stream")).description, "Of upstream");
  const { inputSchema: { properties, required } } = await toolOf(client, "greet");
  assertEquals([properties, required], [{ a: { type: "string", description: "An a" }, b: { type: "string" } }, ["a"]]);
  assertEquals(await call(client, "Up_stream", { id: "a b", n: "1" }), ["up://a%20b?n=1", false]);
  assertEquals(await call(client, "greet", { a: "x" }), ['user: {"a":"x"}', false]);
});

behaviour("a server that does not serve the resource does not start", async (connect) => {
  await assertRejects(() => connect({ handlers: [asTools(note)] }), TypeError, sentence("note://", "not served"));
  await assertRejects(() => connect({ handlers: [asTools(review)] }), TypeError, sentence("review", "not served"));
  await assertRejects(
    () => connect({ handlers: [group("a", [review]), asTools(review)] }),
    TypeError,
    sentence("review", "group"),
  );
  const reads = asTools(note);
  const { client, server } = await connect({ handlers: [note, reads] });
  assertThrows(() => server.handlers.remove(note), TypeError, sentence("note://", "not served"));
  assertEquals(await call(client, "note", { title: "todo" }), ["Buy milk", false]);
  server.handlers.remove(note, reads);
  await assertRejects(() => call(client, "note", { title: "todo" }), McpError, "Unknown tool");
}, { perInstance: "handlers" });

Deno.test("what is neither a resource nor a prompt does not become a tool", () => {
  const provider = promptProvider({ find: () => undefined });
  const wrong: readonly unknown[] = [
    undefined,
    null,
    {},
    [],
    "note",
    { ...note },
    Object.create(note),
    tool({ name: "a", run: () => "" }),
    provider,
    group("g", [note]),
    asTools(),
  ];
  const make = asTools as (...given: readonly unknown[]) => Handler; // The test passes wrong values.
  for (const each of wrong) assertThrows(() => make(each), TypeError, sentence("neither"));
  assertThrows(() => make(note, { nam: "x" }), TypeError, sentence("nam", "name"));
  assertThrows(() => make(note, { description: "x" }), TypeError, sentence("description", "transform"));
  for (const name of ["", "a b", "x".repeat(129), 5]) {
    assertThrows(() => make(note, { name }), TypeError, sentence("name"));
  }
  const unnamed = resource({ uri: "x://y", name: "日本", read: () => "" });
  assertThrows(() => asTools(unnamed), TypeError, sentence("日本", "set name"));
  assertEquals(asTools(unnamed, { name: "japan" }).name, "japan");
  assertEquals(
    asTools(resource({ uri: "x://y", name: "é".repeat(9) + "x".repeat(300), read: () => "" })).name.length,
    128,
  );
});

behaviour("calls of a tool of asTools need slots of the resource or prompt", async (connect) => {
  const calls = { running: 0, most: 0, made: 0 };
  const run = async () => {
    calls.made++;
    calls.most = Math.max(calls.most, ++calls.running);
    // Other calls would start now.
    await turn(20);
    calls.running--;
    return "done";
  };
  const use = [quota({ concurrency: 1 })];
  const slow = resource({ uri: "slow://one", name: "slow", use, read: run });
  const rows = resourceProvider({ scheme: "slow", name: "rows", use, read: run });
  const ask = prompt({ name: "ask", use, run: async () => [{ role: "user", content: await run() }] });
  const { client } = await connect({
    handlers: [slow, rows, ask, asTools(slow), asTools(rows), asTools(ask), asTools(), toolSearch()],
  });
  const results = await Promise.all([
    client.callTool("slow"),
    client.callTool("rows", { uri: "slow://2" }),
    client.callTool("ask"),
    client.callTool("read_resource", { uri: "slow://one" }),
    client.readResource("slow://one"),
    client.callTool("call_tool", { name: "slow" }),
    client.callTool("call_tool", { name: "ask" }),
    client.callTool("call_read_only_tool", { name: "read_resource", arguments: { uri: "slow://one" } }),
  ]);
  assertEquals(results.map((result) => "contents" in result ? "done" : textOf(result)), [
    "done",
    "done",
    "user: done",
    "done",
    "done",
    "done",
    "user: done",
    "done",
  ]);
  assertEquals([calls.made, calls.most], [8, 1]);
}, { perInstance: "limits" });

behaviour("a resource that calls call_tool for a tool of asTools does not wait for its own slot", async (connect) => {
  const use = [quota({ concurrency: 1 })];
  let depth = 0;
  const loop: Handler = resource({
    uri: "loop://one",
    name: "loop",
    use,
    read: async (_uri, ctx) => {
      if (depth++) return "end";
      return textOf(await ctx.callTool("call_tool", { name: "read_resource", arguments: { uri: "loop://one" } }));
    },
  });
  const { client } = await connect({ handlers: [loop, asTools(), toolSearch()] });
  assertEquals(
    textOf(await client.callTool("call_tool", { name: "read_resource", arguments: { uri: "loop://one" } })),
    "end",
  );
}, { perInstance: "limits" });

for (const names of [["call", "row"], ["slow", "row"], ["call", "slow", "row"]]) {
  behaviour(
    `the slots of a quota that ${names.join(" and ")} share suffice for one chain of relays`,
    async (connect) => {
      const shared = quota({ concurrency: 1 });
      const use = (name: string) => names.includes(name) ? [shared] : [];
      const row = resource({ uri: "x://row", name: "row", use: use("row"), read: () => "row" });
      const { client } = await connect({
        handlers: [
          row,
          group("a", [asTools()], { use: use("slow") }),
          group("b", [toolSearch()], { use: use("call") }),
        ],
      });
      const args = { name: "a_read_resource", arguments: { uri: "x://row" } };
      const results = await Promise.all([1, 2, 3].map(() => client.callTool("b_call_tool", args)));
      assertEquals(results.map(textOf), ["row", "row", "row"]);
    },
    { perInstance: "limits" },
  );
}
