// An authentication of one's own gets the handle of the server: sealed values, a part of the store, ids that can be used
// once, and private values of principals.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, extension, type Principal, type ServerOptions, tool } from "../../mod.ts";
import { apiKey, authScheme, customAuth, refuseRequest, requirePrincipal } from "../../src/auth/auth.ts";
import type { Authentication } from "../../src/server/engine/auth.ts";
import { sha256 } from "../../src/core/kit/sha256.ts";
import { MarkedIds, toOwnerHash } from "../../src/server/engine/marked_ids.ts";
import type { ServerHandle } from "../../src/extensions/extension.ts";
import { audit } from "../../src/observe/observe.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, gate, textOf, turn, until } from "../support/behaviour.ts";
import { createLosable, wrapEngine } from "../support/engines.ts";
import { sentence } from "../support/messages.ts";
import { declared } from "../tasks/declared.ts";
import { openShared } from "../tasks/shared_store.ts";
import { openServer } from "../support/servers.ts";

const secret = "a secret of at least thirty-two characters";

/** The handles of the servers that use {@linkcode tickets}, newest last. */
type Handles = ServerHandle[];

/** Authenticates by sealed tickets that `issue` has created, each with a private token. */
function tickets(handles: Handles = []) {
  const auth = {
    scheme: authScheme({ name: "tickets()", schemes: ["ticket"], prefix: "desk" }),
    credentials: { headers: ["authorization"] },
    challenge: { scheme: "Ticket" },
    start: (server) => void handles.push(server),
    async authenticate({ headers }, _info, server) {
      const [, text = ""] = /^Ticket (.+)$/i.exec(headers.get("authorization") ?? "") ?? [];
      const { id, token } = Object(await server?.open(text));
      return typeof id === "string" ? server?.attach({ id: `desk:${id}` }, { token }) : undefined;
    },
    readPrincipal: (principal) => principal.id.startsWith("desk:") ? principal : undefined,
  } satisfies Authentication;
  return auth;
}

const issue = async (handle: ServerHandle, id: string) =>
  `Ticket ${await handle.seal({ id, token: `token-of-${id}` })}`;

const show = (handles: Handles) =>
  tool({
    name: "show",
    run(_input, ctx) {
      const seen = [
        handles.at(-1)?.attached(ctx),
        ctx.principal,
        Object.keys(ctx),
        ctx.http?.headers.get("authorization"),
      ];
      return JSON.stringify([...seen, requirePrincipal(ctx).id]);
    },
  });

