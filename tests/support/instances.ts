// Creates three instances that act as one server in the behaviour suite. They share handlers, secret and store, and
// each request goes to a random instance. `INSTANCES` selects the store: `redis:PATH` with the path of a socket,
// `postgres:FOLDER` with the folder of a socket, or `sqlite:FOLDER`.
import process from "node:process";
import { createServer, type Server, type ServerOptions } from "../../mod.ts";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import type { Store } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { CLIENTS as POSTGRES_CLIENTS } from "./postgres/clients.ts";
import { random } from "./random.ts";
import { TIMEOUT_MS } from "./store_client.ts";
import { CLIENTS } from "./redis/clients.ts";

/** Whether behaviours run on several instances. */
export const hasInstances = process.env.INSTANCES !== undefined;

const SECRET = "a secret of at least thirty-two characters";
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
const { below, pick } = random(seed);

/** Returns a function that opens the same store on each call. Each call of `chooseStore` has its own store. */
function chooseStore(): () => Store {
  const [kind, path] = /^(redis|postgres|sqlite):(.+)$/.exec(process.env.INSTANCES ?? "")?.slice(1) ?? [];
  // On Deno, concurrent test files share the process id, so a name made from it would be the same.
  const name = crypto.randomUUID();
  if (kind === "redis") {
    // Use the newest client for the runtime.
    const client = "Bun" in globalThis ? CLIENTS[CLIENTS.length - 1] : CLIENTS[0];
    return () => redisStore(() => client.connect(path), { prefix: `${name}:`, timeoutMs: TIMEOUT_MS });
  }
  if (kind === "postgres") {
    const schema = `mcp_${name.replaceAll("-", "_")}`;
    return () =>
      postgresStore(() => pick(POSTGRES_CLIENTS).connect({ folder: path, max: 2 }), { schema, timeoutMs: TIMEOUT_MS });
  }
  if (kind !== "sqlite") {
    throw new Error(
      `Cannot start instances: INSTANCES is ${process.env.INSTANCES}; set redis:PATH, postgres:FOLDER or sqlite:FOLDER`,
    );
  }
  return () => sqliteStore(async () => await openSqlite(`${path}/${name}.db`), { timeoutMs: TIMEOUT_MS });
}

async function openSqlite(path: string): Promise<SqliteDatabase> {
  const { DatabaseSync } = await import("node:sqlite");
  return new DatabaseSync(path);
}

/** Returns a `handlers` object that changes all instances. */
function toHandlers(all: readonly Server[]): Server["handlers"] {
  return {
    ...all[0].handlers,
    add: (...handlers) => all.forEach((each) => each.handlers.add(...handlers)),
    remove: (...handlers) => all.forEach((each) => each.handlers.remove(...handlers)),
    enable: (...args) => all.forEach((each) => each.handlers.enable(...args)),
    disable: (...args) => all.forEach((each) => each.handlers.disable(...args)),
  };
}

/** The reasons why a behaviour holds only within one instance. docs/guides/instances.md contains the same texts. */
export const PER_INSTANCE = {
  limits:
    "Limits and queues of waiting calls belong to each instance, because they protect the process of the instance.",
  observer: "Each instance has its own observer and warnings.",
  services: "Each instance creates its own services, and the objects of `ctx.caller`.",
  hooks: "`subscribe` of a resource is called on each instance that has a subscriber.",
  handlers: "`handlers.add` and `handlers.remove` change only the instance on which they are called.",
  functions:
    "A function cannot be sent to another instance, so `listChanged` with `to` reaches the clients of one instance.",
  ready: "The cache and the circuit breaker of a tool belong to each instance.",
  log: "`server.log` reaches the clients that are connected to the same instance.",
  later: "A change reaches other instances a few milliseconds later, as a separate burst.",
} as const;

export type PerInstance = keyof typeof PER_INSTANCE;

/**
 * Creates instances. In the returned object, some methods act on one random instance and others on all instances, as an
 * operator would use them.
 */
export function createInstances(options: ServerOptions, count: number): Server {
  const open = chooseStore();
  const stores = Array.from({ length: count }, open);
  const servers = stores.map((store) => createServer({ secret: SECRET, ...options, store }));
  const one = () => servers[below(count)];
  // A program announces a change on the instance that made the change.
  const { resourceUpdated, listChanged, log } = one();
  return {
    ...servers[0],
    fetch: (request, info) => one().fetch(request, info),
    handlers: toHandlers(servers),
    log,
    resourceUpdated,
    listChanged,
    end: (select) => servers.forEach((each) => each.end(select)),
    ready: async () => void await Promise.all(servers.map((each) => each.ready())),
    async close() {
      await Promise.all(servers.map((each) => each.close()));
      await Promise.all(stores.map((each) => each.close()));
    },
    [INTERNALS]: {
      ...servers[0][INTERNALS],
      develop: (listener) => {
        const stops = servers.map((each) => each[INTERNALS].develop(listener));
        return () => stops.forEach((stop) => stop());
      },
      load: async () => void await Promise.all(servers.map((each) => each[INTERNALS].load())),
    },
  };
}
