// If Redis is down when a server starts, the server starts, and the observer gets the address and the client's error at
// once, before the first operation.
import { createServer as listen } from "node:net";
import { assert, assertEquals } from "@std/assert";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { type RedisClient, redisStore } from "../../src/stores/redis/redis.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { pickPort } from "../support/processes.ts";
import { CLIENTS } from "../support/redis/clients.ts";
import { openServer } from "../support/servers.ts";

const host = "127.0.0.1";
const password = "hunter2";
/** Makes a client for a port of this machine. */
type Connect = (port: number) => RedisClient | Promise<RedisClient>;

// Bun's client reports nothing while it tries to connect.
const clients = CLIENTS.filter(({ name }) => name !== "Bun");

const kinds: Readonly<Record<string, Connect>> = {
  ...Object.fromEntries(clients.map(({ name, connect }) => [`${name} over a socket`, () => connect("/no/such.sock")])),
  async "node-redis with a URL"(port) {
    const { createClient } = await import("redis");
    return createClient({ url: `redis://user:${password}@${host}:${port}/1`, disableOfflineQueue: true });
  },
  async "a cluster of node-redis"(port) {
    const { createCluster } = await import("redis");
    return createCluster({ rootNodes: [{ url: `redis://${host}:${port}` }, { socket: { host, port: port + 1 } }] });
  },
  async "ioredis with a host"(port) {
    const { Redis } = await import("ioredis");
    return new Redis({ host, port, password, enableOfflineQueue: false });
  },
  async "ioredis that connects late"(port) {
    const { Redis } = await import("ioredis");
    return new Redis(`redis://:${password}@${host}:${port}`, { lazyConnect: true, enableOfflineQueue: false });
  },
  async "a cluster of ioredis"(port) {
    const { Cluster } = await import("ioredis");
    const nodes = [{ host, port }, `redis://:${password}@${host}:${port + 1}`, `${host}:${port + 2}`];
    return new Cluster(nodes, { enableOfflineQueue: false });
  },
  async "iovalkey with a host"(port) {
    const { Redis } = await import("iovalkey");
    return new Redis({ host, port, password, enableOfflineQueue: false });
  },
};

/** Starts a server with a store that cannot connect. Returns the message of the cause that the observer gets. */
async function findCause(connect: () => RedisClient | Promise<RedisClient>): Promise<string> {
  const events: StoreEvent[] = [];
  const server = openServer({
    store: redisStore(connect, { timeoutMs: 60_000 }),
    observer: { store: (event) => void events.push(event) },
  });
  await server.ready();
  await until(() => events.length, "the event");
  const [{ state, error }] = events;
  const cause = error instanceof Error ? error.cause : undefined;
  assert(state === "degraded" && cause instanceof Error && cause.cause !== undefined, String(error));
  await server.close();
  return cause.message;
}

for (const [name, connect] of Object.entries(kinds)) {
  Deno.test(`a server whose Redis is down starts, and reports the address and the cause: ${name}`, async () => {
    const port = pickPort();
    const message = await findCause(() => connect(port));
    assertEquals(message, sentence(name.includes("socket") ? "/no/such.sock" : host));
    assert(!message.includes(password), message);
  });
}

Deno.test("if Redis refuses the password, the error says so", async () => {
  const redis = listen((socket) => {
    socket.on("error", () => {});
    // One reply for each command, because clients send several commands at once. A command begins with its length.
    socket.on("data", (data) => {
      const count = String(data).match(/^\*\d+\r$/gm)?.length ?? 0;
      socket.write("-WRONGPASS invalid username-password pair or user is disabled.\r\n".repeat(count));
    });
  });
  await new Promise<void>((resolve) => redis.listen(0, host, resolve));
  const { port } = Object(redis.address());
  try {
    for (const name of ["ioredis with a host", "iovalkey with a host", "node-redis with a URL"]) {
      assertEquals(await findCause(() => kinds[name](port)), sentence(host, "password"));
    }
  } finally {
    await new Promise((resolve) => redis.close(resolve));
  }
});
