// Tools: their listing, input and output.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { z } from "zod";
import { McpError, media, prompt, resourceLink, tool, ToolError } from "../../mod.ts";
import { behaviour, type Connect, plainTool, raise, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

behaviour("a tool is listed with all its fields", async (connect, { era }) => {
  const full = tool({
    name: "full.name-1_a",
    title: "Full",
    description: "Has everything",
    input: z.object({ a: z.number().describe("First"), b: z.string().optional() }),
    output: z.object({ sum: z.number() }),
    annotations: { readOnlyHint: true, title: "Hint" },
    icons: [{ src: "data:image/png;base64,AA==", mimeType: "image/png" }],
    _meta: { "example.com/x": 1 },
    run: ({ a }) => ({ sum: a }),
  });
  const bare = tool({ name: "bare", run: () => "" });
  const raw = tool({
    name: "raw",
    input: { type: "object", properties: { x: { const: 1 } }, $defs: { y: {} } },
    run: () => "",
  });
  const { client } = await connect({ handlers: [full, bare, raw] });
  const [first, second, third] = await client.listTools();
  const { inputSchema, outputSchema, ...rest } = first;
  assertEquals(rest, {
    name: "full.name-1_a",
    title: "Full",
    description: "Has everything",
    annotations: { readOnlyHint: true, title: "Hint" },
    icons: [{ src: "data:image/png;base64,AA==", mimeType: "image/png" }],
    _meta: { "example.com/x": 1 },
  });
  assertEquals(inputSchema.type, "object");
  assertEquals(inputSchema.properties, { a: { type: "number", description: "First" }, b: { type: "string" } });
  assertEquals(inputSchema.required, ["a"]);
  assertEquals(outputSchema?.required, ["sum"]);
  assertEquals(second, { name: "bare", inputSchema: { type: "object", properties: {} } });
  assertEquals(third.inputSchema, { type: "object", properties: { x: { const: 1 } }, $defs: { y: {} } });
  const page = await client.request("tools/list");
  const { tools: _tools, ...dress } = page;
  const { _meta, ...hints } = dress;
  assertEquals(hints, era === "modern" ? { resultType: "complete", ttlMs: 0, cacheScope: "public" } : {});
  assertEquals(_meta !== undefined, era === "modern");
});

// Return values of a tool, and the results that the client gets. Both eras give the same result unless an entry says
// otherwise.
const returns: readonly {
  readonly what: string;
  readonly value: string | number | boolean | null | object;
  readonly content: readonly unknown[];
  readonly structured?: unknown;
}[] = [
  { what: "a string", value: "hi", content: [{ type: "text", text: "hi" }] },
  { what: "an empty string", value: "", content: [{ type: "text", text: "" }] },
  { what: "a number", value: 1.5, content: [{ type: "text", text: "1.5" }] },
  { what: "false", value: false, content: [{ type: "text", text: "false" }] },
  { what: "null", value: null, content: [{ type: "text", text: "null" }] },
  { what: "an object", value: { a: [1] }, content: [{ type: "text", text: '{"a":[1]}' }], structured: { a: [1] } },
  { what: "an array", value: [1, "a"], content: [{ type: "text", text: '[1,"a"]' }], structured: [1, "a"] },
  { what: "an empty array", value: [], content: [{ type: "text", text: "[]" }], structured: [] },
  {
    what: "a content block",
    value: { type: "text", text: "x", annotations: { priority: 1 } },
    content: [{ type: "text", text: "x", annotations: { priority: 1 } }],
  },
  {
    what: "an image",
    value: media(new Uint8Array([137, 80]), "image/png"),
    content: [{ type: "image", data: "iVA=", mimeType: "image/png" }],
  },
  {
    what: "a file",
    value: media(new Uint8Array([0]), "application/zip", { uri: "file:///a.zip" }),
    content: [{ type: "resource", resource: { uri: "file:///a.zip", mimeType: "application/zip", blob: "AA==" } }],
  },
  {
    what: "several blocks",
    value: [{ type: "text", text: "x" }, resourceLink("file:///a/b.txt", { mimeType: "text/plain" })],
    content: [
      { type: "text", text: "x" },
      { type: "resource_link", uri: "file:///a/b.txt", name: "b.txt", mimeType: "text/plain" },
    ],
  },
  {
    what: "texts and blocks",
    value: ["Saved.", { type: "text", text: "x" }, resourceLink("file:///a/b.txt")],
    content: [
      { type: "text", text: "Saved." },
      { type: "text", text: "x" },
      { type: "resource_link", uri: "file:///a/b.txt", name: "b.txt" },
    ],
  },
  {
    what: "a full result",
    value: { content: [{ type: "text", text: "x" }], structuredContent: { n: 1 }, _meta: { "example.com/t": 2 } },
    content: [{ type: "text", text: "x" }],
    structured: { n: 1 },
  },
  {
    what: "an object that only looks like content",
    value: { type: "text", body: 1 },
    content: [{ type: "text", text: '{"type":"text","body":1}' }],
    structured: { type: "text", body: 1 },
  },
];

for (const { what, value, content, structured } of returns) {
  behaviour(`a tool can return ${what}`, async (connect, { era }) => {
    const handlers = [
      tool({ name: "give", run: () => value }),
      tool({ name: "late", run: () => Promise.resolve(value) }),
      // Such as a query object that runs when it is awaited.
      tool({ name: "lazy", run: () => ({ then: (resolve: (value: unknown) => void) => resolve(value) }) }),
    ];
    const { client } = await connect({ handlers });
    for (const name of ["give", "late", "lazy"]) {
      const result = await client.callTool(name);
      assertEquals(result.content, content);
      // Before 2026-07-28, only an object can be structured content.
      const isSent = era === "modern" || !Array.isArray(structured);
      assertEquals(result.structuredContent, isSent ? structured : undefined);
      assertEquals(result.isError, undefined);
      assertEquals(result.resultType, era === "modern" ? "complete" : undefined);
    }
  }, { transports: ["memory", "pipe"] });
}

behaviour("a full result keeps its own _meta fields in addition to the server's fields", async (connect, { era }) => {
  const give = tool({ name: "give", run: () => ({ content: [], _meta: { "example.com/t": 2 } }) });
  const { client } = await connect({ handlers: [give] });
  const { _meta } = await client.callTool("give");
  const server = { "io.modelcontextprotocol/serverInfo": { name: "fixture", version: "1.0.0" } };
  assertEquals(_meta, { ...era === "modern" ? server : {}, "example.com/t": 2 });
});

behaviour("text arrives unchanged, whatever it contains, in JSON and in a stream", async (connect) => {
  const nasty = "a\n\nb\r\r\nc\u2028d\u2029\0\u001b[31m data: x\nevent: y\n:\n\ud83d\ude00 \ufeff" + "\ud800" +
    "long".repeat(50_000);
  const echo = tool({
    name: "echo",
    input: z.object({ text: z.string(), streamed: z.boolean() }),
    async run({ text, streamed }, ctx) {
      if (streamed) await ctx.progress(1, { message: text.slice(0, 50) });
      return text;
    },
  });
  const { client } = await connect({ handlers: [echo] });
  for (const streamed of [false, true]) {
    const result = await client.callTool("echo", { text: nasty, streamed }, { meta: { progressToken: "p" } });
    assertEquals(textOf(result), nasty);
  }
  assertEquals(client.received.map(({ params }) => params.message), [nasty.slice(0, 50)]);
});

behaviour("the output is validated, and the client gets the parsed value", async (connect) => {
  const sum = tool({
    name: "sum",
    output: z.object({ sum: z.number(), note: z.string().default("none") }),
    run: () => ({ sum: 3, extra: 1 }),
  });
  const own = tool({
    name: "own",
    output: z.object({ n: z.number() }),
    run: () => ({ content: [{ type: "text" as const, text: "own" }], structuredContent: { n: 1 } }),
  });
  const failed = tool({
    name: "failed",
    output: z.object({ n: z.number() }),
    run: () => ({ content: [{ type: "text" as const, text: "no" }], isError: true }),
  });
  const { client } = await connect({ handlers: [sum, own, failed] });
  const result = await client.callTool("sum");
  assertEquals(result.structuredContent, { sum: 3, note: "none" });
  assertEquals(JSON.parse(textOf(result)), { sum: 3, note: "none" });
  const full = await client.callTool("own");
  assertEquals([textOf(full), full.structuredContent], ["own", { n: 1 }]);
  assertEquals((await client.callTool("failed")).isError, true);
});

behaviour("a result that does not match its output schema is never sent", async (connect) => {
  // The type checker reports this mistake, but plain JavaScript and external data can still cause it.
  const wrong: unknown = { sum: "secret-3" };
  const handlers = [
    tool({ name: "plain", output: z.object({ sum: z.number() }), run: () => wrong as { sum: number } }),
    tool({
      name: "full",
      output: z.object({ sum: z.number() }),
      run: () => ({ content: [{ type: "text" as const, text: "secret-3" }], structuredContent: wrong }),
    }),
    tool({ name: "missing", output: z.object({ sum: z.number() }), run: () => ({ content: [] }) }),
  ];
  const { client, takeFaults } = await connect({ handlers });
  for (const { name } of handlers) {
    const error = await assertRejects(() => client.callTool(name), McpError);
    const [fault, ...others] = takeFaults();
    assertEquals([error.code, error.message, error.data], [-32603, sentence(), { errorId: fault.id }]);
    assertEquals([fault.method, fault.subject, others.length], ["tools/call", name, 0]);
    assertStringIncludes(String(fault.error), `tool "${name}"`);
  }
  assert(!client.transcript.join().includes("secret-3"));
});

behaviour(
  "invalid input returns an error result that names the field, and the tool does not run",
  async (connect) => {
    let ran = 0;
    const handlers = [
      tool({
        name: "zod",
        input: z.object({ count: z.number(), to: z.object({ city: z.string() }) }),
        run: () => `${++ran}`,
      }),
      tool({
        name: "raw",
        input: {
          type: "object",
          properties: { count: { type: "number" }, to: { type: "object", required: ["city"] } },
          required: ["count"],
        },
        run: () => `${++ran}`,
      }),
    ];
    const { client } = await connect({ handlers });
    for (const { name } of handlers) {
      for (
        const [args, field] of [[{}, "count"], [{ count: "1", to: { city: "Oslo" } }, "count"], [
          { count: 1, to: {} },
          "city",
        ]]
      ) {
        const result = await client.callTool(name, Object(args));
        assertEquals(result.isError, true);
        assertStringIncludes(textOf(result), String(field));
        assert(textOf(result).length < 2000);
      }
    }
    assertEquals(ran, 0);
    assertEquals((await client.callTool("zod", { count: 1, to: { city: "Oslo" } })).isError, undefined);
  },
);

behaviour("a tool gets the parsed input, which has only own properties", async (connect) => {
  const seen: unknown[] = [];
  const look = tool({
    name: "look",
    input: z.object({ n: z.coerce.number().default(7) }),
    run(input) {
      seen.push(input);
      return "";
    },
  });
  const any = tool({ name: "any", input: { type: "object" }, run: (input) => Object.keys(Object(input)) });
  const { client } = await connect({ handlers: [look, any] });
  await client.callTool("look", { n: "3", junk: 1 });
  await client.request("tools/call", { name: "look" });
  assertEquals(seen, [{ n: 3 }, { n: 7 }]);
  const args = JSON.parse('{"__proto__":{"polluted":1},"constructor":2}');
  assertEquals(JSON.parse(textOf(await client.callTool("any", args))), ["__proto__", "constructor"]);
  assert(!("polluted" in {}));
});

behaviour("a tool name that is unknown or missing gets the error -32602", async (connect) => {
  const { client } = await connect({ handlers: [tool({ name: "one", run: () => "" })] });
  const names = ["two", "", "One", "one ", "constructor", "__proto__", "toString", "naïve ☃", "x".repeat(5000)];
  const calls = names.map((name) => ({ name, arguments: {} }));
  for (
    const params of [...calls, {}, { name: 5 }, { name: null }, { name: "one", arguments: [1] }, {
      name: "one",
      arguments: "x",
    }]
  ) {
    const error = await assertRejects(() => client.request("tools/call", params), McpError);
    assertEquals(error.code, -32602, JSON.stringify(params).slice(0, 99));
    assert(error.message.length < 400, "the error quotes the whole name");
  }
});

function failing(): Parameters<Connect>[0] {
  const secret = "secret at /srv/app/db.ts:1";
  return {
    handlers: [
      tool({ name: "told", run: () => Promise.reject(new ToolError("No flight on that day")) }),
      plainTool("blocks", () => {
        throw new ToolError([{ type: "text", text: "first" }, resourceLink("file:///log")]);
      }),
      tool({ name: "coded", run: () => raise(new McpError(4099, "Out of paper", { tray: 2 })) }),
      tool({ name: "error", run: () => Promise.reject(new Error(secret)) }),
      tool({ name: "sync", run: () => raise(new TypeError(secret)) }),
      tool({ name: "string", run: () => Promise.reject(secret) }),
      tool({ name: "nothing", run: () => Promise.reject(undefined) }),
    ],
  };
}

behaviour("a handler without input gets an empty object, whatever the client sends", async (connect) => {
  const got: unknown[] = [];
  const run = (input: unknown) => {
    got.push(input);
    return "done";
  };
  const { client } = await connect({ handlers: [tool({ name: "t", run }), prompt({ name: "p", run })] });
  assertEquals((await client.listTools())[0].inputSchema, { type: "object", properties: {} });
  await client.callTool("t", { a: 1, __proto__: { b: 1 } });
  await client.getPrompt("p", { a: "1" });
  assertEquals(got, [{}, {}]);
  await assertRejects(
    () => client.request("tools/call", { name: "t", arguments: [1] }),
    McpError,
    sentence('"t"', "arguments"),
  );
});

behaviour("a result whose _meta is not a plain object is refused, and the error names _meta", async (connect) => {
  const give = (name: string, _meta: unknown) => tool({ name, run: () => ({ content: [], _meta }) });
  const handlers = [
    give("map", new Map([["a", 1]])),
    give("set", new Set([1])),
    give("plain", { a: 1 }),
    give("empty", {}),
  ];
  const { client, takeFaults } = await connect({ handlers });
  for (const name of ["map", "set"]) {
    assertEquals((await client.callTool(name).catch((error) => error)).code, -32603);
    assertEquals(String(takeFaults()[0].error), sentence(`tool "${name}"`, "_meta"));
  }
  assertEquals(Object((await client.callTool("plain"))._meta).a, 1);
  assertEquals((await client.callTool("empty")).content, []);
});

behaviour("the model reads the text of a ToolError", async (connect) => {
  const { client } = await connect(failing());
  const refusal = await client.callTool("told");
  assertEquals([refusal.isError, refusal.content], [true, [{ type: "text", text: "No flight on that day" }]]);
  const { isError, content } = await client.callTool("blocks");
  assertEquals([isError, content[0], content[1].type], [true, { type: "text", text: "first" }, "resource_link"]);
});

behaviour("a client gets an McpError unchanged", async (connect) => {
  const { client } = await connect(failing());
  const error = await assertRejects(() => client.callTool("coded"), McpError);
  assertEquals([error.code, error.message, error.data], [4099, "Out of paper", { tray: 2 }]);
});

behaviour("for any other error the client gets an id, and the observer gets the error itself", async (connect) => {
  const { client, takeFaults } = await connect({ ...failing(), development: false });
  for (const name of ["error", "sync", "string", "nothing"]) {
    const result = await client.callTool(name);
    const [fault, ...others] = takeFaults();
    assertEquals(others, []);
    assertEquals(result.isError, true);
    assertEquals(result.content, [{ type: "text", text: `${sentence()} (${fault.id})` }]);
    assertMatch(fault.id, /^[0-9a-f]{8}$/);
    assertEquals([fault.method, fault.subject], ["tools/call", name]);
    if (name !== "nothing") assertStringIncludes(String(fault.error), "secret");
  }
  assert(!client.transcript.join().includes("secret"));
});

behaviour(
  "a result that cannot be serialized as JSON is an internal error, and the next call succeeds",
  async (connect) => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const bad: Readonly<Record<string, unknown>> = {
      function: () => {},
      symbol: Symbol("secret"),
      deepWeakMap: { a: [new WeakMap()] },
      cycle,
      fullSymbol: { content: [], structuredContent: { n: Symbol("secret") } },
      fullCycle: { content: [], _meta: cycle },
      throwing: { toJSON: () => raise(new Error("secret")) },
      getter: {
        get a() {
          throw new Error("secret");
        },
      },
    };
    const handlers = Object.entries(bad).map(([name, value]) => tool({ name, run: () => value as object }));
    const { client, takeFaults } = await connect({
      handlers: [...handlers, tool({ name: "good", run: () => "good" })],
    });
    for (const { name } of handlers) {
      const error = await assertRejects(() => client.callTool(name), McpError);
      const [fault, ...others] = takeFaults();
      assertEquals([error.code, error.message, error.data], [-32603, sentence(), { errorId: fault?.id }], name);
      assertEquals(others, []);
      assertEquals(textOf(await client.callTool("good")), "good");
    }
    assert(!client.transcript.join().includes("secret"));
  },
);

behaviour("a value with toJSON is sent in its converted form", async (connect) => {
  const give = plainTool("give", () => ({ at: new Date(0), no: undefined, nan: NaN }));
  const { client } = await connect({ handlers: [give] });
  const { structuredContent } = await client.callTool("give");
  assertEquals(structuredContent, { at: "1970-01-01T00:00:00.000Z", nan: null });
}, { transports: ["memory", "pipe"] });

Deno.test("an invalid tool throws when it is created", () => {
  const run = () => "";
  for (const name of ["", "a b", "ä", "x".repeat(129), "a/b"]) {
    assertThrows(() => tool({ name, run }), TypeError, sentence(128));
  }
  // A caller in plain JavaScript can pass such values.
  const options = (value: object) => value as Parameters<typeof tool>[0];
  assertThrows(() => tool(options({ name: "a" })), TypeError, sentence('tool "a"'));
  assertThrows(() => tool(options({ run })), TypeError, sentence());
});
