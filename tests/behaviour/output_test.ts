// Results of tools with an output schema: structured content is any JSON value, where the revision allows it.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, resource, tool } from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { behaviour, LEGACY_VERSIONS, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const found = z.object({ id: z.number() }).nullable();

/** Values, each with the output schema of its tool. */
const VALUES: Readonly<Record<string, readonly [output: z.ZodType, value: unknown]>> = {
  number: [z.number(), 0],
  fraction: [z.number(), -0.5],
  text: [z.string(), "a\nb"],
  empty: [z.string(), ""],
  boolean: [z.boolean(), false],
  null: [z.null(), null],
  missing: [found, null],
  found: [found, { id: 1 }],
  list: [z.array(z.string()), ["a", "b"]],
  choice: [z.enum(["a", "b"]), "b"],
  union: [z.union([z.number(), z.string()]), 7],
};

behaviour("structured content is any JSON value that matches the output schema", async (connect, { era }) => {
  const handlers = (["full", "summary", "none"] as const).flatMap((text) =>
    Object.entries(VALUES).flatMap(([name, [output, value]]) => [
      tool({ name: `${name}-${text}`, output, text, run: () => value as never }),
      tool({ name: `${name}-${text}-late`, output, text, run: () => Promise.resolve(value) as never }),
      tool({
        name: `${name}-${text}-guarded`,
        output,
        text,
        use: [guard({ output: [() => {}] })],
        run: () => value as never,
      }),
      tool({ name: `${name}-${text}-own`, output, text, run: () => ({ content: [], structuredContent: value }) }),
    ])
  );
  const { client } = await connect({ handlers });
  const listed = new Map((await client.listTools()).map(({ name, outputSchema }) => [name, outputSchema]));
  for (const { name } of await client.listTools()) {
    const [key, text, kind] = name.split("-");
    const [, value] = VALUES[key];
    const { content, structuredContent } = await client.callTool(name);
    const isSent = era === "modern" || typeof value === "object" && value !== null && !Array.isArray(value);
    assertEquals(structuredContent, isSent ? value : undefined, name);
    assertEquals(listed.get(name) !== undefined, era === "modern", name);
    // Older revisions get the JSON as text instead.
    const copies = isSent && (text === "none" || kind === "own") ? 0 : 1;
    assertEquals(content.length, copies, name);
    if (copies && (!isSent || text === "full")) assertEquals(textOf({ content }), JSON.stringify(value), name);
  }
}, { versions: LEGACY_VERSIONS.slice(0, 2) });

behaviour(
  "a tool with an output schema that returns nothing sends null if the schema accepts null",
  async (connect) => {
    const handlers = [
      tool({ name: "any", output: z.unknown(), run: () => undefined }),
      tool({ name: "nullish", output: z.string().nullish(), run: () => undefined }),
      tool({ name: "default", output: z.string().default("x"), run: () => undefined }),
      tool({ name: "optional", output: z.string().optional(), run: () => undefined }),
    ];
    const { client, takeFaults } = await connect({ handlers });
    await client.listTools();
    const results = ["any", "nullish", "default"].map(async (name) => textOf(await client.callTool(name)));
    assertEquals(await Promise.all(results), ["null", "null", '"x"']);
    await assertRejects(() => client.callTool("optional"));
    assertEquals(takeFaults().map(({ error }) => String(error)), [sentence('tool "optional"', "output schema")]);
  },
);

behaviour(
  "a value that matches the output schema is structured content, even if it looks like a result",
  async (connect) => {
    const page = z.object({ content: z.array(z.unknown()), next: z.string().optional() });
    const text = { type: "text", text: "x" };
    const link = { type: "resource_link", uri: "a://a", name: "a" };
    const values: readonly unknown[] = [{ content: [] }, { content: [text] }, { content: [text, link], next: "2" }];
    const handlers = values.flatMap((value, at) => [
      tool({ name: `t${at}`, output: page, run: () => value as never }),
      tool({ name: `g${at}`, output: page, use: [guard({ output: [() => {}] })], run: () => value as never }),
      tool({ name: `own${at}`, output: page, run: () => ({ content: [], structuredContent: value }) }),
      tool({ name: `map${at}`, output: page, run: () => new Map(Object.entries(value as object)) as never }),
    ]);
    const failing = tool({
      name: "failing",
      output: page,
      run: () => ({ content: [{ type: "text", text: "no" }], isError: true }) as const,
    });
    const wrong = tool({ name: "wrong", output: z.object({ sum: z.number() }), run: () => ({ content: [] }) as never });
    const { client, takeFaults } = await connect({ handlers: [...handlers, failing, wrong] });
    for (const [at, value] of values.entries()) {
      for (const name of [`t${at}`, `g${at}`, `own${at}`]) {
        assertEquals((await client.callTool(name)).structuredContent, value, name);
      }
    }
    const { content, structuredContent, isError } = await client.callTool("failing");
    assertEquals([content, structuredContent, isError], [[{ type: "text", text: "no" }], undefined, true]);
    await assertRejects(() => client.callTool("wrong"));
    assertEquals(takeFaults().map(({ error }) => String(error)), [sentence('tool "wrong"', "sum")]);
  },
);

