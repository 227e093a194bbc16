// `server.ready()` begins to connect to the store, so that the first operation need not wait. The server starts even if
// the store does not respond.
import { assertEquals } from "@std/assert";
import { createServer, mount, type Server, type ServerOptions } from "../../mod.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { customStore, memoryStore, type StoreEngine } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { until } from "../support/behaviour.ts";

interface Site {
  readonly server: Server;
  readonly events: StoreEvent[];
  /** The number of calls of the connect function. */
  count(): number;
}

function start(connect: (signal: AbortSignal) => Promise<StoreEngine>, options: Partial<ServerOptions> = {}): Site {
  const events: StoreEvent[] = [];
  let count = 0;
  const store = customStore(({ signal }) => {
    count++;
    return connect(signal);
  }, { timeoutMs: 200 });
  const observer: ServerOptions["observer"] = { store: (event) => void events.push(event) };
  const secret = "a secret of at least thirty-two characters";
  const server = createServer({ name: "early", version: "1.0.0", secret, store, observer, ...options });
  return { server, events, count: () => count };
}

const memory = memoryStore();
const open = async () => await memory[INTERNALS].connect();

Deno.test("ready() connects to the store once, and createServer() does not", async () => {
  const { server, events, count } = start(open);
  assertEquals(count(), 0);
  await server.ready();
  await until(() => count() === 1, "the store has connected");
  await server.ready();
  server.resourceUpdated("note://1");
  await server.close();
  assertEquals([count(), events], [1, []]);
});

Deno.test("ready() of mounted servers connects the store of each server", async () => {
  const sites = [start(open, { path: "/a" }), start(open, { path: "/b" })];
  const mounted = mount(sites.map(({ server }) => server));
  await mounted.ready();
  await until(() => sites.every(({ count }) => count() === 1), "both stores have connected");
  await mounted.close();
});

Deno.test("ready() does not wait for a store that never connects, and the server closes while the store connects", async () => {
  const signals: AbortSignal[] = [];
  const { server, events } = start((signal) => {
    signals.push(signal);
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await server.ready();
  assertEquals(signals.map(({ aborted }) => aborted), [false]);
  await server.close();
  assertEquals([signals.map(({ aborted }) => aborted), events], [[true], []]);
});

Deno.test("if the store fails while the server starts, the observer gets one event, and ready() does not reject", async () => {
  let isDown = true;
  const { server, events } = start(async () => {
    if (isDown) throw new Error("the network is gone");
    return await open();
  });
  await server.ready();
  await until(() => events.length > 0, "the event");
  await server.ready();
  isDown = false;
  await until(async () => {
    server.resourceUpdated("note://1");
    await server.ready();
    return events.some(({ state }) => state === "recovered");
  }, "the store works again");
  assertEquals(events.map(({ state }) => state), ["degraded", "recovered"]);
  await server.close();
});
