// A program that counts the processes of its programs, because the tests of other files share the process of a test.
import { assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { createServer, tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { run } from "./programs.ts";

/** Returns the number of processes of programs that this process has started. */
function countProcesses(): number {
  return readdirSync("/proc").filter((pid) => {
    try {
      const [, parent] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("program_child");
    } catch {
      return false; // Not a process, or it has ended.
    }
  }).length;
}

async function countOfPrograms(): Promise<void> {
  const resume: (() => void)[] = [];
  const hold = tool({ name: "hold", run: () => new Promise<string>((resolve) => resume.push(() => resolve("done"))) });
  const server = createServer({ name: "s", version: "1.0.0", handlers: [hold, codeMode()] });
  const client = await connectTest(server, { transport: "memory" });
  assertEquals(countProcesses(), 0);
  const held = [1, 2].map(() => run(client, "return await tools.hold()"));
  await until(() => resume.length === 2, "both programs wait");
  assertEquals(countProcesses(), 2);
  for (const each of resume) each();
  assertEquals(await Promise.all(held), [["done"], ["done"]]);
  // One process is ready for the next program.
  await until(() => countProcesses() === 1, "one process is left");
  const controller = new AbortController();
  const spinning = client.callTool("run_code_with_effects", { code: "for (;;);" }, { signal: controller.signal });
  spinning.catch(() => {});
  await until(() => countProcesses() === 1, "the program runs");
  controller.abort();
  assertEquals(await run(client, "return 1"), ["1"]);
  await client[Symbol.asyncDispose]();
  await server.close();
  assertEquals(countProcesses(), 0);
}

async function countOfServer(): Promise<void> {
  const server = createServer({ name: "s", version: "1.0.0", handlers: [codeMode()] });
  await using client = await connectTest(server, { transport: "memory" });
  await server.ready();
  assertEquals((await client.listTools()).length, 2);
  assertEquals(countProcesses(), 0);
  await server.close();
}

await countOfServer();
await countOfPrograms();
console.log("counted");
process.exit(0);
