// Attacks on the HTTP+SSE transport of revision 2024-11-05: messages for other clients' streams, for closed streams,
// and with other scopes.
import { fakeClock } from "../../src/testing/testing.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { McpError, tool } from "../../mod.ts";
import type { Authentication } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { turn, until } from "../support/behaviour.ts";
import { soon, start } from "./attack.ts";
import { callOf, HELLO, serveOld } from "./sse.ts";
import { measureHeap } from "../support/heap.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const LARGE = "x".repeat(200_000);

/** The `Authorization` header contains the caller's scopes. */
const byScopes: Authentication = {
  authenticate({ headers }) {
    const scopes = headers.get("authorization")?.split(",");
    return scopes && { id: "ada", scopes };
  },
};

Deno.test("each message has the scopes of its own credentials, not the scopes of the request that opened the stream", async () => {
  const write = tool({ name: "write", scopes: ["write"], run: (_, { principal }) => `${principal?.scopes}` });
  await using server = start({ auth: byScopes, handlers: [write] });
  const { open, post } = serveOld(server);
  const { address, next, leave } = await open("/sse", { headers: { authorization: "read,write" } });
  const few = { headers: { authorization: "read" } };
  const many = { headers: { authorization: "read,write" } };
  await post(address, HELLO, few);
  assertStringIncludes(await next() ?? "", "2024-11-05");
  await post(address, callOf("write"), few);
  assertStringIncludes(await next() ?? "", "-31403");
  await post(address, callOf("write"), many);
  assertStringIncludes(await next() ?? "", '"read,write"');
  assertEquals((await post(address, callOf("write"))).status, 401);
  await leave();
});

Deno.test("a message is refused if its stream ends while the body arrives", async () => {
  let ran = 0;
  const server = start({ handlers: [tool({ name: "count", run: () => ran++ })] });
  const { open, post } = serveOld(server);
  const { address, leave } = await open();
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const answer = post(address, readable);
  writer.write(new TextEncoder().encode(JSON.stringify(callOf("count")))).catch(() => {});
  await turn(10);
  await leave();
  writer.close().catch(() => {});
  const { status } = await answer;
  assertEquals([status, ran], [404, 0]);
});

Deno.test("the response is the same for the id of a closed stream, for another caller's id and for a guessed or duplicated id", async () => {
  await using server = start({ handlers: [] });
  const { open, post } = serveOld(server);
  const eve = { info: { principal: { id: "eve" } } };
  const ada = { info: { principal: { id: "ada" } } };
  const { address, leave } = await open("/sse", ada);
  const lost = await open("/sse", ada);
  await lost.leave();
  const id = address.split("=")[1];
  const odd = ["", "__proto__", "constructor", id.toUpperCase(), ` ${id}`, `${id}%00`, id.slice(1), "x".repeat(60_000)];
  const answers = [
    ...odd.map((each) => post(`/messages?sessionId=${each}`, HELLO, ada)),
    post(`/messages?sessionId=0&sessionId=${id}`, HELLO, ada),
    post(`/messages?SESSIONID=${id}`, HELLO, ada),
    post(lost.address, HELLO, ada),
    post(address, HELLO, eve),
    post(address, HELLO),
  ];
  for (const response of await Promise.all(answers)) {
    assertEquals([response.status, await response.text()], [404, sentence()]);
  }
  await leave();
});

Deno.test("an error while a tenant's handlers are created is reported to the observer, and fetch does not throw", async () => {
  const faults: unknown[] = [];
  const server = openServer({
    path: "/:tenant/mcp",
    handlers({ tenant }) {
      throw tenant === "mcp" ? McpError.invalidParams("secret") : new Error("secret");
    },
    observer: { fault: ({ error }) => faults.push(error) },
  });
  const { open } = serveOld(server, { path: "/:tenant/sse", messages: "/:tenant/messages" });
  const sockets = webSocket(server, { path: "/:tenant/ws" });
  const headers = { upgrade: "websocket", connection: "Upgrade" };
  for (const tenant of ["acme", "mcp"]) {
    const socket = await sockets.fetch(new Request(`http://localhost/${tenant}/ws`, { headers }));
    for (const response of [(await open(`/${tenant}/sse`)).response, socket]) {
      const text = await response.text();
      assertEquals([response.status, text.includes("secret")], [500, false], text);
    }
  }
  await server.close();
  assertEquals(faults.length, 4);
});

Deno.test("an invalid principal that is passed to fetch is reported as a fault", async () => {
  const faults: unknown[] = [];
  const server = openServer({ observer: { fault: ({ error }) => faults.push(error) } });
  const { open } = serveOld(server);
  assertEquals((await open("/sse", { info: { principal: { id: 5 } } })).response.status, 500);
  await server.close();
  assertEquals(faults.length, 1);
});

Deno.test("the memory for messages to an unread stream is limited, and is released", async () => {
  let ran = 0;
  const large = tool({ name: "large", run: () => (ran++, LARGE) });
  const limits = testLimits({ memory: { bytesPerClient: 2_000_000 }, streams: { writeMs: 300 } });
  await using server = start({ handlers: [large], limits });
  const { open, post } = serveOld(server);
  const info = { principal: { id: "eve" } };
  const { address } = await open("/sse", { info });
  await post(address, HELLO, { info });
  const statuses: number[] = [];
  const posting = Array.from({ length: 100 }, async (_, i) => {
    statuses.push((await post(address, callOf("large", i), { info })).status);
  });
  assert(await soon(Promise.all(posting)), "posts wait although the stream is closed");
  assert(ran < 20, `${ran} results of 400,000 bytes for a client that may hold 2,000,000`);
  assertEquals((await post(address, HELLO, { info })).status, 404);
  const { accounts } = server[INTERNALS].engine;
  await until(() => accounts.memory.used === 0 && accounts.streams.used === 0, "everything is released");
});