behaviour("a foreign result without structured content stays as it is", async (connect) => {
  const listed = { name: "far", inputSchema: { type: "object" }, outputSchema: { type: "object" } };
  const content = [{ type: "text" as const, text: "x" }];
  const far = tool.from(listed, () => ({ content, isError: true }));
  const late = tool.from(
    { ...listed, name: "late" },
    () => Promise.resolve({ content, structuredContent: { content } }),
  );
  const { client } = await connect({ handlers: [far, late] });
  const failed = await client.callTool("far");
  assertEquals([failed.content, failed.structuredContent, failed.isError], [content, undefined, true]);
  assertEquals((await client.callTool("late")).structuredContent, { content });
});

behaviour("a tool of another server is listed with the schemas of the other server", async (connect) => {
  const inputSchema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { at: { $ref: "#/definitions/point" }, to: { $ref: "#/properties/at" } },
    definitions: { point: { type: "array", items: [{ type: "number" }, { type: "number" }], additionalItems: false } },
  };
  const outputSchema = { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" };
  const far = tool.from({ name: "far", inputSchema, outputSchema }, () => "x");
  const { client } = await connect({ handlers: [far] });
  assertEquals(await client.listTools(), [{ name: "far", inputSchema, outputSchema }]);
});

behaviour("media replace structured content, unless the tool has an output schema", async (connect, { era }) => {
  const chart = () => new Blob(["x"], { type: "image/png" });
  const output = z.object({ day: z.number(), chart: z.any() });
  const handlers = (["full", "summary", "none"] as const).flatMap((text) => [
    tool({ name: `plain-${text}`, text, run: () => ({ day: 1, chart: chart() }) }),
    tool({ name: `nested-${text}`, text, run: () => [{ day: 1, chart: { small: chart(), large: chart() } }] }),
    tool({
      name: `guarded-${text}`,
      text,
      use: [guard({ output: [() => {}] })],
      run: () => ({ day: 1, chart: chart() }),
    }),
    tool({ name: `typed-${text}`, text, output, run: () => ({ day: 1, chart: chart() }) }),
    tool({
      name: `both-${text}`,
      text,
      output,
      use: [guard({ output: [() => {}] })],
      run: () => ({ day: 1, chart: chart() }),
    }),
  ]);
  const { client } = await connect({ handlers });
  const json = '{"day":1,"chart":"result:chart"}';
  const nested = '[{"day":1,"chart":{"small":"result:%5B0%5D.chart.small","large":"result:%5B0%5D.chart.large"}}]';
  for (const { name } of await client.listTools()) {
    const [kind, text] = name.split("-");
    const { content, structuredContent } = await client.callTool(name);
    const types = content.map(({ type }) => type);
    if (kind === "plain" || kind === "guarded") {
      assertEquals([types, textOf({ content }), structuredContent], [["text", "image"], json, undefined], name);
    } else if (kind === "nested") {
      assertEquals([types, textOf({ content })], [["text", "image", "image"], nested], name);
      assertEquals(structuredContent, undefined, name);
    } else {
      assertEquals(structuredContent, JSON.parse(json), `${name} ${era}`);
      assertEquals(types, text === "none" ? ["image"] : ["text", "image"], name);
    }
  }
});

