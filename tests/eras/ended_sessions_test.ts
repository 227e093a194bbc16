// The memory for ended sessions is limited. Beyond the limit, a client's oldest ended session is forgotten.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { Sealer } from "../../src/server/call/sealer.ts";
import { sealVersioned } from "../../src/server/call/versioned_seal.ts";
import { customStore, memoryStore, type StoreEngine } from "../../src/stores/stores.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { closeAtEnd } from "../support/running.ts";
import { plainTool, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { measureHeap } from "../support/heap.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toStatus } from "../support/requests.ts";
import { toHello, toSessionRequest } from "../support/sessions.ts";

type Json = { readonly [key: string]: unknown };

const SECRET = "a secret of at least thirty-two characters";
const hello = toHello({ capabilities: { elicitation: {} } });
const ping = { id: 1, method: "ping" };

/** A client of one instance. */
interface Client {
  readonly server: Pick<Server, "fetch">;
  readonly address?: string;
  readonly principal?: string;
}

function open(options: Partial<ServerOptions> = {}): Server {
  const ask = plainTool("ask", async (ctx) => {
    const schema = { type: "object", properties: { name: { type: "string" } } } as const;
    const { content } = await ctx.elicit("who", { message: "Who?", schema });
    return `Hello, ${Object(content).name}`;
  });
  const work = tool({ name: "work", run: (_input, { signal }) => until(() => signal.aborted, "the call is aborted") });
  return closeAtEnd(
    createServer({ name: "ended", version: "1.0.0", secret: SECRET, handlers: [ask, work], ...options }),
  );
}

async function send(
  { server, address, principal }: Client,
  message: Json | readonly Json[] | undefined,
  id?: string,
  method = message ? "POST" : "DELETE",
): Promise<Response> {
  const body = Array.isArray(message) ? message : message && { jsonrpc: "2.0", ...message };
  const request = toSessionRequest(body, id === undefined ? {} : { "mcp-session-id": id }, { method });
  return await server.fetch(request, {
    ...address === undefined ? {} : { remoteAddr: { hostname: address } },
    ...principal === undefined ? {} : { principal: { id: principal } },
  });
}

async function begin(client: Client, message: Json = hello): Promise<string> {
  const response = await send(client, message);
  assertEquals(response.status, 200, await response.text());
  return response.headers.get("mcp-session-id") ?? "";
}

async function use(client: Client, id: string): Promise<number> {
  return await toStatus(send(client, ping, id));
}

async function end(client: Client, id: string): Promise<number> {
  return await toStatus(send(client, undefined, id));
}

/** Starts and ends `count` sessions. Returns some of their ids. */
async function flood(client: Client, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const id = await begin(client);
    assertEquals(await end(client, id), 204, `session ${i}`);
    if (i % 50 === 0) ids.push(id);
  }
  return ids;
}

/** Creates a store that can become unavailable, and whose values can be replaced. */
function makeFragile(timeoutMs = 100) {
  const memory = memoryStore()[INTERNALS];
  const fragile = {
    store: customStore(wrap, { timeoutMs }),
    isSilent: false,
    isGarbage: false,
    appended: 0,
    pending: 0,
  };
  const silent = () => new Promise<never>(() => {});
  async function wrap(): Promise<StoreEngine> {
    const engine = await memory.connect();
    return wrapEngine(engine, async ({ name, run }) => {
      if (fragile.isSilent && name !== "trim") return await silent();
      if (name === "append") fragile.appended++;
      const found = await run();
      return name === "get" && found && fragile.isGarbage ? { ...Object(found), value: "garbage" } : found;
    });
  }
  return fragile;
}

