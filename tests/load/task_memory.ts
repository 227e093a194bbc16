// Measures the memory of a server with 100,000 finished and 1,000 running tasks, before and after the tasks expire.
// Fails if the memory that remains grows from round to round.
//
//   deno task load:task-memory [--tasks N]
//   deno task load:task-memory --only     # in this process, on this runtime
import { createServer, tool } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { testLimits } from "../support/limits.ts";
import { readOptions } from "../support/options.ts";
import { toRequest } from "../support/requests.ts";
import process from "node:process";

const values = readOptions(process.argv.slice(2), { values: ["--tasks"], flags: ["--only"] });
const count = Number(values.get("--tasks") ?? 100_000);
const TURNS = 4;
const clients = 100;

const extensions = { "io.modelcontextprotocol/tasks": {} };
const _meta = { "io.modelcontextprotocol/clientCapabilities": { extensions } };

async function measure(): Promise<boolean> {
  const clock = fakeClock();
  let ends: (() => void)[] = [];
  const kept = task({ ttlMs: 600_000 });
  const server = createServer({
    name: "memory",
    version: "1.0.0",
    clock,
    auth: (request: Request) => ({ id: request.headers.get("x-user") ?? "" }),
    limits: testLimits({ calls: { detached: 10_000, closeMs: 10 }, memory: { bytes: 4e9, bytesPerClient: 4e9 } }),
    handlers: [
      tasks(),
      tool({ name: "ends", use: [kept], run: () => "done" }),
      tool({ name: "runs", use: [kept], run: () => new Promise<void>((end) => ends.push(end)) }),
    ],
  });
  const call = async (name: string, user: number) => {
    const response = await server.fetch(toRequest("tools/call", { name, _meta }, { "x-user": `${user}` }));
    const text = await response.text();
    if (!text.includes('"taskId"')) throw new Error(text);
  };
  const rest: number[] = [];
  const full: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    for (let i = 0; i < count; i++) await call("ends", i % clients);
    for (let i = 0; i < count / 100; i++) await call("runs", i % clients);
    full.push(await readMemory());
    for (const end of ends) end();
    ends = [];
    for (let i = 0; i < 70; i++) await clock.advance(10_000);
    rest.push(await readMemory());
  }
  await server.close();
  const runtime = "Bun" in globalThis ? "Bun" : "Deno";
  console.log(`${runtime}: with ${count} tasks ${full.join(", ")} MiB, after they have expired ${rest.join(", ")} MiB`);
  // The first round is the warm-up, so compare with its result.
  return rest[TURNS - 1] <= rest[0] + 0.1 * (full[0] - rest[0]) + 8;
}

/** Returns the used heap in megabytes, after garbage collection. */
async function readMemory(): Promise<number> {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc(force: boolean): void } };
  for (let i = 0; i < 3; i++) {
    gc?.();
    Bun?.gc(true);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return Math.round(process.memoryUsage().heapUsed / 1_048_576);
}

async function runOn(command: string, args: readonly string[]): Promise<boolean> {
  const all = [...args, new URL(import.meta.url).pathname, "--only", "--tasks", `${count}`];
  const { success } = await new Deno.Command(command, { args: all, stdout: "inherit", stderr: "inherit" }).output();
  return success;
}

if (values.has("--only")) process.exit(await measure() ? 0 : 1);
const passed = [
  await runOn("deno", ["run", "-A", "--no-check", "--v8-flags=--expose-gc"]),
  await runOn("bun", []),
].filter((isFine) => isFine).length;
console.log(`${passed} passed, ${2 - passed} failed`);
Deno.exit(passed === 2 ? 0 : 1);
