// The first request of a session on another instance reads everything about the session in one round trip.
import { assert, assertEquals } from "@std/assert";
import { type Server, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { type BatchEngine, GET_ALL } from "../../src/stores/get_all.ts";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { customStore, memoryStore, type Store, type StoreEngine } from "../../src/stores/stores.ts";
import { turn, until } from "../support/behaviour.ts";
import { CLIENTS as POSTGRES_CLIENTS, startReady as startPostgres } from "../support/postgres/clients.ts";
import { missingPostgres } from "../support/postgres/server.ts";
import { CLIENTS as REDIS_CLIENTS } from "../support/redis/clients.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";
import { openServer } from "../support/servers.ts";

const redis = new SharedServer(async () => {
  const server = startRedis();
  const store = redisStore(() => REDIS_CLIENTS[0].connect(server.socket));
  await until(() => isUp(store), "the server has started");
  await store.close();
  return server;
}, missingRedis);
const postgres = new SharedServer(startPostgres, missingPostgres);

/** A test that gets a function that opens another store with the same values. */
type Run = (name: string, run: (open: () => Store) => Promise<void>) => void;

const databases: readonly Run[] = [
  ...REDIS_CLIENTS.map(({ name, connect }): Run => (title, run) =>
    redis.test(`${title} (${name})`, () => run(() => redisStore(() => connect(redis.running.socket))))
  ),
  ...POSTGRES_CLIENTS.map(({ name, connect }): Run => (title, run) =>
    postgres.test(`${title} (${name})`, () => run(() => postgresStore(() => connect(postgres.running))))
  ),
];

/**
 * Creates a store that adds the names of its engine's methods to `asked`, except for those that wait for entries of
 * topics. A read is added when it begins, a write when it has ended.
 */
function watch(store: Store, asked: string[], isHeld: () => Promise<unknown> = async () => {}): Store {
  return customStore(async (options) =>
    new Proxy<StoreEngine>(await store[INTERNALS].connect(options), {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name === "listen" || name === "heads" || name === "close") return value.bind(target);
        return async (...args: readonly unknown[]) => {
          const isRead = name !== "set";
          if (isRead) asked.push(String(name));
          await isHeld();
          const result = await Reflect.apply(value, target, args);
          if (!isRead) asked.push(String(name));
          return result;
        };
      },
    }), { pollMs: 60_000, timeoutMs: 20_000 });
}

const start = (store: Store) => openServer({ store, handlers: [tool({ name: "add", run: () => "added" })] });

async function send(server: Server, method: string, session?: string): Promise<Response> {
  const client = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "client", version: "1.0.0" } };
  const params = method === "initialize" ? client : { name: "add", arguments: {} };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...session && { "mcp-session-id": session },
  };
  if (method === "DELETE") return await server.fetch(new Request("http://localhost/mcp", { method, headers }));
  const message = { jsonrpc: "2.0", ...!method.startsWith("notifications/") && { id: 1 }, method, params };
  const response = await server.fetch(
    new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(message) }),
  );
  await response.text();
  return response;
}

/** Opens a session, and uses it once. */
async function shake(server: Server): Promise<string> {
  const session = (await send(server, "initialize")).headers.get("mcp-session-id") ?? "";
  await send(server, "notifications/initialized", session);
  return session;
}

/** Returns the operations with which an instance that runs already takes over a session. */
async function countTakeOver(open: () => Store): Promise<readonly string[]> {
  const [asked, others]: string[][] = [[], []];
  const [a, b] = [start(watch(open(), others)), start(watch(open(), asked))];
  await shake(b);
  const session = await shake(a);
  const areMarked = () => asked.includes("set") && others.includes("set");
  await until(areMarked, "the marks of the sessions, which each instance writes after its first response");
  await turn();
  asked.length = 0;
  assertEquals((await send(b, "tools/call", session)).status, 200);
  await until(() => asked.includes("set"), "the mark of the second session");
  const taken = [...asked];
  // An instance also learns in this read that the session has ended.
  const ended = await shake(a);
  assertEquals((await send(a, "DELETE", ended)).status, 204);
  assertEquals((await send(b, "tools/call", ended)).status, 404);
  for (const server of [a, b]) await server.close();
  return taken;
}

for (const test of databases) {
  test("another instance takes over a session with one read and one write", async (open) => {
    assertEquals(await countTakeOver(open), ["Symbol(getAll)", "set"]);
  });

  test("several values are read in the order of their keys", async (open) => {
    const store = open();
    await store.set("all-1", "one", { ttlMs: 60_000 });
    await store.set("all-2", "two, 'with' signs", { ttlMs: 60_000 });
    const keys = ["all-2", "all-missing", "all-1", "all-2"];
    const engine = await store[INTERNALS].connect();
    assert(isBatch(engine));
    const { signal } = new AbortController();
    const all = await engine[GET_ALL](keys, { signal });
    assertEquals(all, await Promise.all(keys.map((key) => engine.get(key, { signal }))));
    assertEquals(all.map((each) => each?.value), ["two, 'with' signs", undefined, "one", "two, 'with' signs"]);
    await engine.close?.();
    await store.close();
  });
}

function isBatch(engine: StoreEngine): engine is BatchEngine {
  return GET_ALL in engine;
}

Deno.test("an engine that reads one value at a time gets both reads at once", async () => {
  const { connect } = memoryStore()[INTERNALS];
  assertEquals(await countTakeOver(() => customStore(connect)), ["get", "get", "set"]);
  const asked: string[] = [];
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const [a, b] = [
    start(customStore(connect)),
    start(watch(customStore(connect), asked, async () => asked.includes("get") && await held)),
  ];
  const answer = send(b, "tools/call", await shake(a));
  await until(() => asked.includes("get"), "the first read");
  await turn();
  assertEquals(asked.filter((name) => name === "get").length, 2);
  release();
  assertEquals((await answer).status, 200);
  for (const server of [a, b]) await server.close();
});

Deno.test("a new subscription reads its topic once, and once more only if an entry is announced meanwhile", async () => {
  const { connect } = memoryStore()[INTERNALS];
  for (const isAnnounced of [false, true]) {
    const asked: string[] = [];
    const [store, other] = [watch(customStore(connect), asked), customStore(connect)];
    const heard: string[] = [];
    const started = store.subscribe("topic", (text) => void heard.push(text));
    if (isAnnounced) await other.publish("topic", "early");
    await started;
    await turn();
    assertEquals(asked.filter((name) => name === "read").length <= (isAnnounced ? 2 : 1), true, asked.join());
    await other.publish("topic", "late");
    await until(() => heard.at(-1) === "late", "the entry");
    for (const each of [store, other]) await each.close();
  }
});