for (const [title, makeStore] of [["memory", undefined], ["a store", memoryStore]] as const) {
  const start = (options: Partial<ServerOptions> = {}) => open({ store: makeStore?.(), ...options });

  Deno.test(`a flood of ended sessions blocks no client and ends no other session (${title})`, async () => {
    const clock = fakeClock(Date.now());
    await using server = start({ clock });
    const [nat, far, ada] = [
      { server, address: "192.0.2.1" },
      { server, address: "192.0.2.2" },
      { server, address: "192.0.2.1", principal: "ada" },
    ];
    const clients = [nat, nat, far, ada];
    const ids = await Promise.all(clients.map((client) => begin(client)));
    assertEquals(await use(nat, ids[0]), 200);
    await clock.advance(120_000);
    await flood(nat, 1500);
    // Sessions that were used, that were never used, that belong to another address, and that belong to a principal.
    assertEquals(await Promise.all(clients.map((client, i) => use(client, ids[i]))), [200, 200, 200, 200]);
    assertEquals(await Promise.all(clients.map((client, i) => end(client, ids[i]))), [204, 204, 204, 204]);
    assertEquals(await Promise.all(clients.map((client, i) => use(client, ids[i]))), [404, 404, 404, 404]);
  });

  Deno.test(`an ended session stays ended for all clients, also after many later sessions of other clients (${title})`, async () => {
    await using server = start();
    const [nat, other] = [{ server, address: "192.0.2.1" }, { server, address: "192.0.2.2" }];
    const ended = await flood(nat, 200);
    for (let i = 0; i < 300; i++) {
      const client = { server, address: `2001:db8:${i.toString(16)}::1` };
      assertEquals(await end(client, await begin(client)), 204);
    }
    await flood(other, 300);
    // An address is not part of a session's identity.
    for (const id of ended) assertEquals([await use(nat, id), await use(other, id)], [404, 404]);
  });

  Deno.test(`an ended session is forgotten when its id has expired (${title})`, async () => {
    const clock = fakeClock(Date.now());
    await using server = start({ clock });
    const [id] = await flood({ server }, 1);
    const { pots } = server[INTERNALS].engine.accounts;
    assertEquals(pots.get("sessions.ended")?.used, 1);
    await clock.advance(26 * 3_600_000);
    assertEquals([pots.get("sessions.ended")?.used, await use({ server }, id)], [0, 404]);
  });

  Deno.test(`if a session ends during a batch, the batch's stream contains the batch's responses before it closes (${title})`, async () => {
    let isEnding: Promise<number> | undefined;
    const held = plainTool("held", async ({ log, signal }) => {
      log.info("starts");
      await until(() => signal.aborted, "the call is aborted");
    });
    // A batch yields to other requests after 20 ms. The session ends at that moment, before the batch's last message
    // runs.
    const last = plainTool("last", () => {
      isEnding = end(client, id);
      for (const since = performance.now(); performance.now() - since < 25;);
      return "";
    });
    await using server = start({ handlers: [held, last] });
    const client = { server };
    const id = await begin(client, { ...hello, params: { ...hello.params, protocolVersion: "2025-03-26" } });
    const call = (id: number, name: string) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name } });
    const batch = [call(1, "held"), call(2, "last"), { jsonrpc: "2.0", ...ping, id: 3 }];
    const response = await send(client, batch, id);
    assertEquals(response.headers.get("content-type"), "text/event-stream");
    const text = await response.text();
    assertEquals(await isEnding, 204);
    assertStringIncludes(text, "starts");
    assertStringIncludes(text, `"id":1,"error":{"code":-32600,"message":"${sentence()}"}`);
    for (const id of [1, 2, 3]) assertStringIncludes(text, `"id":${id},`);
  });

  Deno.test(`setting the clock back ends no new session, and makes no ended session valid again (${title})`, async () => {
    let date = Date.now();
    const clock = { ...fakeClock(), date: () => date };
    await using server = start({ clock });
    const client = { server, address: "192.0.2.1" };
    const ended = await flood(client, 200);
    for (const ms of [-3_600_000, -60_000, 7_200_000, -7_000_000]) {
      date += ms;
      const id = await begin(client);
      assertEquals(await use(client, id), 200, `the clock was changed by ${ms} ms`);
      for (const each of ended) assertEquals(await use(client, each), 404);
    }
  });
}

