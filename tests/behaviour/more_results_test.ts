// Large results of tools are cut so that they fit, and the tool itself returns the rest.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { createServer, media, prompt, tool, type ToolReturn } from "../../mod.ts";
import { guard, layer, quota, type QuotaOptions } from "../../src/layers/layers.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const TOKENS = 400;
const more = (options: Partial<QuotaOptions> = {}) => quota({ resultTokens: TOKENS, onLarge: "more", ...options });
const issues = Array.from({ length: 100 }, (_, id) => ({ id, title: `Issue number ${id}` }));
const output = z.object({ issues: z.array(z.object({ id: z.number(), title: z.string() })), count: z.number() });

interface Pages {
  readonly results: readonly Record<string, unknown>[];
  readonly texts: readonly string[];
}

/** Reads all pages of a result, as a model does that follows the structured content or the text. */
async function readPages(
  client: Connection,
  name: string,
  args: Record<string, unknown> = {},
  characters = 4 * TOKENS,
): Promise<Pages> {
  const results: Record<string, unknown>[] = [];
  const texts: string[] = [];
  let next: string | undefined;
  do {
    const { structuredContent, content, isError } = await client.callTool(name, { ...args, ...next && { more: next } });
    assert(!isError, JSON.stringify(content));
    const all = content.map((block) => "text" in block ? block.text : "").join("\n");
    const noted = /more: "([^"]+)"\.\]/.exec(all)?.[1];
    if (structuredContent) {
      const { more }: Record<string, unknown> = Object(structuredContent);
      assertEquals(Object(more).next, noted);
      assert(JSON.stringify(structuredContent).length <= 4 * TOKENS);
      results.push(Object(structuredContent));
    }
    assert(all.length <= characters + 5, `${all.length}`);
    texts.push(content.slice(0, -1).map((block) => "text" in block ? block.text : "").join(""));
    next = noted;
  } while (next);
  return { results, texts };
}

behaviour("a list is cut between its items, and the rest comes with the argument more", async (connect) => {
  let runs = 0;
  const run = () => (runs++, { issues, count: 100 });
  const input = z.object({ query: z.string() });
  const { client } = await connect({
    handlers: [
      tool({ name: "list", input, output, use: [more()], run }),
      tool({ name: "small", output, use: [more()], run: () => ({ issues: issues.slice(0, 2), count: 2 }) }),
      tool({
        name: "inner",
        use: [more({ items: ({ found: { issues } }: never) => issues })],
        run: () => ({ found: { issues }, tags: [] }),
      }),
    ],
  });
  const [{ inputSchema, outputSchema }] = await client.listTools();
  assertEquals(Object.keys(Object(inputSchema.properties)), ["query", "more"]);
  assertEquals(Object.keys(Object(outputSchema?.properties)), ["issues", "count", "more"]);
  const { results } = await readPages(client, "list", { query: "x" });
  assertEquals(results.flatMap(({ issues }) => issues), issues);
  assertEquals(results.map(({ count }) => count), Array(results.length).fill(100));
  assertEquals(runs, 1);
  const [{ more: first }, { more: last }] = [results[0], results[results.length - 1]];
  assertEquals([Object(first).total, Object(last).total, Object(last).next], [100, 100, undefined]);
  const small = await client.callTool("small");
  assertEquals(small.structuredContent, { issues: issues.slice(0, 2), count: 2 });
  const inner = await readPages(client, "inner");
  assertEquals(inner.results.flatMap(({ found }) => Object(found).issues), issues);
});

behaviour("text is cut between lines, and media have a page", async (connect) => {
  const lines = Array.from({ length: 200 }, (_, at) => `line ${at} of the log\n`);
  const image = media(new Uint8Array(900), "image/png");
  const { client } = await connect({
    handlers: [
      tool({ name: "log", use: [more()], run: () => lines.join("") }),
      tool({ name: "line", use: [more()], run: () => "💩".repeat(3000) }),
      tool({ name: "mixed", use: [more()], run: (): ToolReturn => [lines.slice(0, 60).join(""), image, "end"] }),
      tool({ name: "image", use: [more()], run: () => media(new Uint8Array(5000), "image/png") }),
      tool({ name: "bytes", use: [more({ resultTokens: undefined, resultBytes: 2048 })], run: () => lines.join("") }),
    ],
  });
  const log = await readPages(client, "log");
  assertEquals(log.texts.join(""), lines.join(""));
  assert(log.texts.every((text) => text.endsWith("\n")));
  const line = await readPages(client, "line");
  assertEquals(line.texts.join(""), "💩".repeat(3000));
  assert(line.texts.every((text) => text.isWellFormed()));
  const mixed = await client.callTool("mixed");
  const next = /more: "([^"]+)"/.exec(JSON.stringify(mixed.content).replaceAll('\\"', '"'))?.[1];
  const rest = await client.callTool("mixed", { more: next });
  assertEquals(rest.content.map(({ type }) => type), ["image", "text", "text"]);
  assertEquals(textOf(await client.callTool("image")), "[Left out, because it is too large: image/png]");
  const { texts } = await readPages(client, "bytes", {}, 2048);
  assertEquals(texts.join(""), lines.join(""));
});