Deno.test("an authentication of one's own keeps a private value of a principal, alone and in a list", async () => {
  for (const isListed of [false, true]) {
    const handles: Handles = [];
    const own = tickets(handles);
    const events: unknown[] = [];
    const observer = { auth: (event: unknown) => events.push(event), call: (event: unknown) => events.push(event) };
    const records: unknown[] = [];
    const auth = isListed ? [apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853" } }), own] : own;
    const trail = audit({ write: (record) => void records.push(record) });
    const server = openServer({ auth, observer, use: [trail], handlers: [show(handles)] });
    await server.ready();
    const headers = { authorization: await issue(handles[0], "ada") };
    for (const era of ["modern", "legacy"] as const) {
      await using client = await connectTest(server, { transport: "http", era, headers });
      const [value, principal, , header, id] = JSON.parse(textOf(await client.callTool("show")));
      assertEquals([value, principal, header, id], [{ token: "token-of-ada" }, { id: "desk:ada" }, null, "desk:ada"]);
    }
    const told = JSON.stringify([events, records]);
    assert(events.length && records.length);
    assertEquals(told.includes("token-of-ada"), false, told);
    // A ticket of another server is refused.
    const others: Handles = [];
    await using other = createServer({ name: "other", version: "1.0.0", auth: tickets(others) });
    await other.ready();
    const foreign = new Request("http://localhost/mcp", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
    assertEquals((await other.fetch(foreign)).status, 401);
  }
});

Deno.test("a task that another instance resumes has the private value of its caller, and nobody else has it", async () => {
  const { connect: open } = memoryStore()[INTERNALS];
  const written: unknown[] = [];
  const openRecorded = () =>
    customStore(async () =>
      wrapEngine(await open(), ({ args, run }) => {
        written.push(args);
        return run();
      }), { leaseMs: 1000, pollMs: 20 });
  const serve = (run: (handles: Handles, ctx: Context) => unknown) => {
    const handles: Handles = [];
    const work = tool({
      name: "work",
      use: [task({ resume: true })],
      run: async (_input, ctx) => JSON.stringify(await run(handles, ctx)),
    });
    const options: ServerOptions = {
      name: "pair",
      version: "1.0.0",
      secret,
      // The authentication starts later than the extension that resumes tasks.
      auth: { ...tickets(), start: async (server) => void (await turn(20), handles.push(server)) },
      handlers: [tasks(), work],
      store: openRecorded(),
      limits: { calls: { closeMs: 20 } },
    };
    return { server: createServer(options), handles };
  };
  const first = serve((_handles, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  await first.server.ready();
  const headers = { authorization: await issue(first.handles[0], "ada") };
  const connect = (server: typeof first.server) => connectTest(server, { ...declared, transport: "http", headers });
  const client = await connect(first.server);
  const { taskId } = await client.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  await client.close();
  await first.server.close();
  const text = JSON.stringify(written);
  assert(text.length > 1000);
  assertEquals(text.includes("token-of-ada"), false);
  const second = serve((handles, ctx) => handles[0].attached(ctx) ?? null);
  await using other = await connect(second.server);
  let ended: { readonly [key: string]: unknown } = {};
  const isEnded = async () => (ended = await other.request("tasks/get", { taskId })).status !== "working";
  await until(isEnded, "the end of the task");
  assertEquals(textOf(Object(ended.result)), JSON.stringify({ token: "token-of-ada" }));
  await second.server.close();
});

Deno.test("a value that is not JSON cannot be attached, and a principal without one has none", async () => {
  const values: unknown[] = [undefined, () => 1, Symbol("x")];
  const faults: string[] = [];
  let value: unknown;
  let handle: ServerHandle | undefined;
  const auth: Authentication = {
    start: (server) => void (handle = server),
    authenticate: (_request, _info, server) => value === "none" ? { id: "ada" } : server?.attach({ id: "ada" }, value),
  };
  const look = tool({
    name: "look",
    run: (_input, ctx) => handle?.attached(ctx) === undefined ? "nothing" : "a value",
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(Object(error).message) };
  const server = openServer({ auth, observer, handlers: [look] });
  for (value of values) assertEquals(await ask(server, ""), 500);
  assertEquals(faults.length, values.length);
  assertEquals(faults[0], sentence("JSON"));
  for (const [given, text] of [["none", "nothing"], [null, "a value"], [0, "a value"]] as const) {
    value = given;
    await using client = await connectTest(server, { transport: "http" });
    assertEquals(textOf(await client.callTool("look")), text);
  }
});

Deno.test("callers that share an API key keep their own values, also at the same time", async () => {
  const handles: Handles = [];
  const keys = apiKey({ keys: { team: "team-2f6c1e0b9d4a7853" } });
  const auth: Authentication = {
    ...keys,
    start: (server) => void handles.push(server),
    async authenticate(request, info, server) {
      const found = await keys.authenticate(request, info, server);
      if (!found || !("id" in found)) return found;
      return server?.attach(found, { token: request.headers.get("x-upstream") });
    },
  };
  const { pass, open } = gate();
  const look = tool({
    name: "look",
    async run(_input, ctx) {
      await pass;
      return JSON.stringify(handles[0].attached(ctx));
    },
  });
  const server = openServer({ auth, handlers: [look] });
  await server.ready();
  const call = async (token: string) => {
    const headers = { authorization: "Bearer team-2f6c1e0b9d4a7853", "x-upstream": token };
    await using client = await connectTest(server, { transport: "http", headers });
    return textOf(await client.callTool("look"));
  };
  const calls = ["one", "two", "three"].map(call);
  await until(() => server.stats().running === 3, "all calls run");
  open();
  assertEquals(await Promise.all(calls), ["one", "two", "three"].map((token) => JSON.stringify({ token })));
});

/** Uses ids of callers once. The header `x-id` is the id. */
function once(ids: Handles = []): Authentication {
  return {
    start: (server) => void ids.push(server),
    async authenticate({ headers }, { now }, server) {
      const [principal, id] = (headers.get("x-id") ?? "").split("/");
      const use = await server?.markUsed({ id, principal, at: now, ttlMs: 60_000 });
      return use === "new" ? { id: principal } : refuseRequest(use === "unknown" ? 503 : 401, { reason: `${use}` });
    },
  };
}

async function ask(server: { fetch(request: Request): Response | Promise<Response> }, id: string): Promise<number> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "x-id": id };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const response = await server.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }));
  await response.text();
  return response.status;
}