behaviour(
  "the text copy of a long value has one element per line, and equals the structured content",
  async (connect) => {
    const row = (id: number) => ({ id, name: `row ${id}`, tags: ["a", undefined, null], none: undefined });
    const rows = Array.from({ length: 500 }, (_, id) => row(id));
    const wide = { title: "x", rows, nested: { rows, note: "y".repeat(3000) }, at: new Date(0), none: undefined };
    const deep = [[[[[[rows]]]]]];
    const values: Record<string, unknown> = {
      rows,
      wide,
      deep,
      map: new Map([["rows", rows]]),
      text: "z".repeat(20_000),
    };
    const handlers = Object.entries(values).flatMap(([name, value]) => [
      tool({ name, run: () => value as string }),
      tool({ name: `${name}-guarded`, use: [guard({ output: [() => {}] })], run: () => value as string }),
    ]);
    const { client } = await connect({ handlers });
    for (const { name } of await client.listTools()) {
      const [key] = name.split("-");
      const text = textOf(await client.callTool(name));
      if (key === "text") assertEquals(text, values.text);
      else assertEquals(JSON.parse(text), JSON.parse(JSON.stringify(key === "map" ? { rows } : values[key])), name);
      const lines = text.split("\n");
      const expected: Readonly<Record<string, number>> = { rows: 502, wide: 1011, deep: 9, map: 504, text: 1 };
      assertEquals(lines.length, expected[key], name);
    }
    assertEquals(
      textOf(await client.callTool("rows")).split("\n")[7],
      '{"id":6,"name":"row 6","tags":["a",null,null]},',
    );
  },
);

behaviour("the text of a resource has the media type of its blob or response", async (connect) => {
  const reads: Readonly<Record<string, () => Blob | Response>> = {
    csv: () => new Blob(["a,b"], { type: "text/csv" }),
    plain: () => new Blob(["a,b"], { type: "text/plain" }),
    html: () => new Response("a,b", { headers: { "content-type": "text/html; charset=utf-8; version=5" } }),
    text: () => new Response("a,b"),
  };
  const handlers = Object.entries(reads).flatMap(([name, read]) => [
    resource({ uri: `own://${name}`, name, read }),
    resource({ uri: `guarded://${name}`, name, use: [guard({ output: [() => {}] })], read }),
    resource({ uri: `declared://${name}`, name, mimeType: "text/x-own", read }),
    resource({
      uri: `both://${name}`,
      name,
      mimeType: "text/x-own",
      use: [guard({ output: [() => {}] })],
      read,
    }),
  ]);
  const types = { csv: "text/csv", plain: "text/plain", html: "text/html; version=5", text: "text/plain" };
  const { client } = await connect({ handlers });
  for (const [name, type] of Object.entries(types)) {
    for (const scheme of ["own", "guarded", "declared", "both"]) {
      const uri = `${scheme}://${name}`;
      const mimeType = ["own", "guarded"].includes(scheme) ? type : "text/x-own";
      assertEquals((await client.readResource(uri)).contents, [{ uri, mimeType, text: "a,b" }]);
    }
  }
});

// The text copy of structured content: the full JSON, a summary, or no copy.

const report = { total: 12, items: ["tea", "milk"], note: "cold", by: { name: "Ada" }, none: null, ok: true };
const versions = LEGACY_VERSIONS;
const kinds = ["full", "summary", "none"] as const;

behaviour("the text copy is the full JSON, a summary, or absent", async (connect, { version }) => {
  const make = (text: typeof kinds[number] | undefined) => [
    tool({ name: `${text}`, text, run: () => report }),
    tool({ name: `${text} typed`.replace(" ", "-"), text, output: z.object({ total: z.number() }), run: () => report }),
    tool({ name: `${text}-map`, text, run: () => new Map(Object.entries(report)) }),
    tool({ name: `${text}-media`, text, run: () => ({ a: 1, chart: new Blob(["x"], { type: "image/png" }) }) }),
    tool({ name: `${text}-guarded`, text, use: [guard({ output: [() => undefined] })], run: () => report }),
  ];
  const { client } = await connect({ handlers: [...kinds, undefined].flatMap(make), text: "none" });
  const hasStructure = version >= "2025-06-18";
  const whole = JSON.stringify(report);
  const summary = sentence(...Object.keys(report));
  const expected: Record<string, readonly string[]> = { full: [whole], summary: [summary], none: [], undefined: [] };
  for (const [kind, texts] of Object.entries(expected)) {
    for (const name of [kind, `${kind}-map`, `${kind}-guarded`]) {
      const { content, structuredContent } = await client.callTool(name);
      const got = content.flatMap((block) => block.type === "text" ? block.text : []);
      assertEquals(got, hasStructure ? texts : [whole], name);
      assertEquals(structuredContent, hasStructure ? report : undefined, name);
    }
    const media = await client.callTool(`${kind}-media`);
    assertEquals(media.content.map(({ type }) => type), ["text", "image"], kind);
    assertEquals([textOf(media), media.structuredContent], ['{"a":1,"chart":"result:chart"}', undefined]);
    const typed = await client.callTool(`${kind}-typed`);
    assertEquals(typed.content.length, hasStructure ? texts.length : 1);
  }
}, { versions });