Deno.test("a message whose response waits is not kept in memory", async () => {
  const bytes = await measureHeap(new URL("waiting_messages_memory.ts", import.meta.url));
  assert(bytes < 200_000, `${bytes} bytes for a message of 2,000,000`);
});

Deno.test("requests whose responses wait are charged to their client, and no more of them wait than it may hold", async () => {
  const hold = tool({ name: "hold", run: () => new Promise<string>(() => {}) });
  const limits = { calls: { runningPerClient: 1, closeMs: 1 }, memory: { bytesPerClient: 1_000_000 } };
  await using server = start({ handlers: [hold], limits });
  const { open, post } = serveOld(server);
  const { accounts, scheduler } = server[INTERNALS].engine;
  const [eve, ada] = ["eve", "ada"].map((id) => ({ info: { principal: { id } } }));
  const { address, leave } = await open("/sse", eve);
  await post(address, HELLO, eve);
  const posting: Promise<Response>[] = [];
  let answered = 0;
  const send = (message: object) => void posting.push(post(address, message, eve).finally(() => answered++));
  send(callOf("hold", 1));
  send(callOf("hold", 2));
  await until(() => scheduler.running === 1 && scheduler.waiting === 1, "a call waits");
  for (let id = 3; id < 203; id++) send({ jsonrpc: "2.0", id, method: "ping" });
  await until(() => answered > 100, "the client's memory is full");
  await turn(10);
  const waiting = posting.length - answered;
  assert(waiting > 20 && waiting < 64, `${waiting} responses wait`);
  const other = await open("/sse", ada);
  assertEquals((await post(other.address, HELLO, ada)).status, 202);
  await leave();
  assertEquals([...new Set((await Promise.all(posting)).map(({ status }) => status))], [202]);
  await other.leave();
  await until(() => accounts.memory.used === 0 && scheduler.running === 0, "everything is released");
});

Deno.test("one client cannot use up the streams of other clients", async () => {
  await using server = start({ limits: { connections: { streamsPerClient: 2, streams: 4 } } });
  const { open } = serveOld(server);
  const eve = { info: { principal: { id: "eve" } } };
  const streams = await Promise.all(Array.from({ length: 10 }, () => open("/sse", eve)));
  assertEquals(streams.filter(({ response }) => response.status === 200).length, 2);
  const ada = await open("/sse", { info: { principal: { id: "ada" } } });
  assertEquals(ada.response.status, 200);
  for (const { leave } of [...streams, ada]) await leave();
  await until(() => server[INTERNALS].engine.accounts.streams.used === 0, "all are closed");
});

Deno.test("a stream ends when its credentials expire, even if a call is running and the client does not read", async () => {
  const clock = fakeClock();
  const expiresAt = clock.date() + 150;
  const aborted = Promise.withResolvers<void>();
  const running = Promise.withResolvers<void>();
  const hold = tool({
    name: "hold",
    run: (_, { signal }) =>
      new Promise<string>(() => {
        running.resolve();
        signal.addEventListener("abort", () => aborted.resolve());
      }),
  });
  await using server = start({ clock, handlers: [hold] });
  const { open, post } = serveOld(server);
  const info = { principal: { id: "ada", expiresAt } };
  const { address, next } = await open("/sse", { info });
  await post(address, HELLO, { info });
  await post(address, callOf("hold"), { info });
  await running.promise;
  await clock.advance(150);
  await aborted.promise;
  const later = { info: { principal: { id: "ada", expiresAt: clock.date() + 60_000 } } };
  assertEquals((await post(address, HELLO, later)).status, 404);
  assertStringIncludes(await next() ?? "", "2024-11-05");
  assertEquals(await next(), undefined);
  const { accounts } = server[INTERNALS].engine;
  assertEquals([accounts.streams.used, accounts.memory.used], [0, 0]);
});

Deno.test("a stream that the server closes no longer counts, and the observer is notified of its end", async () => {
  const seen: string[] = [];
  const server = openServer({
    observer: { stream: ({ state, transport }) => void seen.push(`${transport} ${state}`) },
  });
  const { open } = serveOld(server);
  const { next } = await open();
  await server.close();
  assertEquals(await next(), undefined);
  await until(() => seen.length > 1, "the end of the stream");
  assertEquals(seen, ["http-sse opened", "http-sse ended"]);
  assertEquals(server[INTERNALS].engine.accounts.streams.used, 0);
});

Deno.test("headers for resumption, other revisions and sessions have no effect", async () => {
  await using server = start({ handlers: [] });
  const { open, post } = serveOld(server);
  const headers = { "last-event-id": "x_99", "mcp-session-id": "x", "mcp-protocol-version": "2026-07-28" };
  const { address, next, leave } = await open("/sse", { headers });
  assertMatch(address, /^\/messages\?sessionId=[0-9a-f-]{36}$/);
  assertEquals((await post(address, HELLO, { headers })).status, 202);
  assertStringIncludes(await next() ?? "", "2024-11-05");
  await leave();
});