const toStatus = (statuses: readonly number[]) =>
  statuses.map((status) => status === 401 || status === 503 ? status : "accepted");

Deno.test("an id can be used once, on all instances with the same store", async () => {
  const store = memoryStore();
  for (const shared of [undefined, store]) {
    const open = () =>
      createServer({ name: "s", version: "1.0.0", secret, auth: once(), store: shared && openShared(shared) });
    const servers = shared ? [open(), open(), open()] : [open()];
    const all = Array.from({ length: 12 }, (_, i) => ask(servers[i % servers.length], "ada/one"));
    const statuses = toStatus(await Promise.all(all));
    assertEquals(statuses.filter((status) => status === "accepted").length, 1, statuses.join());
    // The id of another principal, and another id of the same principal, are new.
    assertEquals(toStatus([await ask(servers[0], "bob/one"), await ask(servers[0], "ada/two")]), [
      "accepted",
      "accepted",
    ]);
    for (const server of servers) await server.close();
  }
});

Deno.test("ids of one principal that are too many do not use up ids of another, and are never accepted twice", async () => {
  const clock = fakeClock(1_800_000_000_000);
  const handles: Handles = [];
  const server = openServer({ auth: once(handles), clock });
  await server.ready();
  const [{ markUsed }] = handles;
  const use = (principal: string, id: number, at: number) => markUsed({ id: `${id}`, principal, at, ttlMs: 60_000 });
  for (let i = 0; i < 600; i++) assertEquals(await use("ada", i, clock.date() + i), "new");
  const again = await Promise.all(Array.from({ length: 600 }, (_, i) => use("ada", i, clock.date() + i)));
  assertEquals(new Set(again), new Set(["used", "too-old"]));
  assertEquals(await use("bob", 1, clock.date()), "new");
});

Deno.test("hostile: keys of one principal take no marks of each other, and the newest key is refused if nothing is left", async () => {
  const clock = fakeClock(1_800_000_000_000);
  for (const shared of [undefined, memoryStore({ clock })]) {
    const handles: Handles = [];
    const options = { secret, auth: once(handles), store: shared, clock };
    const server = openServer({ ...options });
    await server.ready();
    const [{ markUsed }] = handles;
    let count = 0;
    const use = async (key: string, at = clock.date(), id = `${count++}`) =>
      await markUsed({ id, principal: "ada", key, at, ttlMs: 60_000 });
    const fill = async (key: string, times: number, aheadMs = 0) => {
      for (let i = 0; i < times; i++) assertEquals(await use(key, clock.date() + aheadMs + i), "new");
    };
    await clock.advance(60_000);
    assertEquals(await use("phone", clock.date(), "first"), "new");
    // The clock of this key is a minute ahead.
    await fill("laptop", 300, 60_000);
    assertEquals([await use("laptop"), await use("phone"), await use("watch")], ["too-old", "new", "new"]);
    assertEquals(await use("phone", clock.date(), "first"), "used");
    for (let key = 0; key < 500; key++) await use(`key ${key}`, clock.date() + 1000);
    assertEquals([await use("new"), await use("phone"), await use("watch")], ["too-old", "new", "new"]);
    assertEquals(await markUsed({ id: "1", principal: "bob", at: clock.date(), ttlMs: 60_000 }), "new");
    // The room of this key has shrunk, so that a cut-off of its own has replaced the mark.
    assertEquals(await use("phone", clock.date(), "first"), "too-old");
    // All of these ids have expired.
    await clock.advance(600_000);
    assertEquals([await use("new"), await use("laptop")], ["new", "new"]);
  }
});

