// The example with two users and a database. The tests run its handlers without a server, its server with each client,
// and its process on both runtimes.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import process from "node:process";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { connect as connectTo } from "../../src/client/client.ts";
import { type Connection, connectTest, fakeContext } from "../../src/testing/testing.ts";
import { gate, textOf, turn, until } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { withEnvironment } from "../support/environment.ts";
import { runtimes } from "./runtimes.ts";
import { root, type Running, start } from "../support/processes.ts";

// Set the environment before importing the example, which reads it during the import.
const folder = await mkdtemp(`${tmpdir()}/mcp-team-notes-`);
process.on("exit", () => void rm(folder, { recursive: true, force: true }));
const { default: server, note, remove, search, transaction, write } = await withEnvironment(
  { NOTES_DB: `${folder}/notes.db` },
  () => import("../../examples/team_notes.ts"),
);

const keys = { ada: "ada-demo-key-0123", bob: "bob-demo-key-0123" };
const toHeaders = (user: keyof typeof keys) => ({ authorization: `Bearer ${keys[user]}` });
const yes = () => ({ action: "accept", content: {} }) as const;

/** Creates a note service that stores the notes in a map. */
function fakeNotes(notes: Record<string, string>) {
  return {
    user: "ada",
    titles: (text: string) => Object.keys(notes).filter((title) => notes[title].includes(text)),
    read: (title: string) => notes[title],
    write: (title: string, text: string) => void (notes[title] = text),
    remove: (title: string) => void delete notes[title],
  };
}

Deno.test("team notes: handlers run without a server", async () => {
  const all: Record<string, string> = { milk: "Buy milk" };
  const notes = fakeNotes(all);
  const writing = fakeContext({ services: { notes } });
  const written = await write.run({ title: "tea", text: "Buy tea" }, writing);
  assertEquals([written].flat().map((each) => Object(each).uri), [undefined, "note://ada/tea"]);
  assertEquals(all.tea, "Buy tea");
  // Only a successful result is announced.
  for (const end of ["error", "result"] as const) writing.deferred[0](end);
  assertEquals(writing.announced, [{ kind: "resource", uri: "note://ada/tea" }]);

  const searching = fakeContext({ services: { mine: notes } });
  const found = await search.run({ text: "milk" }, searching);
  assertEquals([found].flat().map((each) => Object(each).uri), [undefined, "note://ada/milk"]);
  assertEquals(note.read({ user: "ada", title: "tea" }, searching), "Buy tea");

  const answers = { sure: { action: "accept", content: {} } };
  const removing = fakeContext({ answers, services: { mine: notes, transaction: notes } });
  assertEquals(await remove.run({ title: "milk" }, removing), "Removed.");
  assertEquals(Object.keys(all), ["tea"]);
  await assertRejects(() => Promise.resolve(remove.run({ title: "milk" }, removing)), Error, "There is no such note.");
  const declining = fakeContext({ answers: { sure: { action: "decline" } }, services: { mine: notes } });
  assertEquals(await remove.run({ title: "tea" }, declining), "The user keeps the note.");
});

/** Returns the URIs of all notes that a client sees. */
async function listUris(client: Pick<Connection, "listResources">): Promise<string[]> {
  return (await client.listResources()).map(({ uri }) => uri);
}

async function readText(client: Pick<Connection, "readResource">, uri: string): Promise<unknown> {
  return Object((await client.readResource(uri)).contents[0]).text;
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`team notes: each user sees, changes and watches only their own notes (${era})`, async () => {
    const join = (user: keyof typeof keys) => connectTest(server, { era, headers: toHeaders(user), onElicit: yes });
    await using ada = await join("ada");
    await using bob = await join("bob");
    const title = `plan-${era}`;
    const [hers, his] = [`note://ada/${title}`, `note://bob/${title}`];
    await using watching = await bob.subscribe({ resourceSubscriptions: [hers, his] });
    await using own = await ada.subscribe({ resourceSubscriptions: [hers, his] });
    await ada.callTool("write", { title, text: "hers" });
    await bob.callTool("write", { title, text: "his" });
    // This client is not notified of the other user's note, although that note changed first.
    assertEquals((await watching.take(1))[0].params.uri, his);
    assertEquals((await own.take(1))[0].params.uri, hers);
    assertEquals([await readText(ada, hers), await readText(bob, his)], ["hers", "his"]);
    assert((await listUris(ada)).every((uri) => uri.startsWith("note://ada/")));
    assert((await listUris(ada)).includes(hers) && !(await listUris(bob)).includes(hers));
    const missing = await assertRejects(() => bob.readResource(hers));
    const unknown = await assertRejects(() => bob.readResource("note://ada/no-such-note"));
    assertEquals(Object(missing).code, Object(unknown).code);
    assertEquals(textOf(await bob.callTool("search", { text: "hers" })), "Nothing found.");
    await bob.callTool("remove", { title });
    assertEquals(await readText(ada, hers), "hers");
    await assertRejects(() => bob.readResource(his));
  });
}

