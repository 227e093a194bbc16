// Observer events for WebSockets, for the HTTP+SSE transport, and for sessions over HTTP.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Observer, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { attachSocket, webSocket } from "../../src/server/transports/websocket.ts";
import { until } from "../support/behaviour.ts";
import { toHello } from "../support/sessions.ts";

// deno-lint-ignore no-explicit-any
type Heard = any; // The tests read the fields of every kind of event.

function start(limits = {}) {
  const heard: Heard[] = [];
  const hear = (name: string) => (event: object) => heard.push({ name, ...event });
  const observer: Observer = {
    call: hear("call"),
    refused: hear("refused"),
    session: hear("session"),
    stream: hear("stream"),
    limit: hear("limit"),
  };
  const quick = tool({ name: "quick", run: () => "quick" });
  const server = createServer({ name: "s", version: "1.0.0", handlers: [quick], observer, limits });
  const only = (name: string): Heard[] => heard.filter((each) => each.name === name);
  return { server, only };
}

const initialize = toHello({ version: "2024-11-05", name: "old" });
const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "quick" } };

Deno.test("a WebSocket is reported as a stream, and its calls have its transport", async () => {
  const { server, only } = start();
  const target = new EventTarget();
  const sent: string[] = [];
  // The members of a WebSocket that the server uses.
  const socket = Object.assign(target, { send: (text: string) => sent.push(text), close() {}, bufferedAmount: 0 });
  attachSocket(server, socket as unknown as WebSocket);
  for (const message of [initialize, call]) {
    target.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
    await until(() => sent.length === message.id, "a response");
  }
  assertEquals(only("session").map(({ state, transport }) => [state, transport]), [["created", "websocket"]]);
  target.dispatchEvent(new Event("close"));
  await server.close();
  assertEquals(only("call").map(({ method, transport, client }) => [method, transport, client.name]), [
    ["initialize", "websocket", "old"],
    ["tools/call", "websocket", "old"],
  ]);
  assertEquals(only("stream").map(({ state, transport, why }) => [state, transport, why]), [
    ["opened", "websocket", undefined],
    ["ended", "websocket", "disconnected"],
  ]);
  assertEquals(only("session").map(({ state, why }) => [state, why]), [["created", undefined], [
    "ended",
    "disconnected",
  ]]);
});

Deno.test("refused upgrades are reported to the observer", async () => {
  const { server, only } = start();
  const { fetch } = webSocket(server);
  const headers = { upgrade: "websocket", host: "localhost" };
  const ask = async (path: string, more = {}) =>
    (await fetch(new Request(`http://localhost${path}`, { headers: { ...headers, ...more } }))).status;
  assertEquals(await ask("/other"), 404);
  assertEquals(await ask("/ws", { origin: "https://evil.example" }), 403);
  await server.close();
  assertEquals(await ask("/ws"), 503);
  assertEquals(only("refused").map(({ transport, reason, status }) => [transport, reason, status]), [
    ["websocket", "path", 404],
    ["websocket", "origin", 403],
    ["websocket", "closing", 503],
  ]);
});

Deno.test("a request to an authentication's route is not reported as a refusal, whatever its Host is", async () => {
  const heard: unknown[] = [];
  const auth = { authenticate: () => undefined, routes: [{ path: "/about", fetch: () => new Response("open") }] };
  const observer: Observer = { refused: ({ reason }) => heard.push(reason) };
  const server = createServer({ name: "s", version: "1.0.0", auth, observer, hosts: ["mcp.example.com"] });
  for (const host of ["localhost", "mcp.example.com", "evil.example"]) {
    const response = await server.fetch(new Request(`http://${host}/about`, { headers: { host } }));
    assertEquals(await response.text(), "open");
  }
  assertEquals(heard, []);
  assertEquals((await server.fetch(new Request("http://localhost/other"))).status, 404);
  assertEquals(heard, ["path"]);
  await server.close();
});

Deno.test("streams, calls and refusals of HTTP+SSE are reported to the observer", async () => {
  const { server, only } = start();
  const { fetch } = httpSse(server);
  const stream = await fetch(new Request("http://localhost/sse"));
  const reader = (stream.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  const path = /data: (\S+)/.exec((await reader.read()).value ?? "")?.[1] ?? "";
  const post = async (path: string, message: unknown, type = "application/json") => {
    const init = { method: "POST", headers: { "content-type": type }, body: JSON.stringify(message) };
    return (await fetch(new Request(`http://localhost${path}`, init))).status;
  };
  assertEquals([await post(path, initialize), await post(path, call)], [202, 202]);
  assertEquals(await post("/messages?sessionId=unknown", call), 404);
  assertEquals(await post(path, call, "text/plain"), 415);
  await until(() => only("call").length === 2, "both calls");
  await reader.cancel();
  await server.close();
  assertEquals(only("call").map(({ transport }) => transport), ["http-sse", "http-sse"]);
  assertEquals(only("refused").map(({ transport, reason }) => [transport, reason]), [
    ["http-sse", "session"],
    ["http-sse", "content_type"],
  ]);
  assertEquals(only("stream").map(({ state, transport }) => [state, transport]), [
    ["opened", "http-sse"],
    ["ended", "http-sse"],
  ]);
});

Deno.test("a session whose state is evicted is reported as ended, and the next request resumes the session", async () => {
  const { server, only } = start({ connections: { sessions: 1 } });
  await using first = await connectTest(server, { era: "legacy" });
  await first.callTool("quick");
  await using second = await connectTest(server, { era: "legacy" });
  await second.callTool("quick");
  await first.callTool("quick");
  const events = only("session");
  assertEquals(events.map(({ state, why }) => why ?? state), ["created", "evicted", "created", "evicted", "resumed"]);
  assertEquals([events[0].id, events[4].id], [events[1].id, events[1].id]);
  assert(only("limit").some(({ limit }) => limit === "connections.sessions"));
  await server.close();
  assertEquals(only("session").at(-1)?.why, "closing");
});
