// A program exits when it has finished, but not while it awaits a timer of the library.
import { assert, assertEquals } from "@std/assert";
import { startChild } from "../../src/client/child_process.ts";
import { bun, deno } from "../../src/core/runtime.ts";
import { testProcesses } from "../support/command_line.ts";
import { root, type Running, start } from "../support/processes.ts";
import { runtimes } from "../support/runtimes.ts";

const program = decodeURIComponent(new URL("exit_program.ts", import.meta.url).pathname);
const words = deno ? [deno.execPath(), "run", "--quiet", "--no-check", "-A"] : [bun?.argv[0] ?? "bun"];

/**
 * Maximum time in milliseconds between a program's last line and its exit. A leaked timer would delay the exit for
 * longer.
 */
const MOST_MS = 1500;

async function runProgram(
  args: readonly string[],
): Promise<{ readonly lines: readonly string[]; readonly ms: number }> {
  const [command, ...rest] = [...words, program, ...args];
  const child = startChild({ command, args: rest }, { readsErrors: true });
  const errors = new Response(child.errors).text();
  const late = setTimeout(() => child.kill(), 20_000);
  let text = "";
  let doneAt = 0;
  for await (const bytes of child.output) {
    text += new TextDecoder().decode(bytes);
    if (text.endsWith("done\n")) doneAt = performance.now();
  }
  const code = await child.exited;
  clearTimeout(late);
  assertEquals([code, await errors], [0, ""], `${args.join(" ")} printed ${text}`);
  return { lines: text.trim().split("\n"), ms: performance.now() - doneAt };
}

const cases: readonly { readonly args: readonly string[]; readonly lines?: readonly string[] }[] = [
  ...["modern", "legacy"].flatMap((era) => [
    ...["memory", "http", "pipe"].map((transport) => ({ args: ["closed", era, transport] })),
    ...["memory", "pipe"].map((transport) => ({ args: ["open", era, transport] })),
  ]),
  ...["2026-07-28", "2025-11-25"].flatMap((version) =>
    ["client", "openClient", "port"].map((what) => ({ args: [what, version] }))
  ),
  { args: ["fake"] },
  { args: ["socket"] },
  { args: ["timeout"], lines: ["true"] },
  { args: ["timeoutLater"], lines: ["true"] },
  { args: ["stream"], lines: ["text/event-stream"] },
  { args: ["streamLater"], lines: ["text/event-stream", "text/event-stream"] },
  { args: ["clientTimeout"], lines: ["TimeoutError"] },
  { args: ["grace"], lines: ["served"] },
];

for (const { args, lines = [] } of cases) {
  Deno.test(`a program exits by itself when it has finished: ${args.join(" ")}`, async () => {
    let least = Infinity;
    // On a busy machine, a single exit can take long.
    for (let runs = 0; runs < 4 && least >= MOST_MS; runs++) {
      const found = await runProgram(args);
      assertEquals(found.lines, [...lines, "done"]);
      least = Math.min(least, found.ms);
    }
    assert(least < MOST_MS, `the program exited ${least} ms after its last line`);
  });
}

// A process that serves stdio ends after its standard input, even if the author's code keeps the process alive.

const stdinProgram = `${root}tests/transports/stdin_exit_program.ts`;

/** Milliseconds after which a process has ended for certain, if it ends by itself. */
const PATIENCE_MS = 30_000;

/** Tests whether a process is still running after a while that is longer than the time until the exit. */
async function isAlive({ finished }: Running): Promise<boolean> {
  // Fixed wait: the process must not exit 3 seconds after its input has ended.
  const late = new Promise<"alive">((resolve) => setTimeout(() => resolve("alive"), 4500));
  return await Promise.race([finished, late]) === "alive";
}

for (const { name, file } of runtimes) {
  testProcesses(`${name}: a process with a timer of the author ends after its standard input`, async () => {
    const began = performance.now();
    await using running = await start([...file, stdinProgram, "{}"], { input: "" });
    await running.waitFor(/served/);
    const { code, stderr } = await running.finished;
    assertEquals([code, stderr.trim()], [0, "served"]);
    assert(performance.now() - began < PATIENCE_MS);
  });

  testProcesses(`${name}: exit: false keeps the process alive after its standard input`, async () => {
    await using running = await start([...file, stdinProgram, '{"exit":false}'], { input: "" });
    await running.waitFor(/served/);
    assert(await isAlive(running));
  });

  testProcesses(`${name}: a process whose signal has stopped the server stays alive`, async () => {
    await using running = await start([...file, stdinProgram, '{"stopMs":200}']);
    await running.waitFor(/served/);
    assert(await isAlive(running));
  });
}
