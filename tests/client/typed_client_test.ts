// A client with the types of its server: correct calls compile and run, and the compiler reports incorrect calls.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, group, prompt, resource, tool } from "../../mod.ts";
import { connect, McpError } from "../../src/client/client.ts";
import { testTypeErrors } from "../support/type_errors.ts";
import { sentence } from "../support/messages.ts";
import { compileJsonSchema } from "../../src/core/schema/json_check.ts";
import { behaviour } from "../support/behaviour.ts";
import { agreed, discovered, fakeHttp, ok, url } from "./fakes.ts";

const add = tool({
  name: "add",
  input: z.object({ a: z.number(), b: z.number().default(1) }),
  output: z.object({ sum: z.number() }),
  run: ({ a, b }) => ({ sum: a + b }),
});
const hello = tool({ name: "hello", run: () => "Hello!" });
const review = prompt({ name: "review", input: z.object({ book: z.string() }), run: ({ book }) => `Review ${book}` });
const config = resource({ uri: "config://app", name: "config", read: () => "x" });

Deno.test("a client with the types of its server calls tools and gets prompts", async () => {
  await using server = createServer({ name: "typed", version: "1.0.0", handlers: [add, hello, review, config] });
  await using client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("add", { a: 2 });
  const sum: number | undefined = structuredContent?.sum;
  assertEquals(sum, 3);
  assertEquals((await client.callTool("hello")).content.length, 1);
  assertEquals((await client.callTool("hello", {}, { timeoutMs: 5000 })).content.length, 1);
  assertEquals((await client.getPrompt("review", { book: "Emma" })).messages.length, 1);
  assertEquals((await client.readResource("config://app")).contents.length, 1);
});

const note = resource({
  uri: "note://{folder}/{id}{?rev}",
  name: "note",
  read: ({ folder, id, rev }) => `${folder} ${id} ${rev}`,
});

Deno.test("a client with the types of its server knows the handlers in groups and the templates", async () => {
  const notes = group("notes", [add, review, group("old", [hello, note])]);
  await using server = createServer({ name: "typed", version: "1.0.0", handlers: [notes, config] });
  await using client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("notes_add", { a: 2, b: 3 });
  const sum: number | undefined = structuredContent?.sum;
  assertEquals(sum, 5);
  assertEquals((await client.callTool("notes_old_hello")).content.length, 1);
  assertEquals((await client.getPrompt("notes_review", { book: "Emma" })).messages.length, 1);
  const { contents } = await client.readTemplate("note://{folder}/{id}{?rev}", { folder: "my notes", id: "1" });
  assertEquals(contents.map(({ uri, text }) => [uri, text]), [["note://my%20notes/1", "my notes 1 undefined"]]);
});

Deno.test("every client can read a resource of a template, and readTemplate refuses variables that the template does not have", async () => {
  await using server = createServer({ name: "untyped", version: "1.0.0", handlers: [note] });
  await using client = await connect(server);
  const { contents } = await client.readTemplate("note://{folder}/{id}{?rev}", { folder: "a", id: "é", rev: "2" });
  assertEquals(contents[0].text, "a é 2");
  const template: string = "note://{folder}/{id}{?rev}";
  for (const [values, variable] of [[{ folder: "a" }, "id"], [{ folder: "a", id: "1", x: "2" }, "x"]] as const) {
    await assertRejects(() => client.readTemplate(template, values), TypeError, sentence(template, variable));
  }
  await assertRejects(() => client.readTemplate("note://{a*}", { "a*": "1" }), TypeError, sentence("*", ":length"));
});

Deno.test("a client without a server type can call every tool", async () => {
  await using server = createServer({ name: "untyped", version: "1.0.0", handlers: [add] });
  await using client = await connect(server);
  const name: string = "add";
  assertEquals((await client.callTool(name, { a: 1, anything: true })).structuredContent, { sum: 2 });
});

