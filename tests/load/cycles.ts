// Servers in sequence, as many as the first argument: each server on a separate port, with one call and a close. Runs
// on either runtime, and prints the remaining resources.
import { readdirSync } from "node:fs";
import { createServer, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { toCall } from "../hostile/unread.ts";

interface Globals {
  readonly Deno?: { readonly args: string[] };
  readonly Bun?: { readonly argv: string[]; gc(force: boolean): void };
  readonly gc?: () => void;
  readonly process: { memoryUsage(): { readonly heapUsed: number; readonly external: number } };
}
const { Deno: deno, Bun: bun, gc, process } = globalThis as unknown as Globals; // One global is defined.
const count = Number((deno?.args ?? bun?.argv.slice(2) ?? [])[0]);

async function live(i: number): Promise<void> {
  const quick = tool({ name: "quick", run: () => "quick" });
  const server = createServer({ name: `server ${i}`, version: "1.0.0", handlers: [quick] });
  const host = startHttpServer(server.fetch);
  const text = await (await fetch(`${host.origin}/mcp`, toCall("quick"))).text();
  if (!text.includes('"quick"')) throw new Error(text);
  await server.close();
  await host.stop();
}

async function settle(): Promise<{ readonly heap: number; readonly files: number }> {
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (let i = 0; i < 3; i++) {
    gc?.();
    bun?.gc(true);
  }
  const { heapUsed, external } = process.memoryUsage();
  return { heap: heapUsed + external, files: readdirSync("/proc/self/fd").length };
}

// Permanent allocations of the runtime, such as compiled code, exist after the first two thirds.
const start = performance.now();
for (let i = 0; i < count * 2 / 3; i++) await live(i);
const before = await settle();
for (let i = 0; i < count / 3; i++) await live(i);
const ms = performance.now() - start - 500;
const after = await settle();
console.log(JSON.stringify({
  ...{ count, ms },
  heap: Math.max(0, after.heap - before.heap),
  files: Math.max(0, after.files - before.files),
}));
