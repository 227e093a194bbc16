// Input schemas as users write them: shapes, dates, several libraries, raw schemas with defaults, and arguments as JSON
// text.
import { type } from "arktype";
import * as v from "valibot";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod/v3";
import { createServer, McpError, prompt, tool, withJsonSchema } from "../../mod.ts";
import type { JsonSchema, Schema } from "../../src/core/schema/schema.ts";
import { connect } from "../../src/client/client.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "../support/std.ts";
import { startCost } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { testClient, testServer } from "../support/test_server.ts";

interface Given {
  readonly lenientArguments?: boolean;
  readonly server?: boolean;
}

/** Returns the input that a tool gets for the arguments, or the error. */
async function give(input: Schema, args: unknown, { lenientArguments, server: all }: Given = {}): Promise<unknown> {
  let got: unknown;
  const server = testServer({
    lenientArguments: all,
    handlers: [tool({ name: "x", input, lenientArguments, run: (args: unknown) => void (got = args) })],
  });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const result = await client.request("tools/call", { name: "x", arguments: args });
  await server.close();
  return result.isError ? Object(result.content)[0].text : got;
}

async function show(input: Schema): Promise<Record<string, unknown>> {
  const server = testServer({ handlers: [tool({ name: "x", input, run: () => "" })] });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const { tools } = await client.request("tools/list", {});
  await server.close();
  return Object(tools)[0].inputSchema;
}

const day = new Date("2026-01-02T03:04:05Z");
const iso = "2026-01-02T03:04:05Z";

/** References of many spellings, each with the name of the definition to which it leads. */
const SPELLINGS: readonly (readonly [ref: string, name: string])[] = [
  ["#/$defs/plain", "plain"],
  ["#/$defs/a~1b", "a/b"],
  ["#/$defs/a%2Fb", "a/b"],
  ["#/$defs/a~0b", "a~b"],
  ["#/$defs/a%20b", "a b"],
  ["#/$defs/100%", "100%"],
  ["#/$defs/__proto__", "__proto__"],
  ["#marked", "marked"],
];

for (const [ref, name] of SPELLINGS) {
  Deno.test(`input: the reference ${ref} leads to its definition, for checks and for defaults`, async () => {
    const part = { type: "object", properties: { n: { type: "number", default: 5 } } };
    const { $defs } = JSON.parse(
      JSON.stringify({ $defs: { name: { $anchor: "marked", ...part } } })
        .replace('"name"', JSON.stringify(name)),
    );
    const schema: JsonSchema = { type: "object", properties: { a: { $ref: ref } }, $defs };
    assertEquals(await give(schema, { a: {} }), { a: { n: 5 } });
    assertEquals(await give(schema, { a: { n: "x" } }), sentence("a.n"));
  });
}

Deno.test("input: a shape is an object of schemas from one or several libraries", async () => {
  const shape = {
    a: z.string().describe("A"),
    n: z.coerce.number().default(5),
    list: type("string[]"),
    "b/~ c": toStandardJsonSchema(v.optional(v.boolean())),
  };
  assertEquals(await show(shape), {
    type: "object",
    properties: {
      a: { type: "string", description: "A" },
      n: { type: "number", default: 5 },
      list: { type: "array", items: { type: "string" } },
      "b/~ c": { type: "boolean" },
    },
    required: ["a", "list"],
  });
  assertEquals(await give(shape, { a: "x", n: "7", list: [], more: 1 }), { a: "x", n: 7, list: [] });
  assertEquals(await give(shape, { a: "x", list: ["y"], "b/~ c": true }), { a: "x", n: 5, list: ["y"], "b/~ c": true });
  const text = String(await give(shape, { a: 1, list: [2] }));
  assertEquals(text, sentence("x: a: ", "; list[0]"));
  assertStringIncludes(String(await give({ toString: z.string() }, {})), "toString: ");
});

Deno.test("input: an empty shape accepts any object, and asynchronous parts of a shape are awaited", async () => {
  assertEquals(await give({}, { a: 1 }), {});
  const late = z.string().refine(async (text) => await Promise.resolve(text !== "no"));
  assertEquals(await give({ a: late, b: z.number() }, { a: "yes", b: 1 }), { a: "yes", b: 1 });
  assertStringIncludes(String(await give({ a: late, b: z.number() }, { a: "no", b: "x" })), "a: ");
});