const library = (path: string) => new URL(`../../${path}`, import.meta.url).href;
testTypeErrors(
  `import { createServer, group, prompt, resource, tool } from "${library("mod.ts")}";
import { connect } from "${library("src/client/client.ts")}";
const input = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;
const output = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } as const;
const add = tool({ name: "add", input, output, run: ({ a }) => ({ sum: a }) });
const review = prompt({ name: "review", input, run: () => "x" });
const server = createServer({ name: "typed", version: "1.0.0", handlers: [add, review] });
const note = resource({ uri: "note://{id}", name: "note", read: () => "x" });
const grouped = createServer({ name: "typed", version: "1.0.0", handlers: [group("math", [add, note])] });
const other = await connect<typeof grouped>(grouped);
const client = await connect<typeof server>(server);`,
  [
    {
      name: "a tool that the server does not have",
      code: `client.callTool("sub", { a: 1 });`,
      line: `Argument of type '"sub"' is not assignable to parameter of type '"add"'.`,
      most: 1,
    },
    {
      name: "a tool of a group without the name of the group",
      code: `other.callTool("add", { a: 1 });`,
      line: `Argument of type '"add"' is not assignable to parameter of type '"math_add"'.`,
      most: 1,
    },
    {
      name: "a template that the server does not have",
      code: `other.readTemplate("note://{name}", { name: "1" });`,
      line: `Argument of type '"note://{name}"' is not assignable to parameter of type '"note://{id}"'.`,
      most: 1,
    },
    {
      name: "a variable that the template does not have",
      code: `other.readTemplate("note://{id}", { name: "1" });`,
      line: "Object literal may only specify known properties, and 'name' does not exist in type",
      most: 1,
    },
    {
      name: "an argument of a tool with the wrong type",
      code: `client.callTool("add", { a: "1" });`,
      line: "Type 'string' is not assignable to type 'number'.",
      most: 1,
    },
    {
      name: "a call without required arguments",
      code: `client.callTool("add", {});`,
      line: "Property 'a' is missing in type '{}' but required in type",
      most: 2,
    },
    {
      name: "a structured result of a typed client in a position of another type",
      code: `(await client.callTool("add", { a: 1 })).structuredContent?.sum satisfies string | undefined;`,
      line: "Type 'number | undefined' does not satisfy the expected type 'string | undefined'.",
      most: 2,
    },
    {
      name: "an argument that the prompt does not have",
      code: `client.getPrompt("review", { a: "1", b: "2" });`,
      line: "Object literal may only specify known properties, and 'b' does not exist in type",
      most: 1,
    },
  ],
);

// The client validates tool results against the output schemas in the list, without running patterns from the server.

// A pattern with exponential backtracking.
const EVIL = "^(([a-z])+.)+[A-Z]([a-z])+$";
const long = "a".repeat(60);

/**
 * Creates a server that responds to tool calls with the given results in order. Only the `sum` tool has an output
 * schema.
 */
function serve(era: "modern" | "legacy", outputSchema: unknown, results: readonly object[]) {
  const left = [...results];
  return fakeHttp((heard) => {
    switch (heard.method) {
      case "server/discover":
        return era === "modern" ? discovered(heard) : new Response(null, { status: 404 });
      case "initialize":
        return ok(heard, agreed);
      case "tools/list":
        return ok(heard, {
          resultType: "complete",
          tools: [{ name: "sum", inputSchema: { type: "object" }, outputSchema }, { name: "free", inputSchema: {} }],
        });
      case "tools/call":
        return ok(heard, { resultType: "complete", content: [], ...left.shift() });
    }
  });
}

const schema = {
  type: "object",
  properties: { sum: { type: "number" }, list: { type: "array", items: { type: "string" } } },
  required: ["sum"],
};

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`structured content must match the output schema of a listed tool (${era})`, async () => {
    const wrong = [
      [{ structuredContent: { sum: "4" } }, "structuredContent.sum", "number", "string"],
      [{ structuredContent: { sum: 4, list: ["a", 1] } }, "structuredContent.list[1]", "number", "string"],
      [{ structuredContent: {} }, "structuredContent.sum"],
      [{ structuredContent: null }, "structuredContent", "object", "null"],
      [{}, "structuredContent", "outputSchema"],
    ] as const;
    const { fetch } = serve(era, schema, [
      ...wrong.map(([result]) => result),
      { structuredContent: { sum: 4 } },
      { isError: true, structuredContent: { sum: "4" } },
      { structuredContent: { sum: "4" } },
    ]);
    await using client = await connect(url, { fetch });
    await client.listTools();
    for (const [, ...names] of wrong) {
      const error = await assertRejects(() => client.callTool("sum"), McpError, sentence("sum", ...names));
      assertEquals(error.code, 0);
    }
    assertEquals((await client.callTool("sum")).structuredContent, { sum: 4 });
    assertEquals((await client.callTool("sum")).isError, true);
    // A tool without an output schema can return any structured content.
    assertEquals((await client.callTool("free")).structuredContent, { sum: "4" });
  });
}

