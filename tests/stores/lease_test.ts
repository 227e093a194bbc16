// The lease of a process, by which other processes soon detect that the process has ended.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import { openOn, wrapEngine } from "../support/engines.ts";
import { readReply } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const LEASE_MS = 300;

/** Creates the store of a process. After the process is killed, other processes receive nothing from it. */
function makeProcess(shared: Store, clock?: FakeClock) {
  const process = { isKilled: false, commands: [] as string[] };
  const connect = async () =>
    wrapEngine(await shared[INTERNALS].connect(), async ({ name, run }) => {
      process.commands.push(name);
      return process.isKilled ? await new Promise<never>(() => {}) : await run();
    });
  const options = { leaseMs: LEASE_MS };
  const store = clock ? openOn(clock, connect, options) : customStore(connect, options);
  return { process, store };
}

Deno.test("a lease is held until its process ends or its last user releases it", async () => {
  const clock = fakeClock();
  const shared = memoryStore({ clock });
  const [a, b] = [makeProcess(shared, clock), makeProcess(shared, clock)];
  const isHeld = async () => await shared.get(a.store.lease.id) !== undefined;
  const release = await a.store.lease.hold();
  for (; clock.now() < 3 * LEASE_MS; await clock.advance(20)) assertEquals(await isHeld(), true);
  release();
  await until(async () => {
    await clock.advance(20);
    return !await isHeld();
  }, "the lease has been released");
  await a.store.lease.hold();
  a.process.isKilled = true;
  await clock.advance(LEASE_MS - 1);
  assertEquals(await isHeld(), true);
  await clock.advance(1);
  assertEquals(await isHeld(), false);
  await Promise.all([a.store.close(), b.store.close()]);
});

Deno.test("a closed store releases its lease", async () => {
  const shared = memoryStore();
  const store = customStore(shared[INTERNALS].connect, { leaseMs: 60_000 });
  await store.lease.hold();
  assert(await shared.get(store.lease.id));
  await store.close();
  // Other processes need only one check.
  assertEquals(await shared.lease.isHeld(store.lease.id), false);
  assertEquals([memoryStore({ leaseMs: 70 }).lease.ms, memoryStore().lease.ms], [70, 5000]);
});

Deno.test("once the store is available again, a lease is renewed", async () => {
  const shared = memoryStore();
  const { process, store } = makeProcess(shared);
  await store.lease.hold();
  process.isKilled = true;
  await until(async () => await shared.get(store.lease.id) === undefined, "the lease has expired");
  process.isKilled = false;
  await until(async () => await shared.get(store.lease.id) !== undefined, "the lease is held again");
  await store.close();
});

/** Starts an instance of a server with a tool that waits. */
function startInstance(shared: Store, pass: Promise<void>) {
  const { process, store } = makeProcess(shared);
  const work = tool({
    name: "work",
    async run(_input, ctx) {
      await ctx.progress(1);
      await pass;
      await ctx.progress(2);
      return "done";
    },
  });
  const observer = { store() {} };
  const server = openServer({ handlers: [work], store, observer });
  const send = (message: object | undefined, headers: Record<string, string> = {}) =>
    server.fetch(
      new Request("http://localhost/mcp", {
        method: message ? "POST" : "GET",
        headers: {
          "content-type": "application/json",
          accept: message ? "application/json, text/event-stream" : "text/event-stream",
          ...headers,
        },
        body: message && JSON.stringify({ jsonrpc: "2.0", ...message }),
      }),
    );
  return { process, server, send };
}

const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };

async function open(instance: ReturnType<typeof startInstance>): Promise<Record<string, string>> {
  const response = await instance.send({ id: 0, method: "initialize", params });
  await response.text();
  return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
}

/** Reads until an event with `text` has arrived. Returns the id of the last event. */
async function readTo(response: Response, text: string): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let read = "";
  while (!read.includes(text)) read += (await reader?.read())?.value ?? "";
  await reader?.cancel();
  return [...read.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? "";
}

