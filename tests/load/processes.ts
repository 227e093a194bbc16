// Starts the load program on a runtime, and communicates with the program.
import { startSession, toCall } from "../hostile/unread.ts";
import type { Stats } from "./program.ts";
import type { BoundOptions } from "../../src/server/capacity/limits.ts";

export const RUNTIMES = ["deno", "bun"] as const;
export type Runtime = typeof RUNTIMES[number];

/** A server in a separate process. */
export interface Loaded extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  stats(): Promise<Stats>;
  /** Sends a request to `/_load/`, and parses the response. */
  control<T>(path: string): Promise<T>;
  /** Returns the server's standard error so far. */
  errors(): string;
  /** Sends a signal to the server. Returns its exit code. */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<number>;
}

const program = new URL("program.ts", import.meta.url).pathname;

/** Returns the command that runs a file. On Deno, the command exposes the garbage collector. */
export function toWords(runtime: Runtime, file: string, ...args: readonly string[]): readonly string[] {
  return runtime === "deno"
    ? ["deno", "run", "-A", "--no-check", "--quiet", "--v8-flags=--expose-gc", file, ...args]
    : ["bun", file, ...args];
}

/** Starts the load program, and waits until it listens. */
export async function startLoaded(runtime: Runtime, limits: BoundOptions = {}): Promise<Loaded> {
  // JSON cannot represent Infinity, but no option here has this value.
  const [command, ...args] = toWords(runtime, program, JSON.stringify({ limits }));
  const child = new Deno.Command(command, { args, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
  let errors = "";
  const listening = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) errors += text;
  })();
  const output = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value } = await output.read();
  const port = Number(value);
  if (!port) throw new Error(`Cannot start the program on ${runtime}: ${value} ${errors}`);
  const origin = `http://127.0.0.1:${port}`;
  let ended: Promise<number> | undefined;

  async function control<T>(path: string): Promise<T> {
    return await (await fetch(`${origin}/_load/${path}`)).json();
  }

  function end(signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    ended ??= (async () => {
      child.kill(signal);
      const { code } = await child.status;
      await output.cancel();
      await listening;
      return code;
    })();
    return ended;
  }

  return {
    ...{ runtime, pid: child.pid, port, url: `${origin}/mcp`, control, end, errors: () => errors },
    stats: () => control<Stats>("stats"),
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

/** Returns the resident memory of a process in bytes. */
export function readRss(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]) * 1024;
}

/** Returns the number of open files and sockets of a process. */
export function countFiles(pid: number): number {
  return [...Deno.readDirSync(`/proc/${pid}/fd`)].length;
}

/** Returns a quantile: the given proportion of the values is below it. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Makes plain calls sequentially. Returns the duration of each call in milliseconds. */
export async function ping(url: string, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    const response = await fetch(url, toCall("quick"));
    const text = await response.text();
    if (!text.includes('"quick"')) {
      throw new Error(`Cannot measure: a plain call got ${response.status} ${text.slice(0, 200)}`);
    }
    times.push(performance.now() - start);
  }
  return times;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
export const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
export { startSession, toCall };
