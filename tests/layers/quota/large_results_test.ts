// Large results: the pages that the server stores, their time to live, and truncation.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { z } from "zod";
import { type createServer, media, prompt, resource, tool } from "../../../mod.ts";
import { quota, type QuotaOptions } from "../../../src/layers/layers.ts";
import { cutText, toSize } from "../../../src/layers/quota/text.ts";
import { connectTest, fakeClock } from "../../../src/testing/testing.ts";
import { sentence } from "../../support/messages.ts";
import { openServer } from "../../support/servers.ts";

async function open(options: QuotaOptions, server: Parameters<typeof createServer>[0] | object = {}) {
  const long = tool({
    name: "long",
    input: z.object({ n: z.number() }),
    use: [quota({ resultBytes: 2000, onLarge: "link", ...options })],
    run: ({ n }) => "x".repeat(n),
  });
  const made = openServer({ handlers: [long], ...server });
  const client = await connectTest(made, { principal: { id: "ada" } });
  const link = async (n: number) => String(Object((await client.callTool("long", { n })).content[1]).uri);
  return {
    client,
    link,
    async [Symbol.asyncDispose]() {
      await client.close();
      await made.close();
    },
  };
}

Deno.test("a stored result is deleted after its time to live", async () => {
  const clock = fakeClock();
  await using at = await open({ keepMs: 1000 }, { clock });
  const first = await at.link(5000);
  await clock.advance(600);
  const second = await at.link(5000);
  await clock.advance(500);
  await assertRejects(() => at.client.readResource(first), Error, sentence());
  await at.client.readResource(second);
  await clock.advance(600);
  await assertRejects(() => at.client.readResource(second), Error, sentence());
});

Deno.test("the oldest result is evicted when room is needed for a new result, and a result that is too large is refused", async () => {
  await using at = await open({ keepBytes: 50_000 });
  const first = await at.link(10_000);
  const second = await at.link(10_000);
  await at.client.readResource(first);
  const third = await at.link(10_000);
  await assertRejects(() => at.client.readResource(first), Error, sentence());
  for (const uri of [second, third]) await at.client.readResource(uri);
  const { isError, content } = await at.client.callTool("long", { n: 50_000 });
  assert(isError);
  assertEquals(content, [{ type: "text", text: sentence() }]);
});

Deno.test("stored results are charged to their client", async () => {
  await using at = await open({}, { limits: { memory: { bytesPerClient: 100_000 } } });
  await at.link(40_000);
  const { isError } = await at.client.callTool("long", { n: 20_000 });
  assert(isError);
});

Deno.test("media blocks are stored on separate pages", async () => {
  const image = media(new Uint8Array(3000), "image/png");
  const mixed = tool({
    name: "mixed",
    use: [quota({ resultBytes: 2000, onLarge: "link" })],
    run: () => ({ content: [{ type: "text" as const, text: "first" }, image] }),
  });
  const server = openServer({ handlers: [mixed] });
  await using client = await connectTest(server);
  const { content: [, link] } = await client.callTool("mixed");
  const { contents: [page, note] } = await client.readResource(Object(link).uri);
  assertEquals(Object(page).text, "first");
  const { contents } = await client.readResource(Object(note).uri);
  assertEquals(contents.length, 1);
  assertEquals(Object(contents[0]).mimeType, "image/png");
});

Deno.test("a truncated text is within the limit, whatever its characters are", () => {
  const texts = ['a"b\\c', "\u0000\u001f\n", "äöü€", "😀😁", "x", "\ud800x", "\u2028"];
  for (const text of texts) {
    const long = text.repeat(50);
    for (let max = 0; max < 200; max++) {
      const cut = cutText(long, max);
      assert(long.startsWith(cut));
      assert(toSize(JSON.stringify(cut)) - 2 <= max);
      const next = [...long.slice(cut.length)][0];
      if (next) assert(toSize(JSON.stringify(cut + next)) - 2 > max, "there was room for another character");
    }
  }
});

Deno.test("the whole truncated result is within its limit", async () => {
  for (const text of ['"\\\n', "ä", "x\u0000", "😀"]) {
    const cut = quota({ resultBytes: 3000, onLarge: "cut" });
    const blocks = [1, 2, 3].map(() => ({ type: "text" as const, text: text.repeat(900) }));
    const server = openServer({
      handlers: [
        tool({ name: "t", use: [cut], run: () => ({ content: blocks }) }),
        prompt({ name: "p", use: [cut], run: () => blocks }),
        resource({ uri: "x://r", name: "r", use: [cut], read: () => text.repeat(2000) }),
      ],
    });
    await using client = await connectTest(server);
    for (
      const result of [await client.callTool("t"), await client.getPrompt("p"), await client.readResource("x://r")]
    ) {
      const { _meta, resultType: _, ttlMs: __, cacheScope: ___, ...own }: Record<string, unknown> = { ...result };
      const size = toSize(JSON.stringify(own));
      assert(size <= 3000, `${size} bytes`);
      assert(size > 1500, `only ${size} bytes`);
    }
  }
});

Deno.test("limits that do not apply to a kind of handler are refused", () => {
  const link = quota({ resultBytes: 2000, onLarge: "link" });
  assertThrows(() => prompt({ name: "p", use: [link], run: () => "" }), TypeError, sentence("p", "link"));
  assertThrows(
    () => resource({ uri: "x://r", name: "r", use: [link], read: () => "" }),
    TypeError,
    sentence("r", "link"),
  );
  const output = z.object({ a: z.string() });
  assertThrows(
    () => tool({ name: "t", use: [link], output, run: () => ({ a: "" }) }),
    TypeError,
    sentence("t", "link"),
  );
  const tiny = quota({ resultBytes: 100, onLarge: "cut" });
  assertThrows(() => tool({ name: "t", use: [tiny], run: () => "" }), TypeError, sentence("resultBytes", 1024));
});

Deno.test("tools that share limits can all store results, and removing the tools deletes their results", async () => {
  const shared = quota({ resultBytes: 2000, onLarge: "link" });
  const [a, b] = ["a", "b"].map((name) => tool({ name, use: [shared], run: () => name.repeat(5000) }));
  const server = openServer({ handlers: [a, b] });
  assertEquals(server.handlers.list().length, 2);
  await using client = await connectTest(server);
  // The URI is always a string.
  const read = async (name: string) => Object((await client.callTool(name)).content[1]).uri as string;
  const [first, second] = [await read("a"), await read("b")];
  server.handlers.remove(a);
  await assertRejects(() => client.readResource(first), Error, sentence());
  await client.readResource(second);
});

// Stored large results of several clients.

Deno.test("a result that exceeds its client's share evicts no other client's result", async () => {
  const long = tool({
    name: "long",
    input: z.object({ n: z.number() }),
    use: [quota({ resultBytes: 2000, onLarge: "link", keepBytes: 150_000 })],
    run: ({ n }) => "x".repeat(n),
  });
  const memory = { bytesPerClient: 100_000 };
  const server = openServer({ handlers: [long], limits: { memory } });
  await using ada = await connectTest(server, { principal: { id: "ada" } });
  await using eve = await connectTest(server, { principal: { id: "eve" } });
  const kept = await ada.callTool("long", { n: 18_000 });
  await eve.callTool("long", { n: 36_000 });
  const { isError } = await eve.callTool("long", { n: 28_000 });
  assert(isError, "there was room");
  await ada.readResource(String(Object(kept.content[1]).uri));
});