behaviour(
  "text content that a handler returns is kept, and so is a result without structured content",
  async (connect, { version }) => {
    const own = { content: [{ type: "text" as const, text: "own" }], structuredContent: { a: 1 } };
    const all: Record<string, () => unknown> = {
      text: () => "text",
      number: () => 5,
      nothing: () => null,
      block: () => ({ type: "text", text: "block" }),
      own: () => own,
      error: () => ({ content: [{ type: "text", text: "failed" }], isError: true }),
      response: () => new Response("failed", { status: 500 }),
    };
    for (const text of ["summary", "none"] as const) {
      const handlers = Object.entries(all).map(([name, run]) => tool({ name, run: () => run() as string }));
      const { client } = await connect({ handlers, text });
      const got: Record<string, string> = {};
      for (const name of Object.keys(all)) got[name] = textOf(await client.callTool(name));
      assertEquals(got, {
        text: "text",
        number: "5",
        nothing: "null",
        block: "block",
        own: "own",
        error: "failed",
        response: got.response,
      }, version);
      assert(got.response.includes("failed"));
    }
  },
  { versions },
);

behaviour(
  "a list is sent as structured content in revisions that support this, and as full text in older revisions",
  async (connect, way) => {
    const list = tool({ name: "list", text: "summary", run: () => [1, 2, 3] });
    const { client } = await connect({ handlers: [list] });
    const { content, structuredContent } = await client.callTool("list");
    const isModern = way.era === "modern";
    assertEquals(structuredContent, isModern ? [1, 2, 3] : undefined);
    assertEquals(textOf({ content }), isModern ? "array (3)" : "[1,2,3]");
  },
  { versions },
);

behaviour("a summary has at most 500 characters, whatever the keys are", async (connect) => {
  const cases: Record<string, unknown>[] = [
    Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key ${i}`, "x".repeat(i)])),
    { ["k".repeat(5000)]: 1, ["😀".repeat(3000)]: { a: 1 }, last: 1 },
    Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`${i}${"é".repeat(100)}`, i])),
    {},
  ];
  const handlers = cases.map((value, i) => tool({ name: `t${i}`, text: "summary", run: () => value }));
  const { client } = await connect({ handlers });
  for (const [i] of cases.entries()) {
    const text = textOf(await client.callTool(`t${i}`));
    assert(text.length <= 500, text);
    assert(text.isWellFormed());
    assertEquals(text, sentence(Object.keys(cases[i]).length));
  }
});

behaviour("the full text of a large result can be read through its link", async (connect) => {
  const rows = { rows: Array.from({ length: 500 }, (_, i) => `row ${i}`) };
  for (const text of kinds) {
    const make = (onLarge: "link" | "cut") =>
      tool({ name: onLarge, text, use: [quota({ resultBytes: 2000, onLarge })], run: () => rows });
    const { client } = await connect({ handlers: [make("link"), make("cut")] });
    const { content } = await client.callTool("link");
    const [uri] = content.flatMap((block) => block.type === "resource_link" ? block.uri : []);
    assert(JSON.stringify(await client.readResource(uri)).includes("row 1"), text);
    assert(textOf(await client.callTool("cut")).startsWith('{"rows":["row 0"'), text);
  }
}, { perInstance: "services" });

Deno.test("an unknown kind of text copy throws", () => {
  const wrong = { text: "short" as never };
  const words = sentence('"short"', '"full"', '"summary"', '"none"');
  assertThrows(() => tool({ name: "t", ...wrong, run: () => "" }), TypeError, words);
  assertThrows(() => createServer({ name: "s", version: "1.0.0", ...wrong }), TypeError, words);
});
