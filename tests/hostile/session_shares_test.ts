// Other clients cannot evict a client's sessions, however many addresses the other clients have.
import { assertEquals } from "@std/assert";
import { createServer, type Server } from "../../mod.ts";
import type { SessionEvent } from "../../src/server/call/observer.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";
import { testLimits } from "../support/limits.ts";

const URL = "http://localhost/mcp";
const hello = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } },
};

/** Creates a server that counts the sessions evicted from memory, per principal or client name. */
function open(limits: BoundOptions) {
  const evicted: Record<string, number> = {};
  const note = ({ why, client, principal }: SessionEvent) => {
    const name = principal ?? client?.name ?? "";
    if (why === "evicted") evicted[name] = (evicted[name] ?? 0) + 1;
  };
  const limited = new Set<string>();
  const server = createServer({
    name: "shares",
    version: "1.0.0",
    handlers: [],
    limits: testLimits(limits),
    observer: { session: note, limit: ({ limit }) => limited.add(limit) },
  });
  return { server, evicted, limited };
}

/**
 * Opens a session, and sends a ping that creates the session's state in memory. Returns a function that sends another
 * ping.
 */
async function begin(
  { fetch }: Pick<Server, "fetch">,
  name: string,
  client: { readonly address?: string; readonly principal?: string },
): Promise<() => Promise<number>> {
  const facts = {
    ...client.address === undefined ? {} : { remoteAddr: { hostname: client.address } },
    ...client.principal === undefined ? {} : { principal: { id: client.principal } },
  };
  const send = async (message: object, id?: string) => {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...id === undefined ? {} : { "mcp-session-id": id },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
    const response = await fetch(new Request(URL, { method: "POST", headers, body }), facts);
    await response.body?.cancel();
    return response;
  };
  const params = { ...hello.params, clientInfo: { name, version: "1" } };
  const id = (await send({ ...hello, params })).headers.get("mcp-session-id") ?? "";
  const ping = async () => (await send({ method: "ping" }, id)).status;
  assertEquals(await ping(), 200);
  return ping;
}

Deno.test("sixteen networks with many sessions each do not evict the sessions of other clients from memory", async () => {
  const { server, evicted } = open({ connections: { sessions: 200 }, sessions: { openPerClient: 8 } });
  await begin(server, "ada", { principal: "ada" });
  await begin(server, "bob", { address: "192.0.2.1" });
  for (let network = 0; network < 16; network++) {
    for (let sub = 0; sub < 8; sub++) {
      const address = `2001:db8:${network}:12${sub.toString(16).padStart(2, "0")}::1`;
      for (let i = 0; i < 4; i++) await begin(server, "eve", { address });
    }
  }
  await begin(server, "ada", { principal: "ada" });
  assertEquals([evicted.ada, evicted.bob], [undefined, undefined]);
  assertEquals(evicted.eve > 0, true);
});

Deno.test("a client that exceeds its share of sessions evicts its own sessions, and not other sessions of its network", async () => {
  const { server, evicted, limited } = open({ sessions: { openPerClient: 4 } });
  await begin(server, "neighbor", { address: "2001:db8:0:1201::1" });
  for (let i = 0; i < 12; i++) await begin(server, "eve", { address: "2001:db8:0:1202::1" });
  assertEquals(evicted, { eve: 8 });
  assertEquals([...limited], ["sessions.openPerClient"]);
});

Deno.test("a gateway with one address can have 300 sessions in memory if sessions.openPerClient allows it", async () => {
  for (const [openPerClient, lost] of [[undefined, 44], [400, undefined], [Infinity, undefined]] as const) {
    const evicted: Record<string, number> = {};
    const server = createServer({
      name: "gateway",
      version: "1.0.0",
      limits: { sessions: { openPerClient } },
      observer: { session: ({ why }) => void (why && (evicted[why] = (evicted[why] ?? 0) + 1)) },
    });
    const pings = [];
    for (let i = 0; i < 300; i++) pings.push(await begin(server, "gateway", { address: "192.0.2.1" }));
    assertEquals(evicted.evicted, lost);
    if (!lost) { for (const ping of pings) assertEquals(await ping(), 200); }
    assertEquals(evicted.evicted, lost);
    await server.close();
  }
});
