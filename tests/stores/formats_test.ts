// This version of the library next to a later version that seals values in another format. Neither version changes
// values of the other version. Each version serves the sessions that it has opened, and returns an error for calls that
// the other version has begun.
import { readFile, writeFile } from "node:fs/promises";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createServer, resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { Sealer } from "../../src/server/call/sealer.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { until } from "../support/behaviour.ts";
import { makeFolder, removeFolder } from "../support/copies.ts";
import { wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { toReply } from "../support/requests.ts";

const secret = "a secret of at least thirty-two characters";
/** A server that runs one version of the library. */
interface Version {
  readonly server: Server;
  /** The keys of the values that the server has written. */
  readonly written: Set<string>;
}

interface Library {
  readonly createServer: typeof createServer;
  readonly quota: typeof quota;
  readonly resource: typeof resource;
  readonly tool: typeof tool;
  readonly customStore: typeof customStore;
}

let runs = 0;

function start({ createServer, quota, resource, tool, customStore }: Library, shared: Store): Version {
  const written = new Set<string>();
  const store = customStore(
    async () =>
      wrapEngine(await shared[INTERNALS].connect(), async ({ name, args: [key], run }) => {
        const result = await run();
        if (name === "set" && result) written.add(String(key));
        return result;
      }),
    { pollMs: 50 },
  );
  const server = createServer({
    name: "notes",
    version: "1.0.0",
    secret,
    store,
    auth: (request: Request) => ({ id: request.headers.get("x-user") ?? "nobody" }),
    handlers: [
      tool({ name: "pay", use: [idempotent({ key: () => "key", rerun: true })], run: () => `paid ${++runs}` }),
      tool({ name: "all", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => "line\n".repeat(2000) }),
      resource({ uri: "note://1", name: "note", read: () => "text" }),
    ],
  });
  return { server, written };
}

interface Sent {
  readonly method?: string;
  readonly message?: object;
  readonly session?: string;
  readonly user?: string;
}

async function send({ server }: Version, { method = "POST", message, session, user = "ada" }: Sent): Promise<Response> {
  return await server.fetch(
    new Request("http://localhost/mcp", {
      method,
      headers: {
        "content-type": "application/json",
        accept: message ? "application/json, text/event-stream" : "text/event-stream",
        "x-user": user,
        ...session && { "mcp-session-id": session },
      },
      body: message && JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
    }),
  );
}

const hello = {
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "c", version: "1" },
  },
};
const ping = { method: "ping" };
const call = (name: string) => ({ method: "tools/call", params: { name } });

async function open(version: Version): Promise<string> {
  const response = await send(version, { message: hello });
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

async function status(version: Version, sent: Sent): Promise<number> {
  const response = await send(version, sent);
  await response.body?.cancel();
  return response.status;
}

async function text(version: Version, message: object, session: string): Promise<string> {
  const response = await send(version, { message, session });
  assertEquals(response.status, 200);
  return toReply(await response.text());
}

/** Returns the message of the error in a response's body. */
function toError(body: string): unknown {
  return JSON.parse(body).error.message;
}

Deno.test("two versions of the format that share a store do not change each other's values", async () => {
  const folder = await makeFolder();
  try {
    const file = new URL("src/server/call/versioned_seal.ts", folder);
    const source = await readFile(file, "utf8");
    const later = source.replace("VERSION = 1;", "VERSION = 2;");
    assert(later !== source);
    await writeFile(file, later);
    const load = async (path: string) => await import(new URL(path, folder).href);
    const library = {
      ...await load("mod.ts"),
      ...await load("src/layers/layers.ts"),
      ...await load("src/stores/stores.ts"),
    };
    runs = 0;
    const shared = memoryStore();
    const now = start({ createServer, quota, resource, tool, customStore }, shared);
    const next = start(library, shared);
    const pairs = [[now, next], [next, now]] as const;
    for (const [one, other] of pairs) {
      const [session, ended] = [await open(one), await open(one)];
      assertEquals(await status(one, { method: "DELETE", session: ended }), 204);
      // Ending a session on one version does not end a session of the other version.
      for (const [version, expected] of [[one, 200], [other, 404]] as const) {
        assertEquals(await status(version, { message: ping, session }), expected);
        assertEquals(await status(version, { message: ping, session: ended }), 404);
      }
    }
    const [mine, theirs] = [await open(now), await open(next)];
    const first = await text(now, call("pay"), mine);
    assertMatch(first, /paid 1/);
    // Even a tool with `rerun` does not run if another version may be running the call.
    assertEquals(toError(await text(next, call("pay"), theirs)), sentence("pay", "key"));
    assertEquals(await text(now, call("pay"), mine), first);
    const link = /result:[/\w-]+/.exec(await text(now, call("all"), mine))?.[0];
    const read = { method: "resources/read", params: { uri: link } };
    assertMatch(await text(now, read, mine), /line/);
    assertEquals(toError(await text(next, read, theirs)), sentence());
    // A change that a version announces reaches that version's clients.
    for (const [one, session] of [[now, mine], [next, theirs]] as const) {
      await text(one, { method: "resources/subscribe", params: { uri: "note://1" } }, session);
      const reader = (await send(one, { method: "GET", session })).body?.pipeThrough(new TextDecoderStream())
        .getReader();
      let heard = "";
      const reading = (async () => {
        for (;;) {
          const { value, done } = await reader?.read() ?? { done: true };
          if (done) return;
          heard += value;
        }
      })();
      one.server.resourceUpdated("note://1");
      await until(() => heard.includes("resources/updated"), "the change");
      await reader?.cancel();
      await reading;
    }
    assertEquals(runs, 1);
    await Promise.all([now.server.close(), next.server.close()]);
    const both = [...now.written].filter((key) => next.written.has(key));
    assertEquals(both, [], "a value was written by both versions");
  } finally {
    await removeFolder(folder);
  }
});

Deno.test("a session state in the format of a later version is refused, and is not overwritten", async () => {
  const shared = memoryStore();
  const library = { createServer, quota, resource, tool, customStore };
  const a = start(library, shared);
  const session = await open(a);
  const setLevel = (level: string) => ({ message: { method: "logging/setLevel", params: { level } }, session });
  assertEquals(await status(a, setLevel("debug")), 200);
  const sealer = new Sealer({ secret, realm: JSON.stringify(["notes", "/mcp"]) });
  const later: [key: string, text: string][] = [];
  for (const { key, value } of await shared.list("", { limit: 100 })) {
    const opened = await sealer.open(`store ${key}`, value);
    if (!Array.isArray(opened) || Object(opened[1]).level !== "debug") continue;
    assertEquals(opened[0], 1);
    const text = await sealer.seal(`store ${key}`, [2, opened[1]]);
    await shared.set(key, text, { ttlMs: 60_000 });
    later.push([key, text]);
  }
  assertEquals(later.length, 1);
  const b = start(library, shared);
  assertEquals(await status(b, setLevel("error")), 404);
  for (const [key, text] of later) assertEquals((await shared.get(key))?.value, text);
  await Promise.all([a.server.close(), b.server.close()]);
});
