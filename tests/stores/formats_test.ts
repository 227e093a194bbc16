// What another version of the library has written to the store is refused, and not overwritten.
import { assertEquals } from "@std/assert";
import { createServer, type Server } from "../../mod.ts";
import { Sealer } from "../../src/core/call/sealer.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";

const secret = "a secret of at least thirty-two characters";

async function send(server: Server, message: object, session?: string): Promise<Response> {
  const response = await server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...session && { "mcp-session-id": session },
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
    }),
  );
  await response.text();
  return response;
}

Deno.test("the state of a session in the format of a later version is refused, and stays", async () => {
  const shared = memoryStore();
  const { connect } = shared[INTERNALS];
  const start = () => createServer({ name: "a", version: "1.0.0", handlers: [], secret, store: customStore(connect) });
  const a = start();
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const session = (await send(a, { method: "initialize", params })).headers.get("mcp-session-id") ?? "";
  assertEquals((await send(a, { method: "logging/setLevel", params: { level: "debug" } }, session)).status, 200);
  const sealer = new Sealer({ secret, realm: JSON.stringify(["a", "/mcp"]) });
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
  const b = start();
  assertEquals((await send(b, { method: "logging/setLevel", params: { level: "error" } }, session)).status, 404);
  for (const [key, text] of later) assertEquals((await shared.get(key))?.value, text);
  await Promise.all([a.close(), b.close()]);
});
