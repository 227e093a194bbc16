// A process that serves stdio ends after its standard input, even if the author's code keeps the process alive.
import { assert, assertEquals } from "@std/assert";
import { testProcesses } from "../support/command_line.ts";
import { root, type Running, start } from "../support/processes.ts";
import { runtimes } from "../support/runtimes.ts";

const program = `${root}tests/transports/stdin_exit_program.ts`;

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
    await using running = await start([...file, program, "{}"], { input: "" });
    await running.waitFor(/served/);
    const { code, stderr } = await running.finished;
    assertEquals([code, stderr.trim()], [0, "served"]);
    assert(performance.now() - began < PATIENCE_MS);
  });

  testProcesses(`${name}: exit: false keeps the process alive after its standard input`, async () => {
    await using running = await start([...file, program, '{"exit":false}'], { input: "" });
    await running.waitFor(/served/);
    assert(await isAlive(running));
  });

  testProcesses(`${name}: a process whose signal has stopped the server stays alive`, async () => {
    await using running = await start([...file, program, '{"stopMs":200}']);
    await running.waitFor(/served/);
    assert(await isAlive(running));
  });
}