Deno.test("input: a reference in a part of a shape resolves within that part", async () => {
  const tree = z.object({
    name: z.string(),
    get children() {
      return z.array(tree);
    },
  });
  const shown = await show({ "a b": tree, other: z.string() });
  const value = { "a b": { name: "x", children: [{ name: "y", children: [] }] }, other: "z" };
  assertEquals(await give(shown, value), value);
  assertStringIncludes(
    String(await give(shown, { ...value, "a b": { name: "x", children: [{}] } })),
    "a b.children[0]",
  );
});

Deno.test("input: a part of a shape that has no JSON Schema is refused with the remedy", () => {
  const run = () => "";
  for (const part of [mini.string(), z3.string(), v.string(), z.date(), z.map(z.string(), z.number())]) {
    const make = () => tool({ name: "x", input: { a: part }, run });
    assertThrows(make, TypeError, sentence('tool "x"', " a ", "withJsonSchema("));
  }
});

Deno.test("zod: the error names the field that has no JSON Schema, at any depth", () => {
  const tree: z.ZodType = z.object({
    name: z.string(),
    get children() {
      return z.array(tree);
    },
    at: z.date(),
  });
  const cases: readonly (readonly [z.ZodType, string])[] = [
    [z.object({ name: z.string(), day: z.date() }), "day"],
    [z.object({ trip: z.object({ from: z.string(), days: z.array(z.date()) }) }), "trip.days"],
    [z.object({ a: z.object({ b: z.date().optional() }).nullable().default(null) }), "a.b"],
    [z.object({ either: z.union([z.string(), z.object({ n: z.bigint() })]) }), "either.n"],
    [z.object({ pair: z.tuple([z.string(), z.symbol()]) }), "pair"],
    [z.object({ by: z.record(z.string(), z.object({ at: z.date() })) }), "by.at"],
    [
      z.object({ both: z.intersection(z.object({ x: z.string() }), z.object({ y: z.map(z.string(), z.string()) })) }),
      "both.y",
    ],
    [z.object({ root: tree }), "root.at"],
  ];
  for (const [schema, field] of cases) {
    for (const use of ["input", "output"] as const) {
      const make = () => tool({ name: "x", [use]: schema, run: (): never => fail() });
      assertThrows(make, TypeError, sentence(use, 'tool "x"', ` ${field} `));
    }
  }
});

Deno.test("output: a schema that cannot be converted to JSON Schema is refused with the remedy before the tools are listed", () => {
  const outputs = [
    [z.object({ d: z.date() }), " d "],
    [z.object({ n: z.bigint() }), " n "],
    [z.string().transform((text) => text.length)],
  ] as const;
  for (const [output, ...names] of outputs) {
    const make = () => tool({ name: "x", output, run: (): never => fail() });
    assertThrows(make, TypeError, sentence('tool "x"', ...names, "withJsonSchema("));
  }
});

function fail(): never {
  throw new Error("not to be called");
}

Deno.test("input: a prompt can have a shape", async () => {
  const hello = prompt({
    name: "hello",
    input: { name: z.string(), tone: z.string().optional() },
    complete: { tone: () => ["loud"] },
    run: ({ name, tone }) => `${name} ${tone?.length}`,
  });
  await using client = await testClient({ handlers: [hello] }, { era: "modern", transport: "memory" });
  const { prompts } = await client.request("prompts/list", {});
  assertEquals(Object(prompts)[0].arguments, [{ name: "name", required: true }, { name: "tone" }]);
  const { messages } = await client.request("prompts/get", { name: "hello", arguments: { name: "Ada" } });
  assertEquals(Object(messages)[0].content.text, "Ada undefined");
});

const DAY = {
  type: "object",
  properties: { at: { type: "string", format: "date-time" }, tags: { type: "array", items: { type: "string" } } },
  required: ["at"],
};

