// Three instances that act as one server, for the behaviour suite: they share handlers, secret and store, and each
// request goes to a random instance. `INSTANCES` names the store: `redis:PATH`, with the path of a socket, or
// `sqlite:FOLDER`.
import process from "node:process";
import { createServer, type Server, type ServerOptions } from "../../mod.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import type { Store } from "../../src/stores/stores.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { random } from "./random.ts";
import { CLIENTS } from "./redis/clients.ts";

/** Whether behaviours run on several instances. */
export const hasInstances = process.env.INSTANCES !== undefined;

/**
 * A long timeout, because a machine under load responds late, and because instances lose changes while the store does
 * not respond.
 */
const TIMEOUT_MS = 20_000;

const SECRET = "a secret of at least thirty-two characters";
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
const { below } = random(seed);

/** Creates a function that opens the same store at each call. No other call opens it. */
function chooseStore(): () => Store {
  const [kind, path] = /^(redis|sqlite):(.+)$/.exec(process.env.INSTANCES ?? "")?.slice(1) ?? [];
  // Files of tests that run at the same time share the process id on Deno, and would share their data.
  const name = crypto.randomUUID();
  if (kind === "redis") {
    // The newest client of each runtime.
    const client = "Bun" in globalThis ? CLIENTS[CLIENTS.length - 1] : CLIENTS[0];
    return () => redisStore(() => client.connect(path), { prefix: `${name}:`, timeoutMs: TIMEOUT_MS });
  }
  if (kind !== "sqlite") throw new Error(`Cannot start instances: INSTANCES is ${process.env.INSTANCES}`);
  return () => sqliteStore(async () => await openSqlite(`${path}/${name}.db`), { timeoutMs: TIMEOUT_MS });
}

async function openSqlite(path: string): Promise<SqliteDatabase> {
  const { DatabaseSync } = await import("node:sqlite");
  return new DatabaseSync(path);
}

/** Handlers that change on all instances. */
function toHandlers(all: readonly Server[]): Server["handlers"] {
  return {
    ...all[0].handlers,
    add: (...handlers) => all.forEach((each) => each.handlers.add(...handlers)),
    remove: (...handlers) => all.forEach((each) => each.handlers.remove(...handlers)),
    enable: (...args) => all.forEach((each) => each.handlers.enable(...args)),
    disable: (...args) => all.forEach((each) => each.handlers.disable(...args)),
  };
}

/** The reasons why a behaviour is limited to one instance. docs/guides/instances.md contains the same reasons. */
export const PER_INSTANCE = {
  limits:
    "Limits and queues of waiting calls belong to each instance, because they protect the process of the instance.",
  observer: "Each instance has its own observer, and issues its own warnings.",
  services: "Each instance creates its own services.",
  hooks: "`subscribe` of a resource is called on each instance that has a subscriber.",
  handlers: "`handlers.add` and `handlers.remove` change only the instance on which they are called.",
  functions:
    "A function cannot be sent to another instance, so `listChanged` with `to` reaches the clients of one instance.",
  ready: "The cache and the circuit breaker of a tool belong to each instance.",
  log: "`server.log` reaches the clients that are connected to the same instance.",
  later: "A change reaches other instances a few milliseconds later, as a separate burst.",
} as const;

/** A reason why a behaviour is limited to one instance. */
export type PerInstance = keyof typeof PER_INSTANCE;

/** Creates instances. The returned object stands for an operator's actions on one instance or on all instances. */
export function createInstances(options: ServerOptions, count: number): Server {
  const open = chooseStore();
  const stores = Array.from({ length: count }, open);
  const servers = stores.map((store) => createServer({ secret: SECRET, ...options, store }));
  const one = () => servers[below(count)];
  // A program announces its changes on the instance that made the changes.
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
