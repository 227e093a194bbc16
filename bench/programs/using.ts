// A server that uses optional features of the library: a server-wide service, an API key, and an observer of one event.
import { pair, sum } from "./shapes.ts";

/** Type of the main entry of a copy of the library. */
export type Library = typeof import("../../mod.ts");
/** Type of the auth entry of a copy of the library. */
export type Auth = typeof import("../../src/auth/auth.ts");
type Server = ReturnType<Library["createServer"]>;

/** The header with the API key that the server accepts. */
export const KEYED: Readonly<Record<"authorization", string>> = { authorization: "Bearer a-key-of-the-benchmark" };
/** Number of events that the observer has received. */
export const heard: { calls: number } = { calls: 0 };

/**
 * Creates a server with some optional features. `uses` lists the features: `service` is a server-wide service, `key` an
 * API key, and `observer` an observer of one event.
 */
export function createUsingServer({ createServer, service, tool }: Library, { apiKey }: Auth, uses: string): Server {
  const adder = service("adder", () => ({ add: (a: number, b: number) => a + b }));
  const plain = { name: "add", input: pair, output: sum };
  const add = uses.includes("service")
    ? tool({ ...plain, services: { adder }, run: ({ a, b }, { services }) => ({ sum: services.adder.add(a, b) }) })
    : tool({ ...plain, run: ({ a, b }) => ({ sum: a + b }) });
  const keys = { bench: KEYED.authorization.slice("Bearer ".length), other: "another-key-of-the-benchmark" };
  return createServer({
    name: "bench",
    version: "1.0.0",
    handlers: [add],
    ...uses.includes("key") ? { auth: apiKey({ keys }) } : {},
    ...uses.includes("observer") ? { observer: { call: () => void heard.calls++ } } : {},
  });
}