behaviour("a result that cannot be cut is refused", async (connect) => {
  const many = { issues, others: issues };
  const { client, takeFaults } = await connect({
    handlers: [
      tool({
        name: "object",
        use: [more()],
        run: () => Object.fromEntries(issues.map(({ id, title }) => [id, title])),
      }),
      tool({ name: "cursor", use: [more()], run: () => ({ issues, nextCursor: "abc" }) }),
      tool({ name: "token", use: [more()], run: () => ({ issues, nextToken: "abc" }) }),
      tool({
        name: "inner",
        use: [more({ items: ({ data: { issues } }: never) => issues })],
        run: () => ({ data: { issues, next_cursor: "abc" } }),
      }),
      tool({ name: "own", use: [more()], run: () => ({ issues, more: true }) }),
      tool({
        name: "least",
        output: { type: "object", properties: { issues: { type: "array", minItems: 90 } } },
        use: [more()],
        run: () => ({ issues }),
      }),
      tool({ name: "item", use: [more()], run: () => ({ issues: ["x".repeat(5000)] }) }),
      tool.from(
        { name: "foreign", inputSchema: { type: "object", properties: { more: { type: "boolean" } } } },
        () => ({ content: [], structuredContent: { issues } }),
        { use: [more()] },
      ),
      tool({ name: "refuse", use: [quota({ resultTokens: 300 })], run: () => "x".repeat(5000) }),
      tool({ name: "several", use: [more()], run: () => many }),
      tool({ name: "copied", use: [more({ items: ({ issues }: never) => [...issues as []] })], run: () => many }),
    ],
  });
  for (const name of ["object", "cursor", "token", "inner", "own", "least", "item", "foreign", "refuse"]) {
    const { isError, content } = await client.callTool(name);
    assertEquals(isError, true, name);
    assertEquals(textOf({ content }), sentence(`"${name}"`, "handler.resultTokens"));
  }
  takeFaults();
  for (const name of ["several", "copied"]) {
    await assertRejects(() => client.callTool(name));
    assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence(`"${name}"`, "items")]);
  }
});

behaviour("a tool with a cursor of its own continues after the last item that is shown", async (connect) => {
  const use = [more({ cursorAfter: ({ id }: never) => `after ${id}` })];
  const { client } = await connect({
    handlers: [tool({
      name: "list",
      input: z.object({ cursor: z.string().optional() }),
      use,
      run: ({ cursor }) => {
        const from = cursor ? Number(cursor.slice(6)) + 1 : 0;
        const to = Math.min(from + 60, 100);
        return { issues: issues.slice(from, to), nextCursor: to < 100 ? `after ${to - 1}` : undefined };
      },
    })],
  });
  const got: unknown[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { structuredContent } = await client.callTool("list", { cursor });
    const { issues, nextCursor, more }: Record<string, unknown> = Object(structuredContent);
    got.push(...issues as unknown[]);
    const { cursor: own = nextCursor } = Object(more);
    cursor = own;
    pages++;
  } while (cursor);
  assertEquals(got, issues);
  assert(pages >= 3);
});

behaviour(
  "only the same caller gets the rest, for as long as it is kept, and not after other guards",
  async (connect) => {
    const clock = fakeClock();
    const secret = guard({
      output: [
        (output, { principal }) =>
          principal?.id === "ada" ? undefined : JSON.parse(JSON.stringify(output).replaceAll("Issue", "I")),
      ],
    });
    const { client: ada, join } = await connect({
      clock,
      handlers: [tool({ name: "list", use: [more({ keepMs: 1000 }), secret], run: () => ({ issues }) })],
    }, { principal: { id: "ada" } });
    const eve = await join({ principal: { id: "eve" } });
    const { structuredContent } = await ada.callTool("list");
    const { next } = Object(Object(structuredContent).more);
    for (const [client, value] of [[eve, next], [ada, `${next}9`], [ada, "x"], [ada, ""]] as const) {
      const { isError, content } = await client.callTool("list", { more: value });
      assertEquals([isError, textOf({ content })], [true, sentence("list", "more")]);
    }
    assert(!(await ada.callTool("list", { more: next })).isError);
    await clock.advance(2000);
    assertEquals((await ada.callTool("list", { more: next })).isError, true);
  },
  { perInstance: "later" },
);

