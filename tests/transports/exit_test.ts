// A program exits when it has finished, but not while it awaits a timer of the library.
import { assert, assertEquals } from "@std/assert";
import { startChild } from "../../src/client/child_process.ts";
import { bun, deno } from "../../src/core/runtime.ts";

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
