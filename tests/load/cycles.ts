// Starts and closes servers sequentially, as many as the first argument states. Each server has its own port, and gets
// one call. Runs on either runtime, and prints the resources that remain.
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
const { Deno: deno, Bun: bun, gc, process } = globalThis as unknown as Globals; // Only the current runtime's global is defined.
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

// During the first two thirds, the runtime makes its permanent allocations, such as compiled code.
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
