// The text copy of structured content: the full JSON, a summary, or no copy.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { behaviour, LEGACY_VERSIONS, textOf } from "../support/behaviour.ts";
import { z } from "zod";
import { sentence } from "../support/messages.ts";

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