Deno.test("a client that has ended more than 256 sessions can continue its oldest ended session, and no session of another client", async () => {
  const reached: string[] = [];
  await using server = open({ observer: { limit: ({ limit }) => void reached.push(limit) } });
  const [ada, eve] = [{ server, principal: "ada" }, { server, principal: "eve" }];
  const [first] = await flood(ada, 1);
  const [other] = await flood(eve, 1);
  assertEquals(reached, []);
  await flood(eve, 300);
  assertEquals(new Set(reached), new Set(["sessions.ended"]));
  // The forgotten session still belongs to its principal.
  assertEquals([await use(eve, other), await use(ada, other), await use(ada, first)], [200, 404, 404]);
  assertEquals([await end(eve, other), await use(eve, other)], [204, 404]);
});

Deno.test("the memory of a process does not grow with the sessions that a client ends", async () => {
  const bytes = await measureHeap(new URL("ended_memory.ts", import.meta.url));
  assert(bytes < 150, `each ended session uses ${bytes} bytes`);
});

Deno.test("a session that one instance of a shared store has ended has ended on all instances, and no other session has", async () => {
  const store = memoryStore();
  const [a, b] = [open({ store }), open({ store })];
  const address = "192.0.2.1";
  const [here, there] = [{ server: a, address }, { server: b, address }];
  const [used, idle] = [await begin(here), await begin(here)];
  assertEquals(await use(here, used), 200);
  const ended = await flood(there, 400);
  assertEquals([await use(there, used), await use(here, used), await use(there, idle)], [200, 200, 200]);
  // The store has a value for each ended session, so it remembers more sessions than the memory of an instance.
  for (const id of ended) assertEquals([await use(here, id), await use(there, id)], [404, 404]);
  assertEquals(await end(there, used), 204);
  await until(async () => await use(here, used) !== 200, "the end of the session has reached this instance");
  assertEquals([await use(here, used), await use(there, used)], [404, 404]);
  // The session has also ended for an instance that starts later.
  const c = open({ store });
  for (const id of [...ended, used]) assertEquals(await use({ server: c, address }, id), 404);
});

Deno.test("after a restart with the same secret and store, ended sessions stay ended, and other servers have their own sessions", async () => {
  const memory = memoryStore()[INTERNALS];
  const store = () => customStore(memory.connect);
  const before = open({ store: store() });
  const ended = await flood({ server: before }, 300);
  await before.close();
  const after = open({ store: store() });
  const other = open({ store: store(), name: "other" });
  for (const id of ended) {
    assertEquals([await use({ server: after }, id), await use({ server: other }, id)], [404, 404]);
  }
  const id = await begin({ server: other });
  assertEquals([await use({ server: other }, id), await use({ server: after }, id)], [200, 404]);
});

Deno.test("while the store does not respond, ending a session gets 503, and the session ends on all instances once the store responds again", async () => {
  const fragile = makeFragile();
  const events: StoreEvent[] = [];
  const observer = { store: (event: StoreEvent) => void events.push(event) };
  const [a, b] = [open({ store: fragile.store, observer }), open({ store: fragile.store })];
  const [here, there] = [{ server: a, principal: "ada" }, { server: b, principal: "ada" }];
  const [id, untold] = [await begin(here), await begin(here)];
  assertEquals([await use(here, id), await use(there, id), await use(there, untold)], [200, 200, 200]);
  fragile.isSilent = true;
  const waiting = await send(here, undefined, id);
  assertEquals([waiting.status, waiting.headers.get("retry-after")], [503, "1"]);
  assertEquals((await readReply(waiting)).error.message, sentence());
  assertEquals([await end(here, id), await end(here, untold)], [503, 503]);
  // The session has ended on this instance. The other instances do not know about this end yet.
  assertEquals([await use(here, id), await end({ ...here, principal: "bob" }, id)], [404, 404]);
  fragile.isSilent = false;
  let status = 503;
  await until(async () => (status = await end(here, id)) !== 503, "the store responds again");
  assertEquals(status, 204);
  // The end is written even if no request repeats it.
  await until(async () => await use(there, untold) !== 200, "the other end has been written");
  assertEquals([await use(there, id), await use(there, untold)], [404, 404]);
  assertEquals(events.map(({ state }) => state), ["degraded", "recovered"]);
});

