// A client with the types of its server: correct calls compile and run, and the compiler reports incorrect calls.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, group, prompt, resource, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { testTypeErrors } from "../support/type_errors.ts";
import { sentence } from "../support/messages.ts";

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
  const server = createServer({ name: "typed", version: "1.0.0", handlers: [add, hello, review, config] });
  const client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("add", { a: 2 });
  const sum: number | undefined = structuredContent?.sum;
  assertEquals(sum, 3);
  assertEquals((await client.callTool("hello")).content.length, 1);
  assertEquals((await client.callTool("hello", {}, { timeoutMs: 5000 })).content.length, 1);
  assertEquals((await client.getPrompt("review", { book: "Emma" })).messages.length, 1);
  assertEquals((await client.readResource("config://app")).contents.length, 1);
  await client.close();
  await server.close();
});

const note = resource({
  uri: "note://{folder}/{id}{?rev}",
  name: "note",
  read: ({ folder, id, rev }) => `${folder} ${id} ${rev}`,
});

Deno.test("a client with the types of its server knows the handlers in groups and the templates", async () => {
  const notes = group("notes", [add, review, group("old", [hello, note])]);
  const server = createServer({ name: "typed", version: "1.0.0", handlers: [notes, config] });
  const client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("notes_add", { a: 2, b: 3 });
  const sum: number | undefined = structuredContent?.sum;
  assertEquals(sum, 5);
  assertEquals((await client.callTool("notes_old_hello")).content.length, 1);
  assertEquals((await client.getPrompt("notes_review", { book: "Emma" })).messages.length, 1);
  const { contents } = await client.readTemplate("note://{folder}/{id}{?rev}", { folder: "my notes", id: "1" });
  assertEquals(contents.map(({ uri, text }) => [uri, text]), [["note://my%20notes/1", "my notes 1 undefined"]]);
  await client.close();
  await server.close();
});

Deno.test("every client can read a resource of a template, and readTemplate refuses variables that the template does not have", async () => {
  const server = createServer({ name: "untyped", version: "1.0.0", handlers: [note] });
  const client = await connect(server);
  const { contents } = await client.readTemplate("note://{folder}/{id}{?rev}", { folder: "a", id: "é", rev: "2" });
  assertEquals(contents[0].text, "a é 2");
  const template: string = "note://{folder}/{id}{?rev}";
  for (const [values, variable] of [[{ folder: "a" }, "id"], [{ folder: "a", id: "1", x: "2" }, "x"]] as const) {
    await assertRejects(() => client.readTemplate(template, values), TypeError, sentence(template, variable));
  }
  await assertRejects(() => client.readTemplate("note://{a*}", { "a*": "1" }), TypeError, sentence("*", ":length"));
  await client.close();
  await server.close();
});

Deno.test("a client without a server type can call every tool", async () => {
  const server = createServer({ name: "untyped", version: "1.0.0", handlers: [add] });
  const client = await connect(server);
  const name: string = "add";
  assertEquals((await client.callTool(name, { a: 1, anything: true })).structuredContent, { sum: 2 });
  await client.close();
  await server.close();
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
