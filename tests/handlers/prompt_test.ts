import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import { McpError, type Middleware, prompt, ToolError } from "../../mod.ts";
import { behaviour, raise } from "../support/behaviour.ts";
import { ask, call, fail } from "../support/requests.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import type { Schema } from "../../src/core/schema/schema.ts";
import { serve, testClient, testServer } from "../support/test_server.ts";

const review = prompt({
  name: "review",
  title: "Review",
  description: "Reviews code",
  icons: [{ src: "https://example.com/a.png" }],
  _meta: { "example.com/a": 1 },
  input: z.object({
    code: z.string().meta({ title: "Code", description: "What to review" }),
    language: z.enum(["go", "rust"]).optional(),
    style: z.string().default("kind"),
  }),
  run: ({ code, language, style }) => `${code} ${language} ${style}`,
});

behaviour("a prompt's input can be a shape with z.coerce", async (connect) => {
  const count = prompt({
    name: "count",
    input: {
      n: z.coerce.number().min(5),
      yes: z.coerce.boolean().optional(),
      text: z.string(),
      "~": z.coerce.number().default(2),
    },
    run: ({ n, yes, text, "~": more }) => `${n + 1} ${yes} ${text} ${more}`,
  });
  const { client } = await connect({ handlers: [count] });
  const ask = async (args: Record<string, string>) =>
    Object((await client.getPrompt("count", args)).messages[0].content).text;
  assertEquals(await ask({ n: "6", text: "a" }), "7 undefined a 2");
  assertEquals(await ask({ n: "6", text: "a", yes: "yes", "~": "3" }), "7 true a 3");
  await assertRejects(() => ask({ n: "4", text: "a" }), Error, "n: Too small");
  for (const [part, type] of [[z.number(), "number"], [z.boolean().optional(), "boolean"]] as const) {
    const make = () => prompt({ name: "p", input: { n: part }, run: () => "" });
    assertThrows(make, TypeError, sentence('prompt "p"', '"n"', type));
  }
});

Deno.test("a prompt is listed with its arguments, and without unset fields", async () => {
  const server = serve(review, prompt({ name: "bare", run: () => "" }));
  const { prompts, cacheScope, ttlMs, nextCursor } = await call(server, "prompts/list");
  assertEquals(prompts, [{
    name: "review",
    title: "Review",
    description: "Reviews code",
    arguments: [
      { name: "code", title: "Code", description: "What to review", required: true },
      { name: "language" },
      { name: "style" },
    ],
    icons: [{ src: "https://example.com/a.png" }],
    _meta: { "example.com/a": 1 },
  }, { name: "bare" }]);
  assertEquals([cacheScope, ttlMs, nextCursor], ["public", 0, undefined]);
  const { capabilities } = await call(server, "server/discover");
  assertEquals(capabilities.prompts, { listChanged: true });
});

Deno.test("raw JSON Schema also describes a prompt's arguments, and refuses invalid arguments", async () => {
  const server = serve(prompt({
    name: "raw",
    input: {
      type: "object",
      properties: { a: { type: "string", description: "An a" }, b: { enum: ["x", "y"] }, c: true },
      required: ["a"],
    },
    run: (input) => JSON.stringify(input),
  }));
  const { prompts } = await call(server, "prompts/list");
  assertEquals(prompts[0].arguments, [{ name: "a", description: "An a", required: true }, { name: "b" }, {
    name: "c",
  }]);
  const { messages } = await call(server, "prompts/get", { name: "raw", arguments: { a: "1", b: "x" } });
  assertEquals(messages[0].content.text, '{"a":"1","b":"x"}');
  const error = await fail(server, "prompts/get", { name: "raw", arguments: { a: "1", b: "z" } });
  assertEquals(error.code, -32602);
  assertStringIncludes(error.message, "b: ");
});

Deno.test("a prompt gets parsed arguments: optional arguments, defaults and conversions work", async () => {
  const server = serve(
    review,
    prompt({
      name: "convert",
      input: z.object({ n: z.string().transform(Number).pipe(z.number().int()), on: z.stringbool().optional() }),
      run: async ({ n, on }) => `${n + 1} ${await Promise.resolve(on)}`,
    }),
  );
  const text = async (name: string, given: object) =>
    (await call(server, "prompts/get", { name, arguments: given })).messages[0].content.text;
  assertEquals(await text("review", { code: "x" }), "x undefined kind");
  assertEquals(await text("review", { code: "x", language: "go", style: "harsh" }), "x go harsh");
  assertEquals(await text("convert", { n: "41", on: "yes" }), "42 true");
  const error = await fail(server, "prompts/get", { name: "convert", arguments: { n: "many" } });
  assertEquals(error.code, -32602);
  assertEquals(error.message, sentence('"convert"', "n:"));
});

