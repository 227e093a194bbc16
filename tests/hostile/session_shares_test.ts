// Other clients cannot evict a client's sessions, however many addresses the other clients have.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type Server, tool } from "../../mod.ts";
import type { SessionEvent, StoreEvent } from "../../src/server/call/observer.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { toGet, toInitialize, toLegacy } from "./attack.ts";
import { until } from "../support/behaviour.ts";

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
  const server = openServer({
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
    const server = openServer({
      limits: { sessions: { openPerClient } },
      observer: { session: ({ why }) => void (why && (evicted[why] = (evicted[why] ?? 0) + 1)) },
    });
    const pings = [];
    for (let i = 0; i < 300; i++) pings.push(await begin(server, "gateway", { address: "192.0.2.1" }));
    assertEquals(evicted.evicted, lost);
    if (!lost) { for (const ping of pings) assertEquals(await ping(), 200); }
    assertEquals(evicted.evicted, lost);
  }
});

// One client's data in a store is limited, so that the store has room for the data of other clients.

/**
 * Maximum number of bytes per client. The test's store holds only six times as much, so that it fills sooner than a
 * store of the recommended size.
 */
const BYTES = 60_000;

/** Creates two instances of a server that share a store. */
function startInstances() {
  const store = memoryStore({ bytes: 6 * BYTES });
  const events: StoreEvent[] = [];
  const say = tool({
    name: "say",
    input: { type: "object", properties: { times: { type: "number" } }, required: ["times"] } as const,
    async run({ times }, { log }) {
      for (let i = 0; i < times; i++) await log.info("x".repeat(500));
      return "said";
    },
  });
  const [first, second] = [0, 1].map(() =>
    openServer({
      handlers: [say],
      store,
      limits: testLimits({ replay: { bytes: BYTES } }),
      observer: { store: (event) => void events.push(event) },
    })
  );
  return { first, second, events };
}

/** Creates a client with an address. The client can open sessions at `server`. */
function join(server: Server, address: string) {
  const info = { remoteAddr: { hostname: address } };
  const send = async (to: Server, request: Request) => await to.fetch(request, info);
  const begin = async (): Promise<string> => {
    const response = await send(server, toLegacy(toInitialize(), { "mcp-protocol-version": "2025-11-25" }));
    await response.text();
    return response.headers.get("mcp-session-id") ?? "";
  };
  const request = async (session: string, method: string, params: object): Promise<Response> =>
    await send(
      server,
      toLegacy({ jsonrpc: "2.0", id: 1, method, params }, {
        "mcp-protocol-version": "2025-11-25",
        "mcp-session-id": session,
      }),
    );
  /** Makes the server write `times` events. Returns the id of the first event. */
  const say = async (session: string, times: number): Promise<string> => {
    const text = await (await request(session, "tools/call", { name: "say", arguments: { times } })).text();
    return /(?<=^id: ).+$/m.exec(text)?.[0] ?? "";
  };
  return { send, begin, request, say };
}

Deno.test("the events of one client's sessions leave room in a store for other clients' events", async () => {
  const { first, second, events } = startInstances();
  const [eve, ada] = [join(first, "198.51.100.1"), join(first, "192.0.2.1")];
  for (let i = 0; i < 60; i++) await eve.say(await eve.begin(), 20);
  const session = await ada.begin();
  const begun = await ada.say(session, 5);
  // The second instance reads the events from the store, to which the first instance writes them after the response.
  const resume = async () => await (await ada.send(second, toGet(session, begun))).text();
  await until(async () => (await resume()).match(/^data: ./gm)?.length === 6, "all events", resume);
  assertStringIncludes(await resume(), "said");
  assertEquals(events, []);
});

Deno.test("the changes to one client's sessions leave room in a store for changes to other clients' sessions", async () => {
  const { first, events } = startInstances();
  const [eve, ada] = [join(first, "198.51.100.1"), join(first, "192.0.2.1")];
  const statuses = new Set<number>();
  for (let i = 0; i < 400; i++) {
    const response = await eve.request(await eve.begin(), "logging/setLevel", { level: "debug" });
    statuses.add(response.status);
    await response.text();
  }
  assertEquals(statuses, new Set([200, 429]));
  const session = await ada.begin();
  assertEquals((await ada.request(session, "logging/setLevel", { level: "error" })).status, 200);
  assertEquals(events, []);
});

Deno.test("a session whose log level changes repeatedly counts only once", async () => {
  const { first } = startInstances();
  const ada = join(first, "192.0.2.1");
  const session = await ada.begin();
  for (let i = 0; i < 400; i++) {
    const response = await ada.request(session, "logging/setLevel", { level: i % 2 ? "debug" : "error" });
    assertEquals(response.status, 200, `change ${i}`);
    await response.text();
  }
});
