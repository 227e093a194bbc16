// The Redis clients that the store supports, each created as its documentation describes.
import type { RedisClient } from "../../../src/stores/redis/redis.ts";

/** A Redis client library. `connect` takes the path of the server's Unix socket. */
export interface ClientKind {
  readonly name: string;
  connect(socket: string): Promise<RedisClient>;
}

const isBun = "Bun" in globalThis;

const kinds: readonly ClientKind[] = [
  {
    name: "node-redis",
    async connect(path) {
      const { createClient } = await import("redis");
      return createClient({ socket: { path, tls: false }, disableOfflineQueue: true });
    },
  },
  {
    name: "ioredis 6",
    async connect(path) {
      const { Redis } = await import("ioredis");
      return new Redis(path, { enableOfflineQueue: false });
    },
  },
  {
    name: "ioredis 5",
    async connect(path) {
      const { Redis } = await import("ioredis5");
      return new Redis(path, { enableOfflineQueue: false });
    },
  },
  {
    name: "iovalkey",
    async connect(path) {
      const { Redis } = await import("iovalkey");
      return new Redis(path, { enableOfflineQueue: false });
    },
  },
];

const bun: ClientKind = {
  name: "Bun",
  connect(path) {
    // Deno type-checks this file, but has no types for Bun.
    const { Bun } = globalThis as unknown as {
      readonly Bun: { readonly RedisClient: new (url: string, options: object) => RedisClient };
    };
    return Promise.resolve(new Bun.RedisClient(`redis+unix://${path}`, { enableOfflineQueue: false }));
  },
};

/** The Redis clients that run on this runtime. */
export const CLIENTS: readonly ClientKind[] = isBun ? [...kinds, bun] : kinds;