Deno.test("if its instance was killed, a stream ends on the next instance, and cannot be resumed again", async () => {
  const shared = memoryStore();
  const { pass, open: finish } = gate();
  const [a, b] = [startInstance(shared, pass), startInstance(shared, pass)];
  const session = await open(a);
  const call = { id: 1, method: "tools/call", params: { name: "work", _meta: { progressToken: "p" } } };
  const first = await a.send(call, session);
  const id = await readTo(first, `"progress":1`);
  await until(() => a.process.commands.filter((name) => name === "append").length > 0, "the stream is in the store");
  a.process.isKilled = true;
  const since = performance.now();
  const next = await b.send(undefined, { ...session, "last-event-id": id });
  assertEquals(next.status, 200);
  // The stream ends without the result of the call.
  const text = await next.text();
  assert(!text.includes("result"), text);
  assert(performance.now() - since < 10_000);
  await until(async () => {
    const again = await b.send(undefined, { ...session, "last-event-id": id });
    await again.body?.cancel();
    return again.status === 400;
  }, "the stream is refused");
  finish();
  a.process.isKilled = false;
  for (const { server } of [a, b]) await server.close();
});

Deno.test("progress in quick succession is written to the store in batches, and the end of the call is written without delay", async () => {
  const shared = memoryStore();
  const { process, store } = makeProcess(shared);
  const work = tool({
    name: "work",
    async run(_input, ctx) {
      for (let i = 1; i <= 5; i++) {
        await ctx.progress(i);
        await turn(3);
      }
      return "done";
    },
  });
  const server = openServer({ handlers: [work], store });
  const send = (message: object, headers: Record<string, string> = {}) =>
    server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
        body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      }),
    );
  const hello = await send({ id: 0, method: "initialize", params });
  await hello.text();
  const session = { "mcp-session-id": hello.headers.get("mcp-session-id") ?? "" };
  const call = { id: 1, method: "tools/call", params: { name: "work", _meta: { progressToken: "p" } } };
  assertMatch(await (await send(call, session)).text(), /"progress":5[^]*"text":"done"/);
  await server.close();
  const appends = process.commands.filter((name) => name === "append").length;
  assert(appends <= 3, `${appends} appends`);
});

Deno.test("further calls in a session cause no store operations", async () => {
  const shared = memoryStore();
  const { pass, open: finish } = gate();
  finish();
  const a = startInstance(shared, pass);
  const session = await open(a);
  const ping = { id: 1, method: "ping" };
  assertEquals(await readReply(await a.send(ping, session)), { jsonrpc: "2.0", id: 1, result: {} });
  await until(() => a.process.commands.includes("set"), "the session is marked as used");
  const count = () => a.process.commands.filter((name) => name !== "heads" && name !== "read").length;
  const before = count();
  for (let id = 2; id < 20; id++) await readReply(await a.send({ id, method: "ping" }, session));
  for (let id = 20; id < 40; id++) await readReply(await a.send({ id, method: "tools/list" }, session));
  assertEquals(count() - before, 0);
});

Deno.test("a stream whose instance is still running continues on the next instance, however long the stream is silent", async () => {
  const shared = memoryStore();
  const { pass, open: finish } = gate();
  const [a, b] = [startInstance(shared, pass), startInstance(shared, pass)];
  const session = await open(a);
  const call = { id: 1, method: "tools/call", params: { name: "work", _meta: { progressToken: "p" } } };
  const id = await readTo(await a.send(call, session), `"progress":1`);
  await until(() => a.process.commands.filter((name) => name === "append").length > 0, "the stream is in the store");
  const next = await b.send(undefined, { ...session, "last-event-id": id });
  const checks = () => b.process.commands.filter((name) => name === "get").length;
  const before = checks();
  await until(() => checks() > before + 5, "the lease was checked");
  finish();
  assertMatch(await next.text(), /"progress":2[^]*"text":"done"/);
  for (const { server } of [a, b]) await server.close();
});