Deno.test("the number of unwritten session ends per client is limited; beyond the limit a session continues, and other clients can end their sessions", async () => {
  const fragile = makeFragile();
  const server = open({ store: fragile.store });
  const [ada, bob] = [{ server, principal: "ada" }, { server, principal: "bob" }];
  const ids: string[] = [];
  for (let i = 0; i < 80; i++) ids.push(await begin(ada));
  const last = await begin(bob);
  for (const id of ids) assertEquals(await use(ada, id), 200);
  assertEquals(await use(bob, last), 200);
  fragile.isSilent = true;
  const says = await Promise.all(
    ids.map(async (id) => (await readReply(await send(ada, undefined, id))).error.message),
  );
  const statuses: number[] = [];
  for (const id of ids) statuses.push(await use(ada, id));
  const [pending, refused] = [404, 200].map((status) => says.filter((_, i) => statuses[i] === status));
  assertEquals([pending.length, refused.length], [64, 16]);
  for (const message of pending) assertEquals(message, sentence());
  for (const message of refused) assertEquals(message, sentence());
  const { error } = await readReply(await send(bob, undefined, last));
  assertEquals(error.message, sentence());
  fragile.isSilent = false;
  const later = async (client: Client, id: string) => {
    let status = 503;
    await until(async () => (status = await end(client, id)) !== 503, "the store responds again");
    return status;
  };
  for (const id of ids) assertEquals(await later(ada, id), 204);
  assertEquals(await later(bob, last), 204);
  const other = open({ store: fragile.store });
  for (const id of ids) assertEquals(await use({ ...ada, server: other }, id), 404);
});

Deno.test("a session whose record is unreadable has ended, and new sessions are accepted", async () => {
  const fragile = makeFragile();
  const [a, b] = [open({ store: fragile.store }), open({ store: fragile.store })];
  const [here, there] = [{ server: a }, { server: b }];
  const id = await begin(here);
  const level = { id: 2, method: "logging/setLevel", params: { level: "error" } };
  assertEquals((await send(here, level, id)).status, 200);
  fragile.isGarbage = true;
  assertEquals([await use(there, id), await use(here, id)], [404, 200]);
  fragile.isGarbage = false;
  assertEquals(await use(there, id), 200);
  const next = await begin(there);
  assertEquals([await use(there, next), await use(here, next)], [200, 200]);
});