Deno.test("ids that have expired leave their room to others, with 100,000 principals", async () => {
  const clock = fakeClock(1_800_000_000_000);
  const handles: Handles = [];
  const server = openServer({ auth: once(handles), clock });
  await server.ready();
  const [{ markUsed }] = handles;
  const use = async (principal: string, id: number) =>
    await markUsed({ id: `${id}`, principal, at: clock.date(), ttlMs: 60_000 });
  for (let user = 0; user < 100_000; user += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => use(`user ${user + i}`, 1)));
    await clock.advance(600);
  }
  const uses = await Promise.all(Array.from({ length: 256 }, (_, id) => use("ada", id)));
  assertEquals(new Set(uses), new Set(["new"]));
  assertEquals(await use("ada", 0), "used");
});

Deno.test("during a rolling update, an id that an instance of an earlier version has marked counts as used for 25 hours", async () => {
  const clock = fakeClock(1_800_000_000_000);
  const gets: string[] = [];
  const { connect } = memoryStore({ clock })[INTERNALS];
  const engine = wrapEngine(await connect(), async ({ name, args: [key], run }) => {
    if (name === "get") gets.push(`${key}`);
    return await run();
  });
  const handles: Handles = [];
  const store = customStore(() => engine);
  const server = openServer({ auth: once(handles), store, clock });
  await server.ready();
  const [{ markUsed }] = handles;
  const { core, accounts } = server[INTERNALS].engine;
  // The list of an earlier version contains the same ids with longer hashes, and without keys.
  const markFormer = async (principal: string, id: string, at: number) => {
    const { former } = await toOwnerHash(JSON.stringify(["auth", principal]));
    const mark = { client: former, at: at + 5000, id: await sha256(id) };
    await core.shared?.markUsed(accounts.find(undefined), mark, { ttlMs: 90_000_000, isDated: true });
  };
  const use = async (id: string, at: number) =>
    await markUsed({ id, principal: "ada", key: "phone", at, ttlMs: 86_400_000 });
  const at = clock.date();
  assertEquals(await use("zero", at), "new");
  await markFormer("ada", "one", at + 1000);
  assertEquals([await use("one", at + 1000), await use("two", at + 1000)], ["used", "new"]);
  for (let i = 0; i < 300; i++) await markFormer("ada", `many ${i}`, at + 2000);
  assertEquals([await use("many 0", at + 2000), await use("three", at + 3000)], ["too-old", "new"]);
  const before = gets.length;
  assertEquals(await use("four", at + 4000), "new");
  const reads = gets.length - before;
  await clock.advance(90_001_000);
  assertEquals(await use("five", clock.date()), "new");
  const later = gets.length;
  assertEquals(await use("six", clock.date()), "new");
  assertEquals(gets.length - later, reads - 1);
});

