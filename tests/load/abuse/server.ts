// Starts the server that is attacked, and reads its CPU time and memory.
import { findNode, NODE_VERSIONS } from "../../support/node_versions.ts";
import { type Runtime, RUNTIMES } from "../processes.ts";
import type { Held, Spent } from "./program.ts";

export const ABUSED_RUNTIMES = [...RUNTIMES, "node"] as const;
export type AbusedRuntime = typeof ABUSED_RUNTIMES[number];

/** The attacked server in a separate process. Disposing kills the process. */
export interface Abused extends AsyncDisposable {
  readonly runtime: AbusedRuntime;
  readonly pid: number;
  readonly port: number;
  readonly origin: string;
  readonly url: string;
  /** Whether the process exited before it was disposed. */
  readonly isDead: boolean;
  /** The last part of the process's standard error. */
  readonly errors: string;
  spent(): Promise<Spent>;
  held(): Promise<Held>;
}

/** Returns the command that starts the program. On Deno, `heapMb` limits the heap. */
export function toProgram(runtime: Runtime, args: readonly string[] = [], heapMb?: number): readonly string[] {
  const file = new URL("program.ts", import.meta.url).pathname;
  const flags = `--v8-flags=--expose-gc${heapMb ? `,--max-old-space-size=${heapMb}` : ""}`;
  return runtime === "deno"
    ? ["deno", "run", "-A", "--no-check", "--quiet", flags, file, ...args]
    : ["bun", file, ...args];
}

/** Returns the command that starts the program on the newest supported version of Node. */
async function toNodeProgram(): Promise<readonly string[]> {
  const found = await findNode(NODE_VERSIONS[NODE_VERSIONS.length - 1]);
  if ("missing" in found) throw new Error(`Cannot start the program: ${found.missing}`);
  const toPath = (name: string) => new URL(name, import.meta.url).pathname;
  return [found.path, "--expose-gc", "--import", toPath("../../support/node_preload.ts"), toPath("program.ts")];
}

/** Starts the program, which serves HTTP. */
export async function startAbused(runtime: AbusedRuntime, heapMb?: number): Promise<Abused> {
  const [command, ...args] = runtime === "node" ? await toNodeProgram() : toProgram(runtime, [], heapMb);
  const child = new Deno.Command(command, { args, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
  let errors = "";
  let isDead = false;
  const reading = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) errors = (errors + text).slice(-2000);
  })();
  const ended = child.status.then(() => {
    isDead = true;
  });
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const port = Number((await output.read()).value);
  if (!port) throw new Error(`Cannot start the program on ${runtime}: ${errors}`);
  const origin = `http://127.0.0.1:${port}`;
  const report = async (path: string) => await (await fetch(`${origin}/_load/${path}`)).json();
  return {
    ...{ runtime, pid: child.pid, port, origin, url: `${origin}/mcp` },
    get isDead() {
      return isDead;
    },
    get errors() {
      return errors;
    },
    spent: () => report("spent"),
    held: () => report("held"),
    async [Symbol.asyncDispose]() {
      if (!isDead) child.kill("SIGKILL");
      await ended;
      await output.cancel();
      await reading;
    },
  };
}

/** Returns the peak memory of a process in bytes. */
export function readPeak(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]) * 1024;
}
