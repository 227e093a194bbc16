// Declarations of tools: JSON Schemas as TypeScript types, and the tools that have no room.
import { assert, assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { toTypeText } from "../../src/core/schema/type_text.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

/** Schemas, each with its type. */
const TYPES: readonly (readonly [schema: unknown, type: string])[] = [
  [{ type: "string" }, "string"],
  [{ type: "integer" }, "number"],
  [{ type: ["string", "null"] }, "string | null"],
  [{ type: "string", nullable: true }, "string | null"],
  [{ enum: ["a", 1, null] }, '"a" | 1 | null'],
  [{ const: "x" }, '"x"'],
  [{ type: "array", items: { type: "string" } }, "string[]"],
  [{ type: "array", items: { type: ["string", "null"] } }, "Array<string | null>"],
  [{ type: "array", prefixItems: [{ type: "string" }, { type: "number" }] }, "[string, number]"],
  [{ type: "array" }, "unknown[]"],
  [{ type: "object" }, "Record<string, unknown>"],
  [{ type: "object", additionalProperties: { type: "number" } }, "Record<string, number>"],
  [{ type: "object", additionalProperties: false }, "{}"],
  [{ properties: { a: { type: "string" }, b: {} }, required: ["a"] }, "{ a: string; b?: unknown }"],
  [{ properties: { "a-b": { type: "string" } } }, '{ "a-b"?: string }'],
  [{ properties: { a: { type: "string", description: "First. Second." } } }, "{ /** First. */ a?: string }"],
  [{ properties: { a: { description: "Ends */ early\nhere" } } }, "{ /** Ends * / early here */ a?: unknown }"],
  [{ anyOf: [{ type: "string" }, { type: "number" }] }, "string | number"],
  [{ oneOf: [{ type: "string" }, {}] }, "unknown"],
  [
    { allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: { type: "number" } } }] },
    "{ a?: string } & { b?: number }",
  ],
  [{ $ref: "#/$defs/a", $defs: { a: { type: "boolean" } } }, "boolean"],
  [{ $ref: "#/$defs/missing" }, "unknown"],
  [{ $ref: "https://example.com/schema" }, "unknown"],
  [true, "unknown"],
  [false, "never"],
  [undefined, "unknown"],
  [{ type: "odd" }, "unknown"],
  [{ enum: Array.from({ length: 99 }, (_, at) => `value ${at}`) }, "string"],
  [{ const: "x".repeat(999) }, "string"],
];

Deno.test("schemas become types", () => {
  for (const [schema, type] of TYPES) assertEquals(toTypeText(schema), type, JSON.stringify(schema));
});

Deno.test("types have a bound, also of circular schemas", () => {
  const tree = { type: "object", properties: { next: { $ref: "#" }, other: { $ref: "#" } } };
  assert(toTypeText(tree).length <= 4000);
  assert(toTypeText(tree, { maxLength: 300 }).length <= 300);
  const wide = {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 999 }, (_, at) => [`p${at}`, tree])),
  };
  const since = performance.now();
  assertEquals(toTypeText(wide, { maxLength: 10 }), "unknown");
  const types = Array(10_000).fill("array");
  const repeated = Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`p${at}`, { type: types, items: { $ref: "#" } }]),
  );
  assert(toTypeText({ type: Array(10_000).fill("object"), properties: repeated }).length <= 4000);
  assert(performance.now() - since < 1000);
});

Deno.test("no text of a schema becomes code", () => {
  const odd = ["*/ alert() /*", '"; alert(); "', "a\u2028b", "`${alert()}`", "__proto__", "constructor"];
  const properties = Object.fromEntries(odd.map((name) => [name, { enum: odd, description: name }]));
  const text = toTypeText(JSON.parse(JSON.stringify({ type: "object", properties })));
  assert(!/\*\/[^;]*\*\//.test(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")), text);
  assert(!/[\u2028\n]/.test(text));
});

const search = async (handlers: Parameters<typeof createServer>[0]["handlers"], query: string) => {
  const server = createServer({ name: "s", version: "1.0.0", handlers });
  await using client = await connectTest(server, { transport: "memory" });
  const text = textOf(await client.callTool("search_api", { query }));
  await server.close();
  return text;
};

Deno.test("search_api stays within its tokens, and names the tools that have no room", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`argument_${at}`, { type: "string", description: "x".repeat(100) }]),
  );
  const tools = Array.from(
    { length: 20 },
    (_, at) =>
      tool({
        name: `make_report_${at}`,
        description: "Makes a report",
        input: { type: "object", properties },
        run: () => "",
      }),
  );
  const text = await search([...tools, codeMode()], "make a report");
  assert(text.length <= 4 * 2000, `${text.length}`);
  assert(text.startsWith("//") && text.includes("declare const tools: {"));
  assertEquals([...text.matchAll(/make_report_\d+/g)].length, 8);
});

Deno.test("a documented result of another API is a marked hint", async () => {
  const document = {
    openapi: "3.1.0",
    info: { title: "Pets", version: "1.0.0" },
    paths: {
      "/pets/{id}": {
        get: {
          operationId: "getPet",
          summary: "Returns a pet",
          parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
          responses: { 200: { content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } } } },
        },
      },
    },
    components: { schemas: { Pet: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } } },
  };
  const pets = openapi(document, { baseUrl: "https://pets.example.com" });
  const text = await search([pets, codeMode()], "get a pet");
  assert(text.includes("Promise<unknown /* documented, not checked: { name: string } */>"), text);
});