/** For each library, a schema that converts a text to a date, and an array to a set. */
const PAIRED: Readonly<Record<string, Schema>> = {
  zod: withJsonSchema(
    z.object({ at: z.coerce.date(), tags: z.array(z.string()).transform((list) => new Set(list)).optional() }),
    DAY,
  ),
  "zod/mini": withJsonSchema(
    mini.object({
      at: mini.coerce.date(),
      tags: mini.optional(mini.pipe(mini.array(mini.string()), mini.transform((list) => new Set(list)))),
    }),
    DAY,
  ),
  "zod 3": withJsonSchema(
    z3.object({ at: z3.coerce.date(), tags: z3.array(z3.string()).transform((list) => new Set(list)).optional() }),
    DAY,
  ),
  valibot: withJsonSchema(
    v.object({
      at: v.pipe(v.string(), v.transform((text) => new Date(text)), v.date()),
      tags: v.optional(v.pipe(v.array(v.string()), v.transform((list) => new Set(list)))),
    }),
    DAY,
  ),
};

for (const [name, schema] of Object.entries(PAIRED)) {
  Deno.test(`input: withJsonSchema lists the given JSON Schema, and validates with the schema of ${name}`, async () => {
    assertEquals(await show(schema), DAY);
    assertEquals(await give(schema, { at: iso, tags: ["a", "a"] }), { at: day, tags: new Set(["a"]) });
    assertStringIncludes(String(await give(schema, { at: "tomorrow" })), "at: ");
    assertStringIncludes(String(await give(schema, {})), "at: ");
  });
}

Deno.test("input: withJsonSchema accepts the JSON Schema of the library's own converter", async () => {
  const small = mini.object({ n: mini.int().check(mini.minimum(1)), d: mini._default(mini.string(), "z") });
  const given = z.toJSONSchema(small, { io: "input" });
  assertEquals(await show(withJsonSchema(small, given)), {
    type: "object",
    properties: { n: { type: "integer", minimum: 1, maximum: 9007199254740991 }, d: { default: "z", type: "string" } },
    required: ["n"],
  });
  const odd = z.object({ at: z.date(), n: z.bigint() });
  const shown = await show(withJsonSchema(odd, z.toJSONSchema(odd, { unrepresentable: "any" })));
  assertEquals(Object(shown).required, ["at", "n"]);
});

Deno.test("withJsonSchema refuses what is not a Standard Schema, and what is not a JSON Schema", () => {
  const wrong: readonly (readonly [unknown, unknown])[] = [
    [undefined, DAY],
    [{ at: z.date() }, DAY],
    [DAY, DAY],
    [z.string(), undefined],
    [z.string(), true],
    [z.string(), Promise.resolve(DAY)],
  ];
  for (const [schema, json] of wrong) {
    // The casts are for values that the types reject.
    assertThrows(() => withJsonSchema(schema as z.ZodString, json as typeof DAY), TypeError, sentence());
  }
});

behaviour(
  "output: withJsonSchema lists the given JSON Schema, and dates and sets are sent as JSON",
  async (connect) => {
    const output = withJsonSchema(z.object({ at: z.date(), tags: z.set(z.string()).optional() }), DAY);
    const parts = tool({ name: "parts", output, run: () => ({ at: day, tags: new Set(["a"]) }) });
    const { client } = await connect({ handlers: [parts] });
    // After listing the tools, the client validates results with the listed schemas.
    const [{ outputSchema }] = await client.listTools();
    assertEquals(outputSchema, DAY);
    const { structuredContent } = await client.callTool("parts");
    assertEquals(structuredContent, { at: day.toISOString(), tags: ["a"] });
  },
);

Deno.test("arktype: a date, a bigint, a set or a map is refused with a remedy, instead of being listed as {}", () => {
  const odd = { Date: "date", "Date > d'2020-01-01'": "date", bigint: "bigint", Set: "Set", Map: "Map" } as const;
  for (const [text, name] of Object.entries(odd)) {
    const schema = type({ "a?": text as "Date" }); // This type includes one of the refused types.
    for (const use of ["input", "output"] as const) {
      const make = () => tool({ name: "t", [use]: schema, run: () => ({}) });
      assertThrows(make, TypeError, sentence(use, 'tool "t"', name, "withJsonSchema("));
    }
  }
  // A predicate and an optional property can be expressed in JSON Schema.
  const fine = type({ "a?": "string | undefined", n: type("number").narrow((n) => n % 2 === 0) });
  tool({ name: "t", input: fine, run: () => "" });
});