Deno.test("z.coerce turns arguments into numbers and booleans, and every argument is listed", async () => {
  const coerced = prompt({
    name: "coerced",
    input: z.object({
      count: z.coerce.number().int().min(10),
      ratio: z.coerce.number().optional(),
      step: z.coerce.number().default(2),
      loud: z.coerce.boolean().describe("Whether to shout"),
      text: z.coerce.string(),
    }),
    run({ count, ratio, step, loud, text }) {
      // The assignments check the static types of the arguments.
      const sum: number = count + (ratio ?? 0) + step;
      const isLoud: boolean = loud;
      return `${sum} ${isLoud} ${text.length}`;
    },
  });
  await using client = await testClient({ handlers: [coerced] });
  assertEquals((await client.request("prompts/list")).prompts, [{
    name: "coerced",
    arguments: [
      { name: "count", required: true },
      { name: "ratio" },
      { name: "step" },
      { name: "loud", description: "Whether to shout", required: true },
      { name: "text", required: true },
    ],
  }]);
  const { messages } = await client.getPrompt("coerced", { count: "10", ratio: "0.5", loud: "yes", text: "abc" });
  assertEquals(messages, [{ role: "user", content: { type: "text", text: "12.5 true 3" } }]);
  const error = await assertRejects(() => client.getPrompt("coerced", { count: "9", loud: "", text: "" }), McpError);
  assertEquals([error.code, error.message], [-32602, sentence('"coerced"', "count", 10)]);
  await assertRejects(() => client.getPrompt("coerced", { count: "ten", loud: "", text: "" }), McpError, "NaN");
});

Deno.test("arguments that are missing, misspelled or not strings are refused by name", async () => {
  const server = serve(review, prompt({ name: "bare", run: () => "bare" }));
  const wrong: readonly [unknown, string][] = [
    [undefined, sentence("code")],
    [{}, sentence("code")],
    [{ code: "x", language: "cobol" }, sentence("language")],
    [{ code: 1 }, sentence("code")],
    [{ code: "x", language: 1 }, sentence("language")],
    [{ code: "x", other: {} }, sentence("other")],
    ["x", sentence("arguments")],
    [["x"], sentence("arguments")],
  ];
  for (const [given, message] of wrong) {
    const answer = await ask(server, "prompts/get", { name: "review", arguments: given });
    assertEquals([answer.status, answer.error?.code], [400, -32602], JSON.stringify(given));
    assertEquals(answer.error?.message, message);
  }
  assertEquals((await call(server, "prompts/get", { name: "bare" })).messages[0].content.text, "bare");
});

Deno.test("an unknown prompt is refused", async () => {
  const server = serve(review);
  for (const name of ["other", "", "Review", 1, undefined]) {
    const error = await fail(server, "prompts/get", { name });
    assertEquals(error.code, -32602);
    assertEquals(error.message, sentence());
  }
});

const image = { type: "image", data: "AA==", mimeType: "image/png" } as const;
const text = (text: string) => ({ type: "text", text }) as const;
const user = <C>(content: C) => ({ role: "user", content }) as const;
const assistant = <C>(content: C) => ({ role: "assistant", content }) as const;
const returns = [
  ["a string", "hi", [user(text("hi"))]],
  ["a content block", image, [user(image)]],
  ["content blocks", [image, text("hi")], [user(image), user(text("hi"))]],
  ["a message whose content is a string", assistant("hi"), [assistant(text("hi"))]],
  [
    "messages of which some contents are strings",
    [user("hi"), image, assistant(image)],
    [user(text("hi")), user(image), assistant(image)],
  ],
  [
    "a full result whose messages have strings",
    { description: "d", messages: [assistant("hi")] },
    [assistant(text("hi"))],
    "d",
  ],
  ["a message", assistant(text("hi")), [assistant(text("hi"))]],
  ["messages", [user(image), assistant(text("hi"))], [user(image), assistant(text("hi"))]],
  ["a full result", { description: "d", messages: [user(text("hi"))] }, [user(text("hi"))], "d"],
] as const;

for (const [what, value, expected, about] of returns) {
  Deno.test(`a prompt can return ${what}`, async () => {
    const server = serve(prompt({ name: "it", run: () => Promise.resolve(value) }));
    const { description, messages } = await call(server, "prompts/get", { name: "it" });
    assertEquals([messages, description], [expected, about]);
  });
}

Deno.test("an McpError is sent unchanged, a ToolError is sent as its text, and for any other error only an id is sent", async () => {
  const reported: unknown[] = [];
  const secret = new Error("the password is 1234");
  const errors: Record<string, unknown> = {
    mcp: new McpError(-32001, "Cannot write: not today", { until: "Monday" }),
    tool: new ToolError("No ink"),
    other: secret,
  };
  const server = testServer({
    observer: { fault: ({ error, method, subject }) => reported.push(error, method, subject) },
    handlers: [
      prompt({ name: "throws", input: z.object({ kind: z.string() }), run: ({ kind }) => raise(errors[kind]) }),
      // @ts-expect-error: a number is not a prompt
      prompt({ name: "odd", run: () => [1] }),
    ],
  });
  const failure = (kind: string) => fail(server, "prompts/get", { name: "throws", arguments: { kind } });
  assertEquals(await failure("mcp"), { code: -32001, message: "Cannot write: not today", data: { until: "Monday" } });
  assertEquals(await failure("tool"), { code: -32603, message: "No ink" });
  assertEquals(reported, []);
  const other = await failure("other");
  assertEquals([other.code, other.message], [-32603, sentence()]);
  assertEquals(reported.splice(0), [secret, "prompts/get", "throws"]);
  assertEquals((await fail(server, "prompts/get", { name: "odd" })).message, sentence());
  assertEquals(String(reported[0]), sentence('prompt "odd"'));
});

