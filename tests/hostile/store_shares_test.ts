// One client's data in a store is limited, so that the store has room for the data of other clients.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { toGet, toInitialize, toLegacy } from "./attack.ts";
import { until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

const SECRET = "a secret of at least thirty-two characters";
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
    createServer({
      name: "notes",
      version: "1.0.0",
      secret: SECRET,
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
  await Promise.all([first.close(), second.close()]);
});

Deno.test("the changes to one client's sessions leave room in a store for changes to other clients' sessions", async () => {
  const { first, second, events } = startInstances();
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
  await Promise.all([first.close(), second.close()]);
});

Deno.test("a session whose log level changes repeatedly counts only once", async () => {
  const { first, second } = startInstances();
  const ada = join(first, "192.0.2.1");
  const session = await ada.begin();
  for (let i = 0; i < 400; i++) {
    const response = await ada.request(session, "logging/setLevel", { level: i % 2 ? "debug" : "error" });
    assertEquals(response.status, 200, `change ${i}`);
    await response.text();
  }
  await Promise.all([first.close(), second.close()]);
});