Deno.test("a marked id never becomes unmarked before it expires, whatever clients and keys mark in a full set", () => {
  let seed = 7;
  const random = (max: number) => (seed = seed * 48_271 % 2_147_483_647) % max;
  for (const [clients, keys] of [[1, 800], [3, 300], [700, 1], [40, 40], [2000, 3]]) {
    let ids = new MarkedIds();
    const accepted = new Map<string, number>();
    for (let i = 0, date = 10_000; i < 6000; i++, date += random(3)) {
      const id = `${random(3000)}`;
      const mark = {
        client: `e${random(clients)}`,
        key: `${random(keys)}`,
        at: date - 500 + random(1000),
        id,
        ttlMs: 2000,
      };
      const name = [mark.client, mark.key, id].join();
      const expires = accepted.get(name);
      if (expires !== undefined && expires > date) mark.at = expires - mark.ttlMs;
      const { found } = ids.mark(mark, { date, ttlMs: 1 });
      if (expires !== undefined && expires > date) assert(found, `${name} was accepted twice`);
      else if (!found) accepted.set(name, mark.at + mark.ttlMs);
      if (i % 500 === 0) ids = MarkedIds.read(JSON.parse(JSON.stringify(ids)), 1) ?? new MarkedIds();
    }
    // The number of keys and marks stays limited.
    assert(JSON.stringify(ids).length < 60_000);
    assert(accepted.size > 1000);
  }
});

Deno.test("a list of used ids that an earlier version has written can be read, and its marks expire", () => {
  const read = MarkedIds.read({ cutoff: 5, clients: [["a1", 10, [[20, "one"], [30, "two"]]]] }, 1000);
  const find = (id: string, at: number) => read?.find({ client: "a1", id, at }).found;
  const found = () => [find("one", 20), find("two", 30), find("three", 10), find("three", 40)];
  assertEquals(found(), ["marked", "marked", "cut-off", undefined]);
  read?.mark({ client: "a2", id: "new", at: 1000 }, { date: 1025, ttlMs: 1000 });
  assertEquals(found(), [undefined, "marked", "cut-off", undefined]);
});

Deno.test("hostile: an id without a time, a principal or a text is never marked, and spoils no other id", async () => {
  const wrong: readonly unknown[] = [undefined, null, NaN, -1, Infinity, "2026-11-26", "", {}, Promise.resolve(1), []];
  for (const shared of [undefined, memoryStore()]) {
    const handles: Handles = [];
    const server = openServer({ auth: once(handles), store: shared });
    await server.ready();
    const { markUsed, clock } = handles[0];
    const right = { id: "one", principal: "ada", at: clock.date(), ttlMs: 60_000 };
    assertEquals(await markUsed(right), "new");
    for (const value of wrong) {
      for (const name of ["id", "principal", "key", "at", "ttlMs"]) {
        const isText = name === "id" || name === "principal" || name === "key";
        const isRight = isText ? value === "2026-11-26" || name === "key" && value === undefined : false;
        // The cast is safe, because the test passes wrong values on purpose.
        const use = { ...right, [name]: value } as typeof right;
        if (!isRight) await assertRejects(() => markUsed(use), TypeError);
      }
    }
    assertEquals([await markUsed(right), await markUsed({ ...right, id: "two" })], ["used", "new"]);
  }
});

Deno.test("an id of one day stays used, whatever other ids of shorter life are marked", async () => {
  const clock = fakeClock(1_800_000_000_000);
  for (const shared of [undefined, memoryStore({ clock })]) {
    const handles: Handles = [];
    const options = { secret, auth: once(handles), store: shared, clock };
    const server = openServer({ ...options });
    await server.ready();
    const { markUsed } = handles[0];
    const ticket = { id: "ticket", principal: "ada", at: clock.date(), ttlMs: 86_400_000 };
    assertEquals(await markUsed(ticket), "new");
    for (let i = 0; i < 20; i++) {
      await clock.advance(4_000_000);
      // Some of these principals share a list of used ids with the ticket.
      for (const principal of ["ada", `bob ${i}`, `eve ${i}`]) {
        await markUsed({ id: `${i}`, principal, at: clock.date(), ttlMs: 1000 });
      }
      assertEquals(await markUsed(ticket), "used");
    }
  }
});