const raw = {
  type: "object",
  properties: {
    a: { type: "number", default: 5 },
    list: { type: "array", items: { type: "object", properties: { b: { default: { c: [] } } } } },
    deep: { $ref: "#/$defs/deep" },
    named: { default: "x" },
  },
  required: ["a"],
  allOf: [{ properties: { all: { default: true } } }],
  anyOf: [{ properties: { any: { default: 1 } } }, {}],
  $defs: { deep: { type: "object", properties: { d: { type: "string", default: "e" } } } },
} as const;

Deno.test("input: the defaults in raw JSON Schema are applied to missing properties before the validation", async () => {
  assertEquals(await give(raw, {}), { all: true, a: 5, named: "x" });
  const given = { a: 0, list: [{}, { b: null }], deep: {}, named: "", all: false };
  const made = { ...given, list: [{ b: { c: [] } }, { b: null }], deep: { d: "e" } };
  assertEquals(await give(raw, given), made);
  assertEquals(await give(raw, { a: "x" }), sentence("x: a: ", "number"));
  const [one, two] = [Object(await give(raw, { list: [{}] })), Object(await give(raw, { list: [{}] }))];
  one.list[0].b.c.push(1);
  assertEquals(two.list[0].b.c, [], "calls share a default value");
  assertEquals(await give(raw, { list: Array(20_000).fill({}) }), sentence("x: ", 10_000));
  const looping = { type: "object", properties: { next: { $ref: "#", default: {} } } };
  assertEquals(await give(looping, {}), { next: {} });
});

const typed = { type: "object", properties: { n: { type: "number" }, s: { type: "string" } } } as const;
const LENIENT: readonly (readonly [name: string, schema: Schema, args: unknown, made: unknown])[] = [
  ["a number", typed, { n: "5" }, { n: 5 }],
  ["a number with spaces", typed, { n: " -1.5e2 " }, { n: -150 }],
  ["a text where a text is expected", typed, { s: "5" }, { s: "5" }],
  ["an object in zod", z.object({ o: z.object({ a: z.array(z.number()) }) }), { o: '{"a":"[1,\\"2\\"]"}' }, {
    o: { a: [1, 2] },
  }],
  ["a boolean", z.object({ b: z.boolean().optional(), c: z.boolean() }), { b: "true", c: "false" }, {
    b: true,
    c: false,
  }],
  ["null", z.object({ n: z.number().nullable() }), { n: "null" }, { n: null }],
  ["a union with text", z.object({ u: z.union([z.string(), z.number()]) }), { u: "5" }, { u: "5" }],
  ["a union without text", z.object({ u: z.union([z.number(), z.array(z.boolean())]) }), { u: '["true"]' }, {
    u: [true],
  }],
  ["an enum of numbers", { type: "object", properties: { e: { enum: [1, 2] } } }, { e: "2" }, { e: 2 }],
  ["an enum with texts", { type: "object", properties: { e: { enum: ["1", 2] } } }, { e: "1" }, { e: "1" }],
  ["anything", z.object({ x: z.unknown() }), { x: "[1]" }, { x: "[1]" }],
  ["a shape", { a: z.array(z.string()), b: z.number() }, { a: '["1"]', b: "2" }, { a: ["1"], b: 2 }],
  ["null for an optional property", typed, { n: null, s: "x" }, { s: "x" }],
  ["null for an optional property in zod", z.object({ n: z.number().optional(), d: z.string().default("d") }), {
    n: null,
    d: null,
  }, { d: "d" }],
  ["null in nested objects and lists", z.object({ list: z.array(z.object({ n: z.number().optional() })) }), {
    list: [{ n: null }, '{"n": null}', { n: 1 }],
  }, { list: [{}, {}, { n: 1 }] }],
  ["null where null is a value", z.object({ n: z.number().nullish(), u: z.unknown() }), { n: null, u: null }, {
    n: null,
    u: null,
  }],
];
Deno.test("input: lenient arguments keep null for a required property, and for a property without a schema", async () => {
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  assertEquals(await give(schema, { n: null }, { lenientArguments: true }), sentence("n: ", "null"));
  assertEquals(await give(schema, { n: 1, more: null }, { lenientArguments: true }), { n: 1, more: null });
});

Deno.test("input: an integer that has lost digits is refused with its name", async () => {
  const schema = { type: "object", properties: { id: { type: "integer" }, list: { items: { type: "integer" } } } };
  assertEquals(await give(schema, { id: 9007199254740993 }), sentence("id: ", "9007199254740991"));
  assertEquals(await give(schema, { list: [1, -1e300] }), sentence("list[1]: ", "9007199254740991"));
  assertEquals(await give(schema, { id: 9007199254740991 }), { id: 9007199254740991 });
});

