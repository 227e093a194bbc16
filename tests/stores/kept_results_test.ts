// A large result behind a resource link. While the result is stored, the caller that got the link can read it on any
// instance.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { createLosable } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";

const TEXT = Array.from({ length: 2000 }, (_, i) => `line ${i} äöü`).join("\n");

function start(store: Store, options: Parameters<typeof quota>[0] = {}, clock = fakeClock()): Server {
  const all = tool({ name: "all", use: [quota({ resultBytes: 3000, onLarge: "link", ...options })], run: () => TEXT });
  return createServer({
    name: "logs",
    version: "1.0.0",
    handlers: [all],
    secret: "a secret of at least thirty-two characters",
    store,
    clock,
  });
}

async function readAll(client: Connection, link: string): Promise<string> {
  let text = "";
  for (let uri: string | undefined = link; uri;) {
    const { contents }: { contents: readonly unknown[] } = await client.readResource(uri);
    const [page, next] = contents.map(Object);
    text += page.text;
    uri = next?.uri;
  }
  return text;
}

async function keep(client: Connection): Promise<string> {
  const { content } = await client.callTool("all");
  return String(Object(content[1]).uri);
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a link works on another instance, even after the instance that created it has closed (${era})`, async () => {
    const { connect } = memoryStore()[INTERNALS];
    const [a, b] = [start(customStore(connect)), start(customStore(connect))];
    const ada = { era, principal: { id: "ada" } };
    await using here = await connectTest(a, ada);
    await using there = await connectTest(b, ada);
    const link = await keep(here);
    assertEquals(await readAll(there, link), TEXT);
    await using eve = await connectTest(b, { era, principal: { id: "eve" } });
    for (const [client, uri] of [[eve, link], [there, `${link}9`], [there, "result://all/x/1"]] as const) {
      await assertRejects(() => client.readResource(uri), McpError, sentence());
    }
    await here.close();
    await a.close();
    assertEquals(await readAll(there, link), TEXT);
    await b.close();
  });
}

Deno.test("the oldest results are deleted from the store when room is needed, and expired results are deleted too", async () => {
  const memory = memoryStore();
  const { connect } = memory[INTERNALS];
  const clock = fakeClock();
  const options = { keepBytes: 150_000, keepMs: 1000 };
  const a = start(customStore(connect), options, clock);
  await using client = await connectTest(a);
  const count = async () => (await memory.list("", { limit: 100 })).length;
  const before = await count();
  for (let i = 0; i < 10; i++) await keep(client);
  await until(async () => await count() - before <= 3, "the oldest results are deleted");
  const link = await keep(client);
  const b = start(customStore(connect), options);
  await using there = await connectTest(b);
  assertEquals(await readAll(there, link), TEXT);
  await until(async () => await count() === before, "all are gone");
  await assertRejects(() => there.readResource(link), McpError, sentence());
  await a.close();
  await b.close();
});

Deno.test("while the store is unavailable, a link works on its own instance, and other instances state why it does not work", async () => {
  const store = createLosable();
  const [a, b] = [start(store.open()), start(store.open())];
  await using here = await connectTest(a);
  await using there = await connectTest(b);
  const known = await keep(here);
  store.isLost = true;
  const { content } = await here.callTool("all");
  const link = String(Object(content[1]).uri);
  assertEquals(textOf({ content: content.slice(0, 1) }).replace(link, "LINK"), sentence("LINK"));
  assertEquals(await readAll(here, link), TEXT);
  const error = await assertRejects(() => there.readResource(known), McpError, sentence());
  assert(error.code === -31503, `${error.code}`);
  store.isLost = false;
  await until(async () => await readAll(there, known).catch(() => "") === TEXT, "the store is available again");
  await assertRejects(() => there.readResource(link), McpError, sentence());
  await a.close();
  await b.close();
});
