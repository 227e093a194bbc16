// The processes of programs: they end with their programs, with the call and with the server, and need a permission.
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { startChild } from "../../src/client/child_process.ts";
import { onDeno } from "../support/on_deno.ts";

const root = new URL("../../", import.meta.url).pathname;

/** Does not use `spawn` of `node:child_process`, because Deno gives all permissions to processes that it starts so. */
async function runWith(args: readonly string[]): Promise<string> {
  const { output, exited, closeInput } = startChild({ command: process.execPath, args, cwd: root });
  const text = await new Response(output).text();
  await exited;
  await closeInput().catch(() => {});
  return text;
}

Deno.test("each program has a process of its own, which ends with the program, the call or the server", async () => {
  const flags = process.versions.deno ? ["run", "--quiet", "--no-check", "-A"] : process.execArgv;
  assertEquals(await runWith([...flags, "tests/code/process_counts.ts"]), "counted\n");
});

const LIMITED = ["run", "--quiet", "--no-check", "--no-prompt"];

onDeno("on Deno, programs need only the permission to run Deno, and its error names it", async () => {
  const [without, having] = await Promise.all(
    [[], [`--allow-run=${process.execPath}`]].map((flags) =>
      runWith([...LIMITED, ...flags, "tests/code/limited_server.ts"])
    ),
  );
  assert(without.includes("--allow-run") && !without.includes("42"), without);
  assert(having.includes('"42"'), having);
});
