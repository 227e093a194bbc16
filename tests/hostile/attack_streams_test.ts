// Streams of sessions: what they leave behind.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { any, as, pause, soon, start, toGet, toInitialize, toLegacy } from "./attack.ts";

const EVENTS = { accept: "text/event-stream" };

Deno.test("a call of a client that takes only events leaves its session idle", async () => {
  const later = tool({ name: "later", run: () => Promise.resolve("") });
  const server = start({ handlers: [later], limits: { sessionsPerClient: 1 } });
  const begin = async () => {
    const response = await server.fetch(toLegacy(toInitialize()), as("eve"));
    await response.text();
    return { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
  };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "later" } };
  await (await server.fetch(toLegacy(call, { ...EVENTS, ...await begin() }), as("eve"))).text();
  // There is room for one session: the first one has to make it.
  const ping = { jsonrpc: "2.0", id: 2, method: "ping" };
  const { status } = await server.fetch(toLegacy(ping, await begin()), as("eve"));
  await server.close();
  assertEquals(status, 200);
});
