// If Redis is down when a server starts, the server starts, and the observer gets the address and the client's error at
// once, before the first operation.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import type { StoreEvent } from "../../src/server/call/observer.ts";
import { type RedisClient, redisStore } from "../../src/stores/redis/redis.ts";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { pickPort } from "../support/processes.ts";
import { CLIENTS } from "../support/redis/clients.ts";

const host = "127.0.0.1";
const password = "hunter2";
/** A client for an address on which nothing listens. */
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
    return new Cluster([{ host, port }, `redis://:${password}@${host}:${port + 1}`], { enableOfflineQueue: false });
  },
  async "iovalkey with a host"(port) {
    const { Redis } = await import("iovalkey");
    return new Redis({ host, port, password, enableOfflineQueue: false });
  },
};

for (const [name, connect] of Object.entries(kinds)) {
  Deno.test(`a server whose Redis is down starts, and reports the address and the cause: ${name}`, async () => {
    const events: StoreEvent[] = [];
    const port = pickPort();
    const store = redisStore(() => connect(port), { timeoutMs: 60_000 });
    const server = createServer({
      name: "down",
      version: "1.0.0",
      store,
      secret: "a secret of at least thirty-two characters",
      observer: { store: (event) => void events.push(event) },
    });
    await server.ready();
    await until(() => events.length, "the event");
    const [{ state, error }] = events;
    const cause = error instanceof Error ? error.cause : undefined;
    assert(cause instanceof Error && cause.cause !== undefined, String(error));
    assertEquals([state, cause.message], ["degraded", sentence(name.includes("socket") ? "/no/such.sock" : host)]);
    assert(!cause.message.includes(password), cause.message);
    await server.close();
  });
}
