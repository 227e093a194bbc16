// The processes of programs: they end with their programs, with the call and with the server, and need a permission.
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { createServer, tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { startChild } from "../../src/client/child_process.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { onDeno } from "../support/on_deno.ts";
import { run } from "./programs.ts";

const root = new URL("../../", import.meta.url).pathname;

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

Deno.test("each program has a process of its own, which ends with the program, the call or the server", async () => {
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
});

Deno.test("a server without programs starts no process", async () => {
  const server = createServer({ name: "s", version: "1.0.0", handlers: [codeMode()] });
  await using client = await connectTest(server, { transport: "memory" });
  await server.ready();
  assertEquals((await client.listTools()).length, 2);
  assertEquals(countProcesses(), 0);
  await server.close();
});

/** Does not use `spawn` of `node:child_process`, because Deno gives all permissions to processes that it starts so. */
async function runWith(flags: readonly string[]): Promise<string> {
  const args = ["run", "--quiet", "--no-check", "--no-prompt", ...flags, "tests/code/limited_server.ts"];
  const { output, exited, closeInput } = startChild({ command: process.execPath, args, cwd: root });
  const text = await new Response(output).text();
  await exited;
  await closeInput().catch(() => {});
  return text;
}

onDeno("on Deno, programs need only the permission to run Deno, and its error names it", async () => {
  const [without, having] = await Promise.all([runWith([]), runWith([`--allow-run=${process.execPath}`])]);
  assert(without.includes("--allow-run") && !without.includes("42"), without);
  assert(having.includes('"42"'), having);
});