for (const record of ["text", null, 5, [], { level: 5 }, { uris: "x" }, { uris: [1] }, { level: "error", uris: {} }]) {
  Deno.test(`a session with the record ${JSON.stringify(record)} has ended`, async () => {
    const memory = memoryStore();
    await using server = open({ store: customStore(memory[INTERNALS].connect) });
    const id = await begin({ server });
    const realm = JSON.stringify(["ended", "/mcp"]);
    const hashed = new TextEncoder().encode(JSON.stringify([realm, "session", id]));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", hashed));
    const key = btoa(String.fromCharCode(...digest)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const value = await sealVersioned(new Sealer({ secret: SECRET, realm }), `store ${key}`, record);
    await memory.set(key, value, { ttlMs: 60_000 });
    assertEquals(await use({ server }, id), 404);
    assertEquals(await use({ server }, await begin({ server })), 200);
  });
}

Deno.test("a session id of an unknown version is refused like an unknown id", async () => {
  await using server = open();
  const sealer = new Sealer({ secret: SECRET, realm: JSON.stringify(["ended", "/mcp"]) });
  const id = await begin({ server });
  const [version, value] = await sealer.open("session", id) as [number, unknown];
  assertEquals([version, await use({ server }, id)], [1, 200]);
  for (const other of [[2, value], [0, value], ["1", value], [value], value]) {
    const text = await sealer.seal("session", other);
    const unknown = await send({ server }, ping, text);
    const foreign = await send({ server }, ping, "x".repeat(200));
    assertEquals([unknown.status, await readReply(unknown)], [404, await readReply(foreign)]);
    assertEquals(await end({ server }, text), 404);
  }
});

Deno.test("the number of answers and cancellations that are forwarded although no instance waits for them is limited", async () => {
  const fragile = makeFragile();
  const [a, b] = [open({ store: fragile.store }), open({ store: fragile.store })];
  const [here, there] = [{ server: a, principal: "ada" }, { server: b, principal: "ada" }];
  const id = await begin(here);
  assertEquals([await use(here, id), await use(there, id)], [200, 200]);
  const before = fragile.appended;
  const ids = ["ask-1", `ask-${crypto.randomUUID()}`, crypto.randomUUID(), 5, "x".repeat(200), `ask-${id}`];
  for (let i = 0; i < 200; i++) {
    const answered = await send(there, { id: ids[i % ids.length], result: { action: "accept" } }, id);
    assertEquals(answered.status, 202);
  }
  assertEquals(fragile.appended, before, "meaningless answers reached the store");
  const statuses: number[] = [];
  for (let i = 0; i < 700; i++) {
    const cancelled = { method: "notifications/cancelled", params: { requestId: i } };
    statuses.push((await send(there, cancelled, id)).status);
  }
  assertEquals([statuses.filter((each) => each === 202).length, statuses.filter((each) => each === 503).length], [
    512,
    188,
  ]);
  assert(fragile.appended - before <= 1026, `${fragile.appended - before} entries were appended`);
  // Another client has a separate limit.
  const bob = { ...there, principal: "bob" };
  const session = await begin(bob);
  assertEquals(await use(bob, session), 200);
  const cancelled = { method: "notifications/cancelled", params: { requestId: 1 } };
  assertEquals((await send(bob, cancelled, session)).status, 202);
});

Deno.test("an answer reaches the instance that asked, and is forwarded once", async () => {
  const store = memoryStore();
  const [a, b] = [open({ store }), open({ store })];
  const [here, there] = [{ server: a }, { server: b }];
  const [id, other] = [await begin(here), await begin(here)];
  assertEquals([await use(there, id), await use(there, other)], [200, 200]);
  const response = await send(here, { id: 7, method: "tools/call", params: { name: "ask" } }, id);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("elicitation/create")) text += (await reader?.read())?.value ?? "";
  const asked = /"id":"(ask-[^"]+)"/.exec(text)?.[1];
  assert(asked && asked.length <= 256, `the id ${asked}`);
  const answer = { id: asked, result: { action: "accept", content: { name: "Ada" } } };
  // An answer from another session is not accepted, whichever instance gets it.
  const eve = { id: asked, result: { action: "accept", content: { name: "Eve" } } };
  for (const client of [here, there]) assertEquals((await send(client, eve, other)).status, 202);
  for (let i = 0; i < 5; i++) assertEquals((await send(there, answer, id)).status, 202);
  while (!text.includes("Hello, Ada")) {
    const { value, done } = await reader?.read() ?? { done: true };
    assert(!done, text);
    text += value;
  }
  await reader?.cancel();
});

Deno.test("one client cannot fill the queue of pending store operations", async () => {
  const fragile = makeFragile(400);
  await using server = open({ store: fragile.store });
  const [ada, bob] = [{ server, principal: "ada" }, { server, principal: "bob" }];
  const ids: string[] = [];
  for (let i = 0; i < 400; i++) ids.push(await begin(ada));
  const other = await begin(bob);
  fragile.isSilent = true;
  const flooding = ids.map((id) => use(ada, id));
  const quick = (await Promise.all(flooding.map((each) => Promise.race([each, Promise.resolve(0)])))).length;
  const fair = use(bob, other);
  const statuses = await Promise.all(flooding);
  assertEquals(quick, 400);
  // 32 requests use the store at once, and 64 wait for their turn.
  assertEquals(statuses.filter((each) => each === 503).length, 400 - 32 - 64);
  assertEquals(await fair, 200, "another client could not open a session without the store");
});
