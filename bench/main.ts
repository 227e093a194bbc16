// Compares this library with a minimal server, with other libraries (`--peers`), or with another revision of this
// library (`--against`). `deno task bench -- --help` lists all options.
//
// Writes the results to standard output as Markdown, and its progress to standard error.
import { readNumber } from "../tests/support/options.ts";
import { measureAgainst, measureUses } from "./against.ts";
import { measureCosts } from "./costs.ts";
import { measureAllGrowth } from "./growth.ts";
import { measureHttp, workloads } from "./http.ts";
import { hasWrk } from "./load.ts";
import { describeMachine, pinSelf, prepareNode, type Runtime, slices } from "./machine.ts";
import { measureMemory } from "./memory.ts";
import { orUsageError, readTaskOptions } from "./options.ts";
import { installPeers, type Peer } from "./peers.ts";
import { writePages } from "./pages.ts";
import { type Figures, type Workload, writeRecord } from "./record.ts";
import { measureSize } from "./size.ts";
import { measureStart } from "./start.ts";
import { measureStarts } from "./starts.ts";
import { measureStdio } from "./stdio.ts";
import { toTable, toWorkloadRows } from "./table.ts";
import { WARM_UP_SECONDS } from "./warm_up.ts";

const options = readTaskOptions(Deno.args, {
  name: "bench",
  summary: "Measures the cost of this library. Prints Markdown tables.",
  values: {
    "--against REV": "Compare this tree with a git revision; exit code 1 if it is slower",
    "--pairs N": "Number of pairs in a comparison, or of starts with --starts; default: 40",
    "--only W1,W5": "Measure only these workloads, of W1 to W9 and size, or W10 and W11 with --against",
    "--runtime deno,bun,node": "Measure on these runtimes; default: all, or Deno and Bun in comparisons",
    "--slices N": "Number of rounds per workload, with a slice of one second for each server; default: 6",
  },
  flags: {
    "--uses":
      "Compare a server with a service, an API key and an observer with a server without them; exit code 1 above 10 %",
    "--starts": "Measure starts over stdio and bundle sizes, and compare them with their targets",
    "--peers": "Also measure other libraries, which are installed into a temporary folder",
    "--record":
      "Measure the CPU time of W1 to W4 in up to 25 minutes, and write it into bench/peers.json, the plots and the pages",
  },
});
const count = orUsageError(() => readNumber(options, "--slices", 6));
const pairs = orUsageError(() => readNumber(options, "--pairs", 40));
const only = options.get("--only")?.split(",") ?? [];
const isComparison = ["--against", "--uses", "--starts"].some((name) => options.has(name));
const runtimes = orUsageError(() =>
  readRuntimes(options.get("--runtime") ?? (isComparison ? "deno,bun" : "deno,bun,node"))
);
const revision = options.get("--against");
if (isComparison && runtimes.includes("node")) {
  console.error("Cannot compare on Node: --against, --uses and --starts measure Deno and Bun only; remove node");
  Deno.exit(2);
}

function readRuntimes(text: string): readonly Runtime[] {
  return text.split(",").map((name) => {
    if (name === "deno" || name === "bun" || name === "node") return name;
    throw new Error(`Cannot measure on "${name}": the runtimes are deno, bun and node`);
  });
}

/** The figures of the measured workloads over HTTP. */
const record = new Map<string, Workload>();
/** The servers that were not warm when their first round began. */
const falling: string[] = [];

const parts: Readonly<Record<string, (runtimes: readonly Runtime[], peers: readonly Peer[]) => Promise<string>>> = {
  ...Object.fromEntries(
    Object.keys(workloads).map((name) => [
      name,
      async (runtimes, peers) => {
        const isRecord = options.has("--record");
        const measured = await measureHttp(name, { runtimes, peers, rounds: count, isRecord });
        record.set(name, measured.workload);
        falling.push(...measured.falling);
        const rows = toWorkloadRows(measured.workload, runtimes);
        for (const [server, row] of measured.others) row.forEach((cell, column) => rows.get(server)?.set(column, cell));
        return toTable(`${name} ${workloads[name].title}`, rows);
      },
    ]),
  ),
  W5: async (runtimes, peers) =>
    await measureStdio("session", runtimes, peers, count) + "\n" + await measureStdio("modern", runtimes, peers, count),
  W6: (runtimes, peers) => measureStart(runtimes, peers, Math.max(count, 15)),
  W7: (runtimes) => measureMemory(runtimes),
  W8: (runtimes) => measureAllGrowth(runtimes, count),
  W9: (runtimes) => measureCosts(runtimes, count),
  size: () => measureSize(count),
};

/** Workloads that only `--against` measures. */
const compared = options.has("--against") ? ["W10", "W11"] : [];
const stranger = only.find((name) => !Object.hasOwn(parts, name) && !compared.includes(name));
if (stranger !== undefined) {
  console.error(`Cannot measure "${stranger}": the workloads are ${[...Object.keys(parts), ...compared].join(", ")}`);
  Deno.exit(2);
}

if (options.has("--record")) {
  const problem = isComparison || runtimes.length < 3 || only.length || !options.has("--peers")
    ? "it needs --peers and all runtimes, and measures all of W1 to W4; remove the other options"
    : Deno.loadavg()[0] > 1
    ? `the load average is ${Deno.loadavg()[0].toFixed(2)}, more than 1; end other programs, and wait for a minute`
    : undefined;
  if (problem) {
    console.error(`Cannot write the record: ${problem}`);
    Deno.exit(2);
  }
  // Other workloads are not part of the record.
  only.push(...Object.keys(workloads));
}

function toMinutes(ms: number): string {
  return `after ${(ms / 60_000).toFixed(1)} minutes`;
}

async function measureParts(): Promise<void> {
  const { peers, remove } = options.has("--peers") ? await installPeers() : { peers: [], remove: async () => {} };
  try {
    for (const [name, part] of Object.entries(parts)) {
      if (only.length && !only.includes(name)) continue;
      console.error(`${toMinutes(performance.now())}: measuring ${name}`);
      console.log(await part(runtimes, peers));
    }
  } finally {
    await remove();
  }
  if (slices.shared) {
    console.log(`Warning: in ${slices.shared} of ${slices.all} slices, other processes used the CPU.`);
  }
}

if (runtimes.includes("node")) await prepareNode();
await pinSelf();
const machine = await describeMachine();
console.log(`${machine}${hasWrk ? "" : "; without wrk"}\n`);
if (revision !== undefined) {
  if (!await measureAgainst(revision, runtimes, { pairs, only })) Deno.exitCode = 1;
} else if (options.has("--uses")) {
  if (!await measureUses(runtimes, pairs)) Deno.exitCode = 1;
} else if (options.has("--starts")) {
  console.log(await measureStarts(runtimes, pairs));
} else {
  await measureParts();
  if (options.has("--record")) {
    const conditions = {
      rounds: count,
      warmUpSeconds: WARM_UP_SECONDS,
      falling,
      shared: slices.shared,
      slices: slices.all,
    };
    const figures: Figures = {
      machine: hasWrk ? machine : `${machine}; without wrk`,
      conditions,
      workloads: Object.fromEntries(record),
    };
    await writeRecord(figures);
    await writePages(figures);
  }
}
