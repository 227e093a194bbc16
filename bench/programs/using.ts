// A server that uses optional features of the library.
import { pair, sum } from "./shapes.ts";

/** Type of the main entry of a copy of the library. */
export type Library = typeof import("../../mod.ts");
/** Type of the auth entry of a copy of the library. */
export type Auth = typeof import("../../src/auth/auth.ts");
/** Types of the layers and observe entries of a copy of the library. */
export type Layers = typeof import("../../src/layers/layers.ts");
export type Observe = typeof import("../../src/observe/observe.ts");
type Server = ReturnType<Library["createServer"]>;

/** The header with the API key that the server accepts. */
export const KEYED: Readonly<Record<"authorization", string>> = { authorization: "Bearer a-key-of-the-benchmark" };
const KEYS = { bench: KEYED.authorization.slice("Bearer ".length), other: "another-key-of-the-benchmark" };
/** Number of events that the observer, the middleware, or the audit has received. */
export const heard: { calls: number } = { calls: 0 };

/**
 * Creates a server with some optional features. `uses` lists the features: `service` (server-wide), `key` (an API key),
 * `observer` (of one event) and `middleware` (of the server).
 */
export function createUsingServer({ createServer, service, tool }: Library, { apiKey }: Auth, uses: string): Server {
  const adder = service("adder", () => ({ add: (a: number, b: number) => a + b }));
  const plain = { name: "add", input: pair, output: sum };
  const add = uses.includes("service")
    ? tool({ ...plain, services: { adder }, run: ({ a, b }, { services }) => ({ sum: services.adder.add(a, b) }) })
    : tool({ ...plain, run: ({ a, b }) => ({ sum: a + b }) });
  return createServer({
    name: "bench",
    version: "1.0.0",
    handlers: [add],
    ...uses.includes("key") ? { auth: apiKey({ keys: KEYS }) } : {},
    ...uses.includes("observer") ? { observer: { call: () => void heard.calls++ } } : {},
    ...uses.includes("middleware") ? { use: [(_call, next) => (heard.calls++, next())] } : {},
  });
}

/**
 * Creates a server whose tool has a quota, an input guard, idempotency keys, and an audit. Most calls repeat a key,
 * because the limit on kept keys would refuse a new key for each call of a benchmark.
 */
export function createLayeredServer(
  { createServer, tool, apiKey, quota, guard, idempotent, audit }:
    & Library
    & Auth
    & Pick<Layers, "quota">
    & Partial<Pick<Layers, "guard" | "idempotent">>
    & Observe,
): Server {
  const limit: unknown = quota({ rate: { calls: 1_000_000, perMs: 100 }, concurrency: 100 });
  const guards = { input: [(input: unknown) => input] };
  const key = () => `${++heard.calls % 1000}`;
  const use = [
    ...typeof limit === "function" ? [limit] : [],
    ...guard ? [guard(guards)] : [],
    ...idempotent ? [idempotent(key)] : [],
  ];
  // In older revisions, quotas, guards and idempotency keys are options instead of layers.
  const layers: object = {
    use,
    ...typeof limit !== "function" && { quota: limit },
    ...!guard && { guards },
    ...!idempotent && { idempotencyKey: key },
  };
  const add = tool({
    ...layers,
    name: "add",
    input: pair,
    output: sum,
    run: ({ a, b }) => ({ sum: a + b }),
  });
  return createServer({
    name: "bench",
    version: "1.0.0",
    handlers: [add],
    // Only callers with an identity can use idempotency keys.
    auth: apiKey({ keys: KEYS }),
    use: [audit({ write: () => void heard.calls++ })],
  });
}