Deno.test("team notes: an unknown user is refused", async () => {
  const headers = { authorization: "Bearer ada-demo-key-0124" };
  const error = await assertRejects(() => connectTest(server, { headers }).then((client) => client.listTools()));
  assertEquals(Object(error).status, 401);
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`team notes: only the transaction of a call with a result is committed, and transactions run sequentially (${era})`, async () => {
    const { pass, open } = gate();
    const began: string[] = [];
    const attempt = tool({
      name: "attempt",
      input: { type: "object", properties: { title: { type: "string" } } },
      services: { notes: transaction },
      async run(input, ctx) {
        const { title } = Object(input);
        ctx.services.notes.write(title, "attempt");
        began.push(title);
        if (title === "throws") throw new Error("no");
        if (title === "refuses") return { isError: true, content: [] };
        if (title === "asks") {
          await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
        }
        if (title === "hangs") await pass;
        return "written";
      },
    });
    const faults: unknown[] = [];
    await using own = createServer({
      name: "notes",
      version: "1.0.0",
      auth: apiKey({ keys: { ada: { key: keys.ada, user: `ada-${era}` } } }),
      handlers: [attempt, note, write],
      observer: { fault: (e) => faults.push(e) },
    });
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    await using client = await connectTest(own, {
      era,
      headers: toHeaders("ada"),
      onElicit: async () => (ask(), era === "modern" ? { action: "decline" } : await new Promise(() => {})),
    });
    for (const title of ["throws", "refuses"]) {
      assertEquals((await client.callTool("attempt", { title })).isError, true);
    }
    assertEquals(await listUris(client), []);

    const controller = new AbortController();
    const hanging = client.callTool("attempt", { title: "hangs" }, { signal: controller.signal }).catch(() => {});
    await until(() => began.includes("hangs"), "the transaction has begun");
    const next = client.callTool("attempt", { title: "next" });
    await turn(10);
    assertEquals(began.includes("next"), false);
    controller.abort();
    await hanging;
    await next;
    // The handler of the cancelled call returns only after its transaction was rolled back.
    open();
    assertEquals(await listUris(client), [`note://ada-${era}/next`]);

    const stop = new AbortController();
    const asking = client.callTool("attempt", { title: "asks" }, { signal: stop.signal }).catch(() => {});
    await asked;
    if (era === "legacy") stop.abort();
    await asking;
    await client.callTool("attempt", { title: "last" });
    const uris = await listUris(client);
    // In the modern era, the question rolled back the transaction of the handler's first run, and the second run was
    // committed.
    const wanted = era === "modern" ? ["asks", "last", "next"] : ["last", "next"];
    assertEquals(uris, wanted.map((title) => `note://ada-${era}/${title}`));
    assertEquals(faults.length, 1);
  });
}

const file = `${root}examples/team_notes.ts`;

/** Serves the example, with its database in the working folder. */
async function serve(program: readonly string[], cwd: string): Promise<{ running: Running; url: string }> {
  const running = await start([...program, file, "--http", "--port", "0"], { cwd });
  const [url] = await running.waitFor(/http:\/\/\S+\/mcp/);
  return { running, url };
}

for (const { name, program } of runtimes) {
  testProcesses(`${name}: team notes are kept across a restart, and two users can share a server`, async () => {
    await withFiles({}, async (cwd) => {
      for (const [round, revisions] of [["2026-07-28"], ["2025-11-25"]].entries()) {
        const { running, url } = await serve(program, cwd);
        await using _ = running;
        const ada = await connectTo(url, { revisions, headers: toHeaders("ada"), onElicit: yes });
        const bob = await connectTo(url, { revisions, headers: toHeaders("bob"), onElicit: yes });
        if (round > 0) assertEquals(await readText(ada, "note://ada/round-0"), "hers");
        const title = `round-${round}`;
        const changes = await bob.subscribe({ resourceSubscriptions: [`note://bob/${title}`] });
        await ada.callTool("write", { title, text: "hers" });
        await bob.callTool("write", { title, text: "his" });
        for await (const { params } of changes) {
          assertEquals(params?.uri, `note://bob/${title}`);
          break;
        }
        assertEquals((await listUris(ada)).length, round + 1);
        assertEquals(await readText(bob, `note://bob/${title}`), "his");
        await assertRejects(() => bob.readResource(`note://ada/${title}`));
        await bob.callTool("write", { title: "gone", text: "soon" });
        await bob.callTool("remove", { title: "gone" });
        assertEquals((await listUris(bob)).length, round + 1);
        for (const client of [ada, bob]) await client.close();
        running.kill("SIGTERM");
        assertEquals((await running.finished).code, 0);
      }
    });
  });

  testProcesses(`${name}: no acknowledged team note is lost when the process is killed`, async () => {
    await withFiles({}, async (cwd) => {
      for (const [round, revisions] of [["2026-07-28"], ["2025-11-25"]].entries()) {
        const first = await serve(program, cwd);
        const answered: string[] = [];
        const clients = await Promise.all((["ada", "bob"] as const).map(async (user) => {
          const client = await connectTo(first.url, { revisions, headers: toHeaders(user) });
          const writers = Array.from({ length: 4 }, async (_, writer) => {
            for (let i = 0;; i++) {
              const title = `kill-${round}-${writer}-${i}`;
              const { isError } = await client.callTool("write", { title, text: `${user} ${title}` });
              assertEquals(isError, undefined);
              answered.push(`note://${user}/${title}`);
            }
          });
          return { client, ended: Promise.allSettled(writers) };
        }));
        await until(() => answered.length > 40, "some notes have been written");
        await first.running[Symbol.asyncDispose](); // SIGKILL
        for (const { ended } of clients) {
          for (const { status } of await ended) assertEquals(status, "rejected");
        }
        for (const { client } of clients) await client.close().catch(() => {});

        const second = await serve(program, cwd);
        await using _ = second.running;
        const known = new Set<string>();
        for (const user of ["ada", "bob"] as const) {
          await using client = await connectTo(second.url, { revisions, headers: toHeaders(user) });
          const uris = await listUris(client);
          for (const uri of uris) known.add(uri);
          const last = uris[uris.length - 1];
          assertMatch(String(await readText(client, last)), new RegExp(`^${user} kill-`));
        }
        assertEquals(answered.filter((uri) => !known.has(uri)), []);
      }
    });
  });
}
