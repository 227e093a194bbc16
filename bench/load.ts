// Sends requests to a server for a number of seconds. Uses wrk if wrk is installed. Otherwise uses the generator in
// `programs/load.ts`, which is slower and uses more CPU time.
import { LOAD_CORE, pinned } from "./machine.ts";

/** One request of a workload. The id in the body is 1000000. */
export interface Ask {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The path. Defaults to `/mcp`. */
  readonly path?: string;
  /** Number of tenants. `{tenant}` in the path and in the header `host` stands for the number of a tenant. */
  readonly tenants?: number;
}

/** The result of a load test of one or more seconds. */
export interface Load {
  readonly requests: number;
  readonly micros: number;
  readonly failed: number;
  /** The median latency in microseconds. */
  readonly p50: number;
  readonly p99: number;
}

const lua = new URL("load.lua", import.meta.url).pathname;
const own = new URL("programs/load.ts", import.meta.url).pathname;

export const hasWrk: boolean = await findWrk();

async function findWrk(): Promise<boolean> {
  try {
    await new Deno.Command("wrk", { args: ["-v"], stdout: "null", stderr: "null" }).output();
    return true;
  } catch {
    return false;
  }
}

let nextId = 1_000_000;

/** Sends a request repeatedly on several connections, for a number of seconds. */
export async function load(port: number, ask: Ask, connections: number, seconds = 1): Promise<Load> {
  const file = await Deno.makeTempFile();
  const lines = Object.entries(ask.headers).map(([name, value]) => `${name}: ${value}`);
  const { path = "/mcp", tenants = 1 } = ask;
  await Deno.writeTextFile(file, `${path}\n${tenants}\n${lines.join("\n")}\n\n${ask.body}\n`);
  // Start again at the first id of seven digits before the ids get longer.
  if (nextId > 8_000_000) nextId = 1_000_000;
  const words = hasWrk
    ? ["wrk", "-t1", `-c${connections}`, `-d${seconds}s`, "-s", lua, `http://127.0.0.1:${port}`, file, `${nextId}`]
    : [Deno.execPath(), "run", "-A", "--quiet", own, `${port}`, `${connections}`, `${seconds}`, file, `${nextId}`];
  const { stdout } = await pinned(LOAD_CORE, words, { stderr: "inherit" }).output();
  await Deno.remove(file);
  const text = new TextDecoder().decode(stdout);
  const json = /JSON (.*)/.exec(text)?.[1];
  if (!json) throw new Error(`Cannot read the output of the load generator: ${text}`);
  const result: Load = JSON.parse(json);
  if (!result.requests) throw new Error("Cannot measure the server: it sent no response during a whole slice");
  if (result.failed) {
    throw new Error(`Cannot trust the figures: ${result.failed} of ${result.requests} requests failed`);
  }
  nextId += result.requests + connections;
  return result;
}