Deno.test("after the store has lost its data, ids that were created before are refused", async () => {
  const clock = fakeClock(1_800_000_000_000);
  const { connect: open } = memoryStore({ clock })[INTERNALS];
  const engine = await open();
  const store = customStore(() => engine);
  const handles: Handles = [];
  const server = openServer({ auth: once(handles), store, clock });
  await server.ready();
  const { markUsed } = handles[0];
  const { signal } = new AbortController();
  const list = async () => await engine.list("", { limit: 1000, signal });
  await until(async () => (await list()).length, "the store contains the time since which it records used ids");
  const old = { id: "old", principal: "ada", at: clock.date(), ttlMs: 86_400_000 };
  await clock.advance(60_000);
  assertEquals([await markUsed(old), await markUsed(old)], ["new", "used"]);
  for (const { key } of await list()) await engine.delete(key, { signal });
  assertEquals(await markUsed(old), "too-old");
  await clock.advance(10_000);
  assertEquals(await markUsed({ ...old, id: "new", at: clock.date() }), "new");
});

Deno.test("hostile: requests that wait for a slow start are limited, time out, and end when the server closes", async () => {
  const { pass } = gate();
  const auth = customAuth(() => ({ id: "ada" }), { start: () => pass });
  const clock = fakeClock();
  const server = openServer({ auth, clock, observer: { fault() {} } });
  const statuses: number[] = [];
  const all = Array.from({ length: 1500 }, async () => void statuses.push(await ask(server, "")));
  await until(() => statuses.length > 100, "the requests beyond the limit");
  const ended = Promise.all(all);
  await advanceUntil(clock, 1000, ended);
  assertEquals(new Set(statuses), new Set([503]));
  const waiting = [ask(server, ""), ask(server, "")];
  await turn(5);
  const closing = server.close();
  assertEquals(await Promise.all(waiting), [503, 503]);
  await advanceUntil(clock, 1000, closing);
  assertEquals(await ask(server, ""), 503);
});

Deno.test("an authentication is not started again after its server was closed", async () => {
  let starts = 0;
  const route = { path: "/about", fetch: () => new Response("about") };
  const auth: Authentication = { start: () => void starts++, authenticate: () => ({ id: "ada" }), routes: [route] };
  const server = openServer({ auth, observer: { fault() {} } });
  const about = async () => (await server.fetch(new Request("http://localhost/about"))).status;
  assertEquals(await about(), 200);
  await server.close();
  assertEquals([await about(), await ask(server, ""), starts], [503, 503, 1]);
  await assertRejects(() => server.ready());
  assertEquals(starts, 1);
});

Deno.test("a call for an earlier caller does not give its private value to other requests of the principal", async () => {
  const handles: Handles = [];
  const keys = apiKey({ keys: { team: "team-2f6c1e0b9d4a7853" } });
  let saved: { readonly principal?: Principal; readonly attached?: string } = {};
  let jobs: ServerHandle | undefined;
  const auth: Authentication = {
    ...keys,
    start: (server) => void handles.push(server),
    async authenticate(request, info, server) {
      const found = await keys.authenticate(request, info, server);
      const token = request.headers.get("x-upstream");
      return found && "id" in found && token ? server?.attach(found, { token }) : found;
    },
  };
  const saver = extension({ id: "com.example/saver", start: (server) => void (jobs = server) });
  const look = tool({ name: "look", run: (_input, ctx) => JSON.stringify(handles[0].attached(ctx) ?? null) });
  const save = tool({
    name: "save",
    use: [
      saver.layer({
        async around(call, next) {
          saved = { principal: call.ctx.principal, attached: await call.sealAttached() };
          return await next();
        },
      }),
    ],
    run: () => "saved",
  });
  const server = openServer({ auth, handlers: [saver, look, save] });
  await server.ready();
  const connect = (headers: Record<string, string>) =>
    connectTest(server, { transport: "http", headers: { authorization: "Bearer team-2f6c1e0b9d4a7853", ...headers } });
  await using first = await connect({ "x-upstream": "of-ada" });
  await first.callTool("save");
  await using other = await connect({});
  assertEquals(textOf(await other.callTool("look")), "null");
  // The principal of a request without a value has the same members.
  const { principal } = { principal: { ...saved.principal, id: "apikey:team" } };
  const result = await jobs?.call({ method: "tools/call", params: { name: "look" }, ...saved, principal });
  assertEquals(textOf(Object(result)), JSON.stringify({ token: "of-ada" }));
  assertEquals(textOf(await other.callTool("look")), "null");
  await assertRejects(
    async () =>
      await jobs?.call({ method: "tools/call", params: { name: "look" }, ...saved, principal: { id: "eve" } }),
    TypeError,
    sentence("attached"),
  );
});