Deno.test("a prompt that is hidden from a caller is not listed, and is unknown when the caller requests it", async () => {
  const server = serve(
    prompt({ name: "open", run: () => "" }),
    prompt({
      name: "shut",
      allow: async (ctx) => await Promise.resolve(ctx.meta["example.com/who"] === "ada"),
      run: () => "",
    }),
  );
  const _meta = { "example.com/who": "ada" };
  const names = async (params: object) => {
    const { prompts, cacheScope } = await call(server, "prompts/list", { ...params });
    return [cacheScope, ...prompts.map((one: { name: string }) => one.name)];
  };
  assertEquals(await names({}), ["private", "open"]);
  assertEquals(await names({ _meta }), ["private", "open", "shut"]);
  assertEquals(await fail(server, "prompts/get", { name: "shut" }), { code: -32602, message: sentence('"shut"') });
  assertEquals((await call(server, "prompts/get", { name: "shut", _meta })).messages.length, 1);
});

Deno.test("middleware runs around a prompt, after the prompt's arguments were validated", async () => {
  let runs = 0;
  const count: Middleware = async (_call, next) => {
    runs++;
    return { ...await next(), description: "seen" };
  };
  const server = serve(prompt({ name: "a", use: [count], input: z.object({ b: z.string() }), run: ({ b }) => b }));
  await fail(server, "prompts/get", { name: "a" });
  assertEquals((await call(server, "prompts/get", { name: "a", arguments: { b: "1" } })).description, "seen");
  assertEquals(runs, 1);
});

Deno.test("lists of prompts are paginated", async () => {
  const server = testServer({
    limits: testLimits({ calls: { pageItems: 2 } }),
    handlers: ["a", "b", "c"].map((name) => prompt({ name, run: () => "" })),
  });
  const first = await call(server, "prompts/list");
  const second = await call(server, "prompts/list", { cursor: first.nextCursor });
  assertEquals([first.prompts.length, second.prompts, second.nextCursor], [2, [{ name: "c" }], undefined]);
  assertEquals((await fail(server, "prompts/list", { cursor: "x" })).code, -32602);
});

Deno.test("an unusable prompt is refused when it is created, and the error names the prompt", () => {
  const run = () => "";
  const taking = (input: Schema) => () => prompt({ name: "a", input, run });
  const mixed = { type: ["integer", "null"] };
  const make: readonly [() => unknown, string][] = [
    [() => prompt({ name: "", run }), sentence('prompt ""')],
    // @ts-expect-error: run is missing
    [() => prompt({ name: "a" }), sentence('prompt "a"', "run")],
    [taking(z.object({ n: z.number() })), sentence('prompt "a"', '"n"', "number")],
    [taking(z.object({ n: z.boolean().optional() })), sentence('prompt "a"', '"n"', "boolean")],
    [taking(z.object({ n: z.array(z.string()) })), sentence('prompt "a"', '"n"', "array")],
    [taking(z.object({ n: z.object({}) })), sentence('prompt "a"', '"n"', "object")],
    [taking({ type: "object", properties: { n: mixed } }), sentence('prompt "a"', '"n"', "integer,null")],
    [
      // @ts-expect-error: there is no such argument
      () => prompt({ name: "a", input: z.object({ b: z.string() }), complete: { c: () => [] }, run }),
      sentence('prompt "a"', "complete.c", "b"),
    ],
  ];
  for (const [go, message] of make) assertThrows(go, TypeError, message);
  prompt({
    name: "a",
    input: z.object({ n: z.string().nullable(), l: z.literal("x"), u: z.union([z.string(), z.number()]) }),
    run,
  });
});

Deno.test("a test can run a prompt without a server", () => {
  assertEquals(review.run({ code: "x", language: "go", style: "kind" }, undefined as never), "x go kind");
});

Deno.test("a prompt can ask the client, and use the answer", async () => {
  const reported: unknown[] = [];
  const server = testServer({
    observer: { fault: ({ error }) => reported.push(error) },
    handlers: [prompt({ name: "where", run: async (_, ctx) => (await ctx.roots()).map((root) => root.uri).join() })],
  });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { roots: {} } };
  const asked = await call(server, "prompts/get", { name: "where", _meta });
  assertEquals(asked.resultType, "input_required");
  const inputResponses = { roots: { roots: [{ uri: "file:///home" }] } };
  const answered = { name: "where", _meta, requestState: asked.requestState, inputResponses };
  const { messages } = await call(server, "prompts/get", answered);
  assertEquals(messages[0].content.text, "file:///home");
  // The open question is not reported as an error.
  assertEquals(reported, []);
});
