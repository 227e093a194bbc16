// The memory that evicted paths of a server leave in a process.
import { createServer, service, tool } from "../../mod.ts";
import type { ReadHeap } from "../support/heap.ts";
import { testLimits } from "../support/limits.ts";
import { toRequest } from "../support/requests.ts";
import { any } from "./attack.ts";

/** Calls a tool at many paths, of which the server keeps two. Resolves to the heap's growth per path. */
export async function measure(readHeap: ReadHeap): Promise<number> {
  const db = service("db", () => ({ rows: [] }));
  const server = createServer({
    name: "tenants",
    version: "1.0.0",
    path: "/:tenant/mcp",
    handlers: () => [tool({ name: "quick", input: any, services: { db }, run: () => "" })],
    limits: testLimits({ endpoints: { open: 2 } }),
  });
  const request = toRequest("tools/call", { name: "quick", arguments: {} });
  const call = async (n: number) => {
    const response = await server.fetch(new Request(`http://localhost/t${n}/mcp`, request));
    await response.text();
    if (!response.ok) throw new Error(`status ${response.status}`);
  };
  for (let n = 0; n < WARMUP; n++) await call(n);
  const before = await readHeap();
  for (let n = WARMUP; n < WARMUP + COUNT; n++) await call(n);
  const bytes = (await readHeap() - before) / COUNT;
  await server.close();
  return bytes;
}

const WARMUP = 1500;

const COUNT = 2500;