Deno.test("another instance with the same store returns the rest", async () => {
  const shared = { store: memoryStore(), secret: "a secret of at least thirty-two characters" };
  const { connectTest } = await import("../../src/testing/testing.ts");
  const make = () =>
    createServer({
      name: "s",
      version: "1.0.0",
      handlers: [tool({ name: "list", use: [more()], run: () => ({ issues }) })],
      ...shared,
    });
  const [a, b] = [make(), make()];
  const [first, second] = [
    await connectTest(a, { principal: { id: "ada" } }),
    await connectTest(b, { principal: { id: "ada" } }),
  ];
  const { structuredContent } = await first.callTool("list");
  const { next } = Object(Object(structuredContent).more);
  const rest = await second.callTool("list", { more: next });
  assertEquals(Object(rest.structuredContent).issues[0].id, Object(structuredContent).issues.length);
  for (const each of [first, second]) await each.close();
  for (const each of [a, b]) await each.close();
});

Deno.test("options for results that fit are checked", () => {
  const run = () => "";
  const wrong: readonly (readonly [run: () => unknown, ...parts: readonly string[]])[] = [
    [() => quota({ onLarge: "more" }), "resultTokens"],
    [() => quota({ resultTokens: 500, onLarge: "cut" }), '"cut"'],
    [() => quota({ resultTokens: 500, items: () => [] }), "items"],
    [() => quota({ resultTokens: 500, cursorAfter: () => "" }), "cursorAfter"],
    [() => quota({ resultBytes: 5000, countTokens: () => 1 }), "countTokens"],
    [() => tool({ name: "t", use: [quota({ resultTokens: 50, onLarge: "more" })], run }), 'tool "t"', "200"],
    [() => prompt({ name: "p", use: [more()], run }), 'prompt "p"', '"more"'],
    [() => tool({ name: "t", input: { more: z.string() }, use: [more()], run }), 'tool "t"', '"more"'],
    [() => tool({ name: "t", use: [more(), more()], run }), 'tool "t"', '"more"'],
  ];
  for (const [make, ...parts] of wrong) assertEquals(assertThrows(make, TypeError).message, sentence(...parts));
});

behaviour("an author counts the tokens", async (connect) => {
  const words = (text: string) => text.split(" ").length;
  const { client, takeFaults } = await connect({
    handlers: [
      tool({ name: "words", use: [more({ countTokens: words, resultTokens: 200 })], run: () => "a b c\n".repeat(400) }),
      tool({ name: "wrong", use: [more({ countTokens: () => NaN })], run: () => "a" }),
    ],
  });
  const { content } = await client.callTool("words");
  assert(words(content.map((block) => "text" in block ? block.text : "").join(" ")) <= 200);
  await assertRejects(() => client.callTool("wrong"));
  assertEquals(takeFaults().map(({ error }) => Object(error).message), [sentence("countTokens", "NaN")]);
});

behaviour("a cursor beside a list deeper in the result continues after the last item too", async (connect) => {
  const items = ({ data: { issues } }: never) => issues;
  const use = [more({ items, cursorAfter: ({ id }: never) => `after ${id}` })];
  const { client } = await connect({
    handlers: [tool({ name: "list", use, run: () => ({ data: { issues, nextCursor: null } }) })],
  });
  const { data, more: page } = Object((await client.callTool("list")).structuredContent);
  assertEquals(data.nextCursor, `after ${data.issues.length - 1}`);
  assertEquals(page.cursor, data.nextCursor);
});

behaviour("inner layers do not change a page again", async (connect) => {
  const footer = layer(() => ({
    name: "footer",
    result: (result) => ({
      ...result,
      content: [...Object(result).content, { type: "text", text: "end ".repeat(60) }],
    }),
  }));
  const { client } = await connect({
    handlers: [tool({ name: "list", use: [more(), footer], run: () => ({ issues }) })],
  });
  const { results } = await readPages(client, "list");
  assertEquals(results.flatMap(({ issues }) => issues), issues);
});

behaviour("a long text is not counted again for each page", async (connect) => {
  let counted = 0;
  const countTokens = (text: string) => (counted += text.length, text.length / 4);
  const text = "a line of a long log\n".repeat(30_000);
  for (
    const run of [
      () => text,
      () => ({ content: [{ type: "text" as const, text: "log" }, { type: "text" as const, text }] }),
    ]
  ) {
    const { client } = await connect({
      handlers: [tool({ name: "log", use: [more({ countTokens })], run })],
    });
    counted = 0;
    assert(!(await client.callTool("log")).isError);
    assert(counted < 60 * text.length, `${counted / text.length}`);
  }
});
