// The memory that cached results use in a process.
import { createServer, tool } from "../../mod.ts";
import { cache } from "../../src/layers/layers.ts";
import type { ReadHeap } from "../support/heap.ts";
import { ask } from "../support/requests.ts";

/**
 * Caches a small result of each of many calls with 20,000 characters of metadata. Resolves to the heap's growth per
 * call.
 */
export async function measure(readHeap: ReadHeap): Promise<number> {
  const hello = tool({
    name: "hello",
    input: { type: "object", properties: { n: { type: "number" } } } as const,
    annotations: { readOnlyHint: true },
    use: [cache({ ttlMs: 3_600_000, shared: true })],
    run: () => "Hello",
  });
  const server = createServer({ name: "cached", version: "1.0.0", handlers: [hello] });
  const call = async (n: number) => {
    await ask(server, "tools/call", { name: "hello", arguments: { n }, _meta: { note: `${n}`.padEnd(20_000, "x") } });
  };
  for (let n = 0; n < 100; n++) await call(n);
  const before = await readHeap();
  for (let n = 100; n < 100 + COUNT; n++) await call(n);
  const bytes = (await readHeap() - before) / COUNT;
  await server.close();
  return bytes;
}

/** Enough calls for Bun, whose heap differs by up to 3 MB between equal runs. */
const COUNT = 2000;