for (const [name, schema, args, made] of LENIENT) {
  Deno.test(`input: lenient arguments accept ${name}`, async () => {
    assertEquals(await give(schema, args, { lenientArguments: true }), made);
    assertEquals(await give(schema, args, { server: true }), made);
    if (JSON.stringify(args) !== JSON.stringify(made)) {
      assert(typeof await give(schema, args) === "string", "the input was accepted without the option");
      assert(typeof await give(schema, args, { server: true, lenientArguments: false }) === "string");
    }
  });
}

Deno.test("input: lenient arguments refuse text that is invalid JSON, has another type, is inexact or is too large", async () => {
  const array = z.object({
    a: z.array(z.unknown()).optional(),
    n: z.number().optional(),
    o: z.looseObject({}).optional(),
  });
  const wrong = [
    { a: "x" },
    { a: '{"a":1}' },
    { a: "" },
    { n: "12345678901234567890" },
    { n: "1e999" },
    { n: "0x10" },
    { o: "[1]" },
    { a: "[".repeat(200) + "]".repeat(200) },
    { a: `[${"1,".repeat(250_000)}1]` },
    { a: "[".repeat(500_000) },
  ];
  for (const args of wrong) {
    const cost = startCost();
    const text = await give(array, args, { lenientArguments: true });
    assertEquals(text, sentence("x: "), JSON.stringify(args).slice(0, 80));
    assert(cost() < 2000);
  }
});

Deno.test("input: TypeScript types follow shapes, literals and ready-made options", () => {
  const made = [
    tool({ name: "a", input: { a: z.string(), b: z.number().optional() }, run: ({ a, b }) => a.length + (b ?? 0) }),
    // @ts-expect-error: a is a string
    tool({ name: "b", input: { a: z.string() }, run: ({ a }) => a.toFixed() }),
    tool({ name: "c", input: raw, run: ({ a, list }) => a.toFixed() + (list?.length ?? 0) }),
    tool({
      name: "d",
      input: {
        type: "object",
        properties: {
          e: { enum: ["x", "y"] },
          n: { type: ["number", "null"] },
          l: { type: "array", items: { const: 1 } },
        },
        required: ["e", "n", "l"],
      },
      run({ e, n, l }) {
        const [one]: 1[] = l;
        const exact: "x" | "y" = e;
        const maybe: number | null = n;
        return [exact, maybe, one];
      },
    }),
    // @ts-expect-error: there is no such property
    tool({ name: "e", input: { type: "object", properties: { a: { type: "string" } } }, run: ({ b }) => b }),
    tool({ name: "f", input: withJsonSchema(z.object({ at: z.date() }), DAY), run: ({ at }) => at.getTime() }),
    tool({ name: "g", input: withJsonSchema(z3.object({ at: z3.date() }), DAY), run: ({ at }) => at.getTime() }),
    tool({ name: "h", input: withJsonSchema(mini.object({ at: mini.date() }), DAY), run: ({ at }) => at.getTime() }),
    tool({ name: "i", input: { type: "object" } as Record<string, unknown>, run: (args) => String(args.anything) }),
    tool({ name: "j", input: {}, run: () => 1 }),
  ];
  assertEquals(made.length, 10);
});

behaviour("output: a shape is listed, validated and converted like an object schema", async (connect) => {
  const output = {
    at: withJsonSchema(z.date(), { type: "string" }),
    n: z.number().default(3),
    tags: type("string[]"),
    note: z.string().optional(),
  };
  const results: Record<string, unknown> = {
    whole: { at: day, n: 1, tags: ["x"], note: "y", other: true },
    least: { at: day, tags: [] },
    full: { content: [], structuredContent: { at: day, n: 2, tags: [] } },
    wrong: { at: "soon", n: "many" },
  };
  const show = tool({
    name: "show",
    input: { key: z.string() },
    output,
    run: ({ key }) => results[key] as never,
  });
  const { client, takeFaults } = await connect({ handlers: [show] });
  const [{ outputSchema }] = await client.listTools();
  const { properties, required, ...rest } = Object(outputSchema);
  assertEquals(rest, { type: "object" });
  assertEquals([Object.keys(properties), required], [["at", "n", "tags", "note"], ["at", "n", "tags"]]);
  const call = async (key: string) => (await client.callTool("show", { key })).structuredContent;
  const shown = day.toISOString();
  assertEquals(await call("whole"), { at: shown, n: 1, tags: ["x"], note: "y" });
  assertEquals(await call("least"), { at: shown, n: 3, tags: [] });
  assertEquals(await call("full"), { at: shown, n: 2, tags: [] });
  await assertRejects(() => call("wrong"), McpError);
  const [{ error }] = takeFaults();
  assertStringIncludes(String(error), "at: ");
  assertStringIncludes(String(error), "; n: ");
});

