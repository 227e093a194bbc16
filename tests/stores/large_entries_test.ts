// Entries and values that are too large to be read together within the timeout are read in smaller pages.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { resource, type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest, fakeClock, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { type Command, createLosable, wrapEngine } from "../support/engines.ts";
import { asking } from "../tasks/declared.ts";
import { openServer } from "../support/servers.ts";
import { quota } from "../../src/layers/layers.ts";
import { sentence } from "../support/messages.ts";

/** Opens a store whose reads fail as if they took too long, if `isSlow` returns `true` for what they have read. */
function openSlow(shared: Store, isSlow: (found: readonly string[], command: Command) => boolean) {
  const opened = { connects: 0, reads: [] as number[] };
  const store = customStore(async () => {
    opened.connects++;
    return wrapEngine(await shared[INTERNALS].connect(), async (command) => {
      const found = await command.run();
      const rows: unknown = command.name === "list" ? found : Object(found).entries;
      if (!Array.isArray(rows)) return found;
      opened.reads.push(rows.length);
      if (isSlow(rows.map(({ value }) => value), command)) throw new Error("the read has taken too long");
      return found;
    }, { heads: undefined });
  }, { pollMs: 20, leaseMs: 1000 });
  return Object.assign(opened, { store });
}

const isOver = (max: number) => (found: readonly string[]) => found.join("").length > max;

Deno.test("a subscriber that is behind gets all entries, although they are too large for one read", async () => {
  const shared = memoryStore();
  const text = "x".repeat(1000);
  for (let i = 0; i < 50; i++) await shared.publish("news", `${i} ${text}`);
  const { store } = openSlow(shared, isOver(2500));
  const got: number[] = [];
  const gaps: number[] = [];
  const onGap = (last: number) => void gaps.push(last);
  const stop = await store.subscribe("news", (text) => void got.push(parseInt(text)), { after: 0, onGap });
  await until(() => got.length === 50, "all entries");
  await shared.publish("news", "50");
  await until(() => got.length === 51, "a later entry");
  assertEquals([got, gaps], [Array.from({ length: 51 }, (_, id) => id), []]);
  stop();
  await store.close();
});

Deno.test("a subscriber skips an entry that cannot be read, and learns of the gap", async () => {
  const shared = memoryStore();
  for (const text of ["a", "b", "x".repeat(3000), "c", "d"]) await shared.publish("news", text);
  const { store } = openSlow(shared, isOver(2500));
  const got: string[] = [];
  const stop = await store.subscribe("news", (text) => void got.push(text), {
    after: 0,
    onGap: (last) => void got.push(`gap before ${last}`),
  });
  await until(() => got.includes("d"), "the last entry");
  assertEquals(got, ["a", "b", "gap before 5", "c", "d"]);
  stop();
  await store.close();
});

Deno.test("a subscriber skips nothing while the store does not respond", async () => {
  const shared = memoryStore();
  let isLost = true;
  const { store, reads } = openSlow(shared, () => isLost);
  const got: string[] = [];
  const gaps: number[] = [];
  isLost = false;
  const stop = await store.subscribe("news", (text) => void got.push(text), { onGap: (last) => void gaps.push(last) });
  isLost = true;
  for (const text of ["a", "b", "c"]) await shared.publish("news", text);
  const before = reads.length;
  await until(() => reads.length > before + 20, "failed reads");
  isLost = false;
  await until(() => got.length === 3, "all entries");
  assertEquals([got, gaps], [["a", "b", "c"], []]);
  stop();
  await store.close();
});

Deno.test("failed reads of a topic do not stop the server's own operations", async () => {
  const shared = memoryStore();
  const opened = openSlow(shared, (_found, { name, args: [log] }) => name === "read" && log === "large");
  const { store } = opened;
  const observer = { store() {} };
  const server = openServer({ store, handlers: [], observer });
  await server.ready();
  await shared.publish("large", "x");
  await store.subscribe("large", () => {}, { after: 0 });
  await until(() => opened.reads.length > 20, "failed reads");
  assertEquals([await store.get("key"), opened.connects], [undefined, 1]);
});

Deno.test("tasks and values of once that are too large for one read are taken over", async () => {
  const shared = memoryStore();
  const runs: string[] = [];
  let made = 0;
  const text = "x".repeat(20_000);
  const start = async (name: string, store: Store) => {
    const work = tool({
      name: "work",
      use: [task({ resume: true })],
      async run(_input, ctx) {
        const values = [];
        for (let i = 0; i < 10; i++) values.push(await ctx.once(`${i}`, () => (made++, `${i} ${text}`)));
        const { signal } = ctx;
        if (name === "a") {
          await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        }
        runs.push(name);
        return values.map((value) => value.split(" ")[0]).join();
      },
    });
    const server = openServer({
      store,
      handlers: [tasks(), work],
      limits: { calls: { closeMs: 1 } },
      observer: { store() {}, fault() {} },
    });
    await server.ready();
    return { server, client: await connectTest(server, { ...asking, principal: { id: "ada" } }) };
  };
  const a = await start("a", customStore(shared[INTERNALS].connect, { leaseMs: 1000 }));
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    const { taskId } = await a.client.request("tools/call", { name: "work", arguments: {} }, { finish: false });
    ids.push(String(taskId));
  }
  await until(() => made === 50, "the values of all tasks");
  await a.client.close();
  await a.server.close();
  const slow = openSlow(shared, (found, { name }) => found.join("").length > (name === "list" ? 5000 : 60_000));
  const b = await start("b", slow.store);
  for (const taskId of ids) {
    await until(async () => (await b.client.request("tasks/get", { taskId })).status === "completed", "the task");
  }
  assertEquals([runs, made], [ids.map(() => "b"), 50]);
});

for (
  const [what, valueBytes, uris] of [
    ["of a URI that is too long for an entry", 1_048_576, ["x".repeat(900_000)]],
    [
      "that are too large for one entry together",
      20_000,
      Array.from({ length: 50 }, (_, id) => `${id}${"x".repeat(900)}`),
    ],
  ] as const
) {
  Deno.test(`changes ${what} suppress no other changes`, async () => {
    const shared = memoryStore();
    const note = resource({ uri: "note://{title}", name: "note", read: () => "" });
    const [here, there] = [0, 1].map(() =>
      openServer({
        store: customStore(shared[INTERNALS].connect, { valueBytes, pollMs: 20 }),
        handlers: [note],
        observer: { store() {} },
      })
    );
    await using client = await connectTest(there);
    const { received } = await client.subscribe({ resourceSubscriptions: ["note://todo", "note://done"] });
    here.resourceUpdated("note://todo");
    for (const title of uris) here.resourceUpdated(`note://${title}`);
    here.resourceUpdated("note://done");
    await until(() => received.length === 2, "both changes");
    assertEquals(received.map(({ params }) => params.uri), ["note://todo", "note://done"]);
    await here.close();
    await there.close();
  });
}

// A large result behind a resource link. While the result is stored, the caller that got the link can read it on any
// instance.

const TEXT = Array.from({ length: 2000 }, (_, i) => `line ${i} äöü`).join("\n");

function start(store: Store, options: Parameters<typeof quota>[0] = {}, clock = fakeClock()): Server {
  const all = tool({ name: "all", use: [quota({ resultBytes: 3000, onLarge: "link", ...options })], run: () => TEXT });
  return openServer({ handlers: [all], store, clock });
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
});
