// Measures the heap. Deno collects garbage on request only in a process that was started with a flag.
import process from "node:process";

/** Collects garbage, and resolves to the bytes that the heap uses. */
export type ReadHeap = () => Promise<number>;

/**
 * Resolves to what the module's function `measure` resolves to. The function gets a {@linkcode ReadHeap}, and runs in a
 * new process on Deno.
 */
export async function measureHeap(module: URL): Promise<number> {
  const { Bun } = globalThis as { Bun?: { gc(isSynchronous: boolean): void } }; // Deno has no types for Bun.
  if (Bun) {
    const { measure }: { measure(readHeap: ReadHeap): Promise<number> } = await import(module.href);
    return await measure(() => readHeap(() => Bun.gc(true)));
  }
  const program = `import { measure } from ${JSON.stringify(module.href)};
    import { readHeap } from ${JSON.stringify(import.meta.url)};
    console.log(await measure(() => readHeap(gc)));`;
  const args = ["eval", "--no-check", "--v8-flags=--expose-gc", program];
  const { stdout, stderr } = await new Deno.Command("deno", { args }).output();
  const measured = parseFloat(new TextDecoder().decode(stdout));
  if (!Number.isFinite(measured)) throw new Error(new TextDecoder().decode(stderr));
  return measured;
}

/** Collects garbage several times, because callbacks that run after a collection release more objects. */
export async function readHeap(collect: () => void): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve));
  }
  return process.memoryUsage().heapUsed;
}