behaviour("output: the structured content of a full result matches the listed schema", async (connect) => {
  // By zod's own JSON Schema, n is always present and no other property is allowed. If the schema were listed without
  // changes, the client would reject both results.
  const output = z.object({ n: z.number().default(3) });
  const rows: Record<string, Record<string, unknown>> = { missing: {}, more: { n: 1, password: "x" } };
  const row = tool({
    name: "row",
    input: { key: z.string() },
    output,
    run: ({ key }) => ({ content: [{ type: "text", text: key }], structuredContent: rows[key], _meta: { "a/b": 1 } }),
  });
  const { client } = await connect({ handlers: [row] });
  const [{ outputSchema }] = await client.listTools();
  assertEquals(outputSchema, {
    type: "object",
    properties: { n: { default: 3, type: "number" } },
    required: ["n"],
    additionalProperties: false,
  });
  for (const [key, expected] of [["missing", { n: 3 }], ["more", { n: 1 }]] as const) {
    const { content, structuredContent, _meta } = await client.callTool("row", { key });
    assertEquals([content, structuredContent], [[{ type: "text", text: key }], expected]);
    assertEquals(_meta?.["a/b"], 1);
  }
});

Deno.test("output: a shape determines the types of run and of a typed client", async () => {
  const half = tool({
    name: "half",
    input: { n: z.number() },
    output: { n: z.number() },
    run: ({ n }) => ({ n: n / 2 }),
  });
  const server = closeAtEnd(createServer({ name: "t", version: "1", handlers: [half] }));
  await using client = await connect<typeof server>(server);
  const { structuredContent } = await client.callTool("half", { n: 4 });
  const n: number | undefined = structuredContent?.n;
  assertEquals(n, 2);
  // @ts-expect-error: n is a number
  structuredContent?.n satisfies string | undefined;
  const input = { text: z.string() };
  const output = z.object({ n: z.number() });
  // Literal types such as "text" are kept in content blocks.
  const full = [
    tool({ name: "a", output, run: () => ({ content: [{ type: "text", text: "" }], structuredContent: { n: 1 } }) }),
    tool({ name: "b", input, output, run: ({ text }) => ({ content: [{ type: "text", text }], isError: true }) }),
    tool({
      name: "c",
      input,
      output,
      run: async ({ text }) => await Promise.resolve({ content: [{ type: "text", text }] }),
    }),
    // @ts-expect-error: there is no such content
    tool({ name: "d", output, run: () => ({ content: [{ type: "txt", text: "" }] }) }),
    // @ts-expect-error: n is a number
    tool({ name: "e", output, run: () => ({ n: "1" }) }),
  ];
  assertEquals(full.length, 5);
  const made = [
    tool({ name: "a", output: { n: z.number(), note: z.string().optional() }, run: () => ({ n: 1 }) }),
    tool({ name: "b", output: { n: z.number() }, run: () => ({ content: [], isError: true }) }),
    // @ts-expect-error: n is a number
    tool({ name: "c", output: { n: z.number() }, run: () => ({ n: "1" }) }),
    // @ts-expect-error: n is missing
    tool({ name: "d", output: { n: z.number() }, run: () => ({}) }),
  ];
  assertEquals(made.length, 4);
});

Deno.test("an object in which only some properties are schemas is refused with a remedy", () => {
  for (const use of ["input", "output"]) {
    const make = () => tool({ name: "x", [use]: { a: z.string(), b: 1 }, run: () => ({}) });
    assertThrows(make, TypeError, sentence(use, 'tool "x"'));
  }
});