Deno.test("while the store fails, it is unknown whether an id was used", async () => {
  const losable = createLosable();
  const server = openServer({ auth: once(), store: losable.open() });
  assertEquals(toStatus([await ask(server, "ada/one")]), ["accepted"]);
  losable.isLost = true;
  assertEquals(toStatus([await ask(server, "ada/two")]), [503]);
  losable.isLost = false;
  await until(async () => await ask(server, "ada/three") !== 503, "the store responds");
  assertEquals(toStatus([await ask(server, "ada/one")]), [401]);
});

Deno.test("an authentication that cannot start is started again with the next request", async () => {
  const steps: string[] = [];
  const faults: string[] = [];
  let fails = true;
  const auth = customAuth((_request, _info, server) => server && { id: "ada" }, {
    start() {
      steps.push("start");
      if (fails) throw new Error("no connection");
      return () => {
        steps.push("stop");
        throw new Error("stuck");
      };
    },
  });
  const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(Object(error).message) };
  const server = openServer({ auth, observer });
  await assertRejects(() => server.ready(), Error, "no connection");
  assertEquals([await ask(server, ""), faults], [500, ["no connection"]]);
  fails = false;
  const statuses = await Promise.all([ask(server, ""), ask(server, "")]);
  assertEquals(statuses.includes(500), false, statuses.join());
  assertEquals(steps, ["start", "start", "start"]);
  await server.close();
  assertEquals([steps.slice(3), faults.slice(1)], [["stop"], ["stuck"]]);
});

Deno.test("if a scheme of a list cannot start, the other schemes are stopped and started again", async () => {
  const steps: string[] = [];
  let fails = true;
  const good = customAuth(() => undefined, {
    form: "bearer",
    prefix: "good",
    start: () => (steps.push("good"), () => void steps.push("good stops")),
  });
  const bad = customAuth(() => undefined, {
    form: { header: "x-bad" },
    prefix: "bad",
    start() {
      steps.push("bad");
      if (fails) throw new Error("no connection");
    },
  });
  const server = openServer({ auth: [good, bad] });
  await assertRejects(() => server.ready(), Error, "no connection");
  assertEquals(steps, ["good", "bad", "good stops"]);
  fails = false;
  await server.ready();
  assertEquals(steps.slice(3), ["good", "bad"]);
});

Deno.test("an authentication starts although the store does not respond", async () => {
  const hanging = customStore(() => new Promise<never>(() => {}), { timeoutMs: 2000 });
  let isDegraded = false;
  const observer = { store: () => void (isDegraded = true) };
  const auth = apiKey({ keys: { ada: "ada-2f6c1e0b9d4a7853" } });
  const started = { ...auth, start() {} };
  const limits = { calls: { closeMs: 20 } };
  const server = openServer({ auth: started, store: hanging, limits, observer });
  const headers = { authorization: "Bearer ada-2f6c1e0b9d4a7853" };
  const client = await connectTest(server, { transport: "http", headers });
  assertEquals((await client.request("server/discover")).resultType, "complete");
  assertEquals(isDegraded, false, "the request waited for the store");
  await client.close();
  await hanging.close();
});