Deno.test("results are not validated before the tools were listed, after the list has changed, and if request() sends the call", async () => {
  const result = { structuredContent: { sum: "4" } };
  const server = serve("modern", schema, Array(4).fill(result));
  let changes = false;
  const fetch = async (request: Request) => {
    const response = await server.fetch(request);
    if (!changes) return response;
    const changed = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    return new Response(`data: ${changed}\n\ndata: ${await response.text()}\n\n`, {
      headers: { "content-type": "text/event-stream" },
    });
  };
  await using client = await connect(url, { fetch });
  await client.callTool("sum");
  await client.listTools();
  assertEquals((await client.request("tools/call", { name: "sum", arguments: {} })).structuredContent, { sum: "4" });
  await assertRejects(() => client.callTool("sum"), McpError);
  changes = true;
  await client.callTool("sum");
});

Deno.test("the client accepts every result if the output schema is unusable or has patterns", async () => {
  const unusable = [
    { $ref: "https://elsewhere.example/schema" },
    { $schema: "http://json-schema.org/draft-03/schema" },
    { type: "nothing" },
    Array.from({ length: 100 }).reduce<object>((items) => ({ items }), {}),
  ];
  const { RegExp: real } = globalThis;
  const compiled: string[] = [];
  const note = (args: readonly unknown[]) => void compiled.push(String(args[0]));
  globalThis.RegExp = new Proxy(real, {
    apply: (target, self, args) => (note(args), Reflect.apply(target, self, args)),
    construct: (target, args) => (note(args), Reflect.construct(target, args)),
  });
  try {
    for (const outputSchema of [...unusable, { properties: { sum: { pattern: EVIL } } }]) {
      const { fetch } = serve("modern", outputSchema, [{ structuredContent: { sum: long } }]);
      await using client = await connect(url, { fetch });
      await client.listTools();
      assertEquals((await client.callTool("sum")).structuredContent, { sum: long });
    }
  } finally {
    globalThis.RegExp = real;
  }
  assertEquals(compiled.filter((source) => source.includes("([a-z])+")), []);
});

Deno.test("the validation ignores patterns, and rejects a result only if it is invalid whatever the patterns match", () => {
  const pattern = "b";
  const misfits = (schema: object, value: unknown) =>
    compileJsonSchema({ ...schema }, { ignoresPatterns: true })(value).map(({ path, message }) =>
      `${path}: ${message}`
    );
  for (
    const schema of [
      { pattern },
      { not: { pattern: "a" } },
      { not: { $ref: "#/$defs/b" }, $defs: { b: { pattern: "a" } } },
      { oneOf: [{ pattern }, { type: "string" }] },
      { if: { pattern: "a" }, then: { maxLength: 0 } },
      { if: { pattern }, else: { maxLength: 0 } },
    ]
  ) {
    assertEquals(misfits(schema, "a"), [], JSON.stringify(schema));
  }
  for (
    const schema of [
      { patternProperties: { b: { type: "number" } }, additionalProperties: { type: "string" } },
      { patternProperties: { b: { type: "number" } }, unevaluatedProperties: false },
      { propertyNames: { pattern } },
      { properties: { a: { patternProperties: {} } }, not: { properties: { a: { pattern } } } },
    ]
  ) {
    assertEquals(misfits(schema, { a: "x" }), [], JSON.stringify(schema));
  }
  assertEquals(misfits({ contains: { pattern }, maxContains: 1 }, ["b", "a"]), []);
  // Keywords other than `pattern` are still validated.
  assertEquals(misfits({ pattern, maxLength: 2 }, "aaa"), [sentence(2, 3)]);
  assertEquals(misfits({ oneOf: [{ pattern }, { maxLength: 1 }] }, 4), []);
  assertEquals(misfits({ anyOf: [{ type: "string", pattern }, { type: "null" }] }, 4).length, 1);
  assertEquals(misfits({ not: { type: "string" } }, "a"), [sentence("not")]);
});

behaviour("the client accepts every result from a server of this library", async (connect) => {
  const person = z.object({ email: z.email(), at: z.iso.datetime().optional(), tags: z.array(z.string()).default([]) });
  const known = tool({ name: "known", output: person, run: () => ({ email: "ada@example.com" }) });
  const failing = tool({ name: "failing", output: person, run: () => ({ content: [], isError: true }) });
  const { client } = await connect({ handlers: [known, failing] });
  await client.listTools();
  assertEquals((await client.callTool("known")).structuredContent, { email: "ada@example.com", tags: [] });
  assertEquals((await client.callTool("failing")).isError, true);
});
