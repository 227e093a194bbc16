// Measures the CPU time and memory of processes on Linux, and detects CPU use by unrelated processes.

import { findNode, NODE_VERSIONS } from "../tests/support/node_versions.ts";

/** The CPU core on which servers run. Clients run on the other core. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

const TICK = 0.01; // In seconds: Linux reports CPU times in units of 10 ms.
const folder = new URL(".", import.meta.url).pathname;

/** Returns the fields of /proc/<pid>/stat from the third field on. The second field may contain spaces. */
function readStat(pid: number | "self"): number[] {
  const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
}

/** Returns the CPU time of a process in seconds: user and system time of all threads. */
export function readCpu(pid: number): number {
  const stat = readStat(pid);
  return (stat[11] + stat[12]) * TICK;
}

/**
 * Returns the CPU time like {@linkcode readCpu}, but with a resolution of nanoseconds, and without threads that have
 * ended. Use this function for work that takes less than about 100 ms.
 */
export function readRunTime(pid: number): number {
  return [...Deno.readDirSync(`/proc/${pid}/task`)].reduce(
    (sum, { name }) => sum + Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]) / 1e9,
    0,
  );
}

/** Returns the resident memory of a process in bytes. */
export function readRss(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]) * 1024;
}

/**
 * Returns CPU times in seconds: of all processes on all cores, and of this process with its awaited child processes.
 */
function readWork(): { readonly all: number; readonly own: number } {
  const [user, nice, system, , , irq, softirq, steal] = Deno.readTextFileSync("/proc/stat").split("\n", 1)[0].split(
    /\s+/,
  )
    .slice(1).map(Number);
  const stat = readStat("self");
  return {
    all: (user + nice + system + irq + softirq + steal) * TICK,
    own: (stat[11] + stat[12] + stat[13] + stat[14]) * TICK,
  };
}

/** Number of measured slices, and number of slices in which unrelated processes used more than 10 % of a core. */
export const slices = { all: 0, shared: 0 };

/** Measures one slice of work: its duration, the server's CPU time, and whether unrelated processes used the CPU. */
export async function measure<T>(
  pid: number,
  work: () => Promise<T>,
): Promise<{ cpu: number; wall: number; value: T }> {
  const before = { ...readWork(), cpu: readCpu(pid), at: performance.now() };
  const value = await work();
  const wall = (performance.now() - before.at) / 1000;
  const cpu = readCpu(pid) - before.cpu;
  const { all, own } = readWork();
  slices.all++;
  if (all - before.all - (own - before.own) - cpu > 0.1 * wall) slices.shared++;
  return { cpu, wall, value };
}

/** Moves all threads of this process to the clients' core. */
export async function pinSelf(): Promise<void> {
  await new Deno.Command("taskset", { args: ["-acp", `${LOAD_CORE}`, `${Deno.pid}`], stdout: "null" }).output();
}

/** Returns a command that is pinned to a CPU core. */
export function pinned(core: number, words: readonly string[], options: Deno.CommandOptions = {}): Deno.Command {
  return new Deno.Command("taskset", { args: ["-c", `${core}`, ...words], cwd: folder, ...options });
}

export type Runtime = "deno" | "bun" | "node";

/** Returns the command line that runs a program on a runtime. */
export function toWords(runtime: Runtime, file: string, args: readonly string[]): string[] {
  if (runtime === "node") return [node, "--disable-warning=ExperimentalWarning", file, ...args];
  return runtime === "deno" ? [Deno.execPath(), "run", "-A", "--quiet", file, ...args] : ["bun", "run", file, ...args];
}

/** The newest supported version of Node. */
const NODE = NODE_VERSIONS[NODE_VERSIONS.length - 1];
let node = "node";

/** Downloads Node, unless it is present. Must be called before {@linkcode toWords} is called for Node. */
export async function prepareNode(): Promise<void> {
  const found = await findNode(NODE);
  if ("missing" in found) throw new Error(`Cannot measure on Node: ${found.missing}`);
  node = found.path;
}

export interface Server {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a server on the servers' core, and waits until the server prints its port. */
export async function startServer(words: readonly string[]): Promise<Server> {
  const child = pinned(SERVER_CORE, words, { stdin: "null", stdout: "piped", stderr: "null" }).spawn();
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`Cannot measure "${words.join(" ")}": it printed no port; run it to see why`);
    text += new TextDecoder().decode(value);
  }
  return {
    pid: child.pid,
    port: Number(text),
    async stop() {
      child.kill("SIGKILL");
      await reader.cancel();
      await child.status;
    },
  };
}

export function toMedian(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns the CPU, the kernel, and the versions of the runtimes on one line. */
export async function describeMachine(): Promise<string> {
  const model = /model name\s*: (.*)/.exec(Deno.readTextFileSync("/proc/cpuinfo"))?.[1] ?? "unknown processor";
  const bun = new TextDecoder().decode((await new Deno.Command("bun", { args: ["--version"] }).output()).stdout).trim();
  const cores = `${navigator.hardwareConcurrency} cores of ${model}, Linux ${Deno.osRelease()}`;
  return `${cores}; Deno ${Deno.version.deno}, Bun ${bun}, Node ${NODE}`;
}
