// The client validates tool results against the output schemas in the list, without running patterns from the server.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { tool } from "../../mod.ts";
import { connect, McpError } from "../../src/client/client.ts";
import { compileJsonSchema } from "../../src/core/schema/json_check.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { agreed, discovered, fakeHttp, ok, url } from "./fakes.ts";

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
