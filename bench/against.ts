// Compares the working tree with a git revision, in interleaved pairs: calls in one process, pipelined calls over the
// pipes of two processes, and starts of processes.
import { bundleEntries } from "../tests/release/npm_package.ts";
import { type Manner, readAnswer, toModernAsk } from "./asks.ts";
import { load } from "./load.ts";
import {
  measure,
  pinned,
  readRunTime,
  type Runtime,
  type Server,
  SERVER_CORE,
  startServer,
  toWords,
} from "./machine.ts";
import type { Compared } from "./programs/pairs.ts";
import { KEYED } from "./programs/using.ts";
import { type Ratios, toRatios, toSpread } from "./ratios.ts";
import { toServerFile, toStdioFile } from "./server_file.ts";
import { timeStarts } from "./start.ts";
import { open as openPiped, sendAll, startPiped, toCalls } from "./stdio.ts";
import { type Row, toTable } from "./table.ts";
import { copyTrees, type Tree, type Trees } from "./trees.ts";

/** Ratios above this limit count as a regression. The limit is higher on Bun, because measurements vary more on Bun. */
const LIMITS: Readonly<Record<Runtime, number>> = { deno: 1.03, bun: 1.05, node: 1.05 };
/** Duration of each copy's work within one pair, in milliseconds. */
const SLICE = 40;
/**
 * Number of processes. Each process arranges code and memory differently, and therefore one of two equal copies is up
 * to 4 % faster. With several processes, which load the copies in alternating order, these differences cancel out.
 */
const PROCESSES = 10;

type Workload = readonly [Compared, Manner, "http" | "stdio"];

const workloads: Readonly<Record<string, Workload>> = {
  "W1 tools/call, fetch": ["add", "modern", "http"],
  "W2 tools/call in a session, fetch": ["add", "session", "http"],
  "W3 list of 100 tools, fetch": ["list", "modern", "http"],
  "W3 list of 100 tools in a session, fetch": ["list", "session", "http"],
  "W4 call with 10 progress notifications, fetch": ["count", "modern", "http"],
  "W1 tools/call, stdio": ["add", "modern", "stdio"],
  "W2 tools/call in a session, stdio": ["add", "session", "stdio"],
  "W4 call with 10 progress notifications, stdio": ["count", "modern", "stdio"],
  "W10 opening a session, fetch": ["open", "session", "http"],
  "W10 first request of a session on another instance, fetch": ["move", "session", "http"],
  "W11 call of an operation of openapi(), fetch": ["operation", "modern", "http"],
};

/** Calls to a server that uses optional parts, in both copies. */
const optional: Readonly<Record<string, { readonly workload: Workload; readonly uses: string }>> = {
  "W1 tools/call with a quota, guard, key and audit, fetch": {
    workload: ["add", "modern", "http"],
    uses: "layers,key",
  },
  "W1 tools/call with server middleware, fetch": { workload: ["add", "modern", "http"], uses: "middleware" },
};

const pipelined: Readonly<Record<string, Manner>> = {
  "W5 pipelined tools/call, stdio": "modern",
  "W5 pipelined tools/call in a session, stdio": "session",
};

const root = new URL("../", import.meta.url).pathname;
const program = new URL("programs/pairs.ts", import.meta.url).pathname;

interface CompareOptions {
  readonly pairs: number;
  /** The optional parts, such as an API key, that the working tree's server uses. */
  readonly uses?: string;
  /** The optional parts that the other tree's server uses. */
  readonly otherUses?: string;
  /** Whether garbage is collected once per process, or before each pair. Defaults to "once". */
  readonly collects?: "once" | "each";
}

/** Runs one workload in several processes, and returns the ratios of all pairs. */
async function compareCalls(
  { own, other }: Trees,
  runtime: Runtime,
  workload: Workload,
  { pairs, uses = "", otherUses = "", collects = "once" }: CompareOptions,
): Promise<Ratios> {
  const toCopy = (tree: Tree) => JSON.stringify({ ...tree, uses: tree === own ? uses : otherUses });
  const micros: { readonly own: number[]; readonly other: number[] } = { own: [], other: [] };
  const processes = Math.min(PROCESSES, pairs);
  for (let i = 0; i < processes; i++) {
    const order = i % 2 ? [other, own] : [own, other];
    const size = Math.ceil((pairs - i) / processes);
    const args = [JSON.stringify(workload), `${size}`, `${SLICE}`, collects, ...order.map(toCopy)];
    for (const pair of await runPairs(runtime, args)) {
      micros.own.push(pair[order.indexOf(own)]);
      micros.other.push(pair[order.indexOf(other)]);
    }
  }
  return toRatios(micros.own, micros.other);
}

async function runPairs(runtime: Runtime, args: readonly string[]): Promise<readonly (readonly number[])[]> {
  const [command, ...words] = toWords(runtime, program, args);
  if (runtime === "deno") words.splice(1, 0, "--v8-flags=--expose-gc");
  const { success, stdout, stderr } = await pinned(SERVER_CORE, [command, ...words]).output();
  if (!success) throw new Error(`Cannot compare: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}

/**
 * Starts the two copies alternately: as a file that calls `serveStdio`, and as a file that the command line serves.
 * Also starts the first file with the npm package of the working tree, and compares these starts with starts from the
 * other copy's sources.
 */
async function compareStarts(
  { folder, own, other }: Trees,
  runtime: Runtime,
  pairs: number,
): Promise<Map<string, Ratios>> {
  const [file, server] = ["bench_file.ts", "bench_server.ts"];
  for (const tree of [own, other]) {
    await Deno.writeTextFile(tree.folder + file, toStdioFile(tree));
    await Deno.writeTextFile(tree.folder + server, toServerFile(tree));
  }
  await bundleEntries(root, `${folder}npm`);
  const npm = { library: `${folder}npm/index.js`, stdio: `${folder}npm/stdio.js` };
  await Deno.writeTextFile(`${folder}npm/${file}`, toStdioFile(npm));
  const times = await timeStarts([
    ...[own, other].map(({ folder }) => toWords(runtime, folder + file, [])),
    ...[own, other].map(({ folder, library }) => toWords(runtime, library, [folder + server])),
    toWords(runtime, `${folder}npm/${file}`, []),
  ], pairs);
  const [ownFile, otherFile, ownCommand, otherCommand, npmFile] = times.map((series) => series.map(({ cpu }) => cpu));
  return new Map([
    ["start of a file that calls serveStdio, CPU", toRatios(ownFile, otherFile)],
    ["start of a file that the command line serves, CPU", toRatios(ownCommand, otherCommand)],
    ["start with the npm package / start of the source, CPU", toRatios(npmFile, otherFile)],
  ]);
}

/**
 * Number of processes per copy that serve pipelined calls. One process is not enough, because processes with equal code
 * differ by a few percent.
 */
const PIPED_PROCESSES = 4;
/**
 * Number of warm-up turns, in which engines compile the code. With only a quarter as many turns, the results of two
 * equal copies would differ by 10 %.
 */
const PIPED_WARM_UP = 12;
/** Number of pipelined calls in one turn. */
const PIPED_CALLS = 20_000;

/** Sends pipelined calls to two stdio servers alternately, and compares their CPU time. */
async function comparePiped(
  { own, other }: Trees,
  runtime: Runtime,
  manner: Manner,
  pairs: number,
): Promise<Ratios> {
  const file = "bench_piped.ts";
  for (const tree of [own, other]) await Deno.writeTextFile(tree.folder + file, toStdioFile(tree));
  const micros: { readonly own: number[]; readonly other: number[] } = { own: [], other: [] };
  for (let i = 0; i < PIPED_PROCESSES; i++) {
    const order = i % 2 ? [other, own] : [own, other];
    const servers = order.map(({ folder }) => startPiped(toWords(runtime, folder + file, [])));
    try {
      for (const server of servers) await openPiped(server, manner);
      for (let turn = -PIPED_WARM_UP; turn < pairs / PIPED_PROCESSES; turn++) {
        for (const at of turn % 2 ? [1, 0] : [0, 1]) {
          const calls = toCalls(manner, PIPED_CALLS);
          const before = readRunTime(servers[at].pid);
          await sendAll(servers[at], calls, PIPED_CALLS);
          const used = readRunTime(servers[at].pid) - before;
          if (turn >= 0) micros[order[at] === own ? "own" : "other"].push(used / PIPED_CALLS * 1e6);
        }
      }
    } finally {
      for (const server of servers) await server.stop();
    }
  }
  return toRatios(micros.own, micros.other);
}

/** The highest allowed cost ratio of a server that uses a service, an API key and an observer. */
const USES_LIMIT = 1.1;

/**
 * Measures the CPU time per request over sockets. A server with optional parts and a server without optional parts take
 * turns.
 */
export async function compareSockets(runtime: Runtime, uses: string, turns: number): Promise<Ratios> {
  const words = [`uses:${uses}`, "call"].map((what) => toWords(runtime, "programs/ours.ts", [what]));
  const servers: Server[] = [];
  const micros: number[][] = [[], []];
  try {
    for (const each of words) servers.push(await startServer(each));
    const { headers, body } = toModernAsk("tools/call", { name: "add", arguments: { a: 1, b: 2 } });
    const ask = { headers: { ...headers, ...KEYED }, body };
    for (const { port } of servers) await readAnswer(port, ask, "add");
    for (const { port } of servers) await load(port, ask, 32, 2); // Warm up, so that the engine compiles the code.
    for (let turn = 0; turn < turns; turn++) {
      for (const i of turn % 2 ? [1, 0] : [0, 1]) {
        const { pid, port } = servers[i];
        const { cpu, value } = await measure(pid, () => load(port, ask, 32));
        micros[i].push(cpu / value.requests * 1e6);
      }
    }
    return toRatios(micros[0], micros[1]);
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** The optional parts to measure, keyed by the name of the table's row. */
const USES: Readonly<Record<string, string>> = {
  "all three": "service,key,observer",
  "a service": "service",
  "an API key": "key",
  "an observer": "observer",
};

/**
 * Compares a server that uses a server-wide service, an API key and an observer of one event with a server that uses
 * none of these parts. Each server uses its own copy of the working tree. Also measures each part alone. Prints a
 * Markdown table. Returns whether all parts together cost at most 10 % more.
 */
export async function measureUses(runtimes: readonly Runtime[], pairs: number): Promise<boolean> {
  const trees = await copyTrees();
  const rows = new Map<string, Row>();
  let isGood = true;

  function add(row: Row, runtime: Runtime, ratios: Ratios): void {
    const isMore = ratios.median > USES_LIMIT;
    if (isMore) isGood = false;
    row.set(`${runtime}: ratio`, ratios.median.toFixed(3)).set(`${runtime}: quartiles`, toSpread(ratios));
    row.set(`${runtime}: verdict`, isMore ? "**more**" : "ok");
  }

  try {
    for (const name of ["W1 tools/call, fetch", "W2 tools/call in a session, fetch"]) {
      for (const [part, uses] of Object.entries(USES)) {
        const row: Row = new Map();
        for (const runtime of runtimes) {
          console.error(`comparing ${name} on ${runtime} with ${part} …`);
          add(row, runtime, await compareCalls(trees, runtime, workloads[name], { pairs, uses }));
        }
        rows.set(`${name}: ${part}`, row);
      }
    }
    for (const [part, uses] of Object.entries(USES)) {
      const row: Row = new Map();
      for (const runtime of runtimes) {
        console.error(`comparing W1 over sockets on ${runtime} with ${part} …`);
        add(row, runtime, await compareSockets(runtime, uses, Math.ceil(pairs / 4)));
      }
      rows.set(`W1 tools/call, sockets: ${part}`, row);
    }
    console.log(toTable(`With optional parts / without, ${pairs} interleaved pairs`, rows));
    return isGood;
  } finally {
    await trees.remove();
  }
}

/** Compares the working tree with a revision. Prints a Markdown table. Returns `false` if any workload is slower. */
export async function measureAgainst(
  revision: string,
  runtimes: readonly Runtime[],
  { pairs, only }: { readonly pairs: number; readonly only: readonly string[] },
): Promise<boolean> {
  const isWanted = (name: string) => !only.length || only.includes(name.split(" ")[0]);
  const trees = await copyTrees(revision);
  const rows = new Map<string, Row>();
  let isGood = true;

  function add(name: string, runtime: Runtime, ratios: Ratios): void {
    const isSlower = ratios.median > LIMITS[runtime];
    if (isSlower) isGood = false;
    const verdict = isSlower ? "**slower**" : ratios.median < 2 - LIMITS[runtime] ? "faster" : "ok";
    const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
    row?.set(`${runtime}: ratio`, ratios.median.toFixed(3));
    row?.set(`${runtime}: quartiles`, toSpread(ratios)).set(`${runtime}: verdict`, verdict);
  }

  try {
    for (const runtime of runtimes) {
      for (const [name, workload] of Object.entries(workloads)) {
        if (!isWanted(name)) continue;
        console.error(`comparing ${name} on ${runtime} …`);
        add(name, runtime, await compareCalls(trees, runtime, workload, { pairs }));
        add(
          `${name}, after a collection`,
          runtime,
          await compareCalls(trees, runtime, workload, { pairs, collects: "each" }),
        );
      }
      for (const [name, { workload, uses }] of Object.entries(optional)) {
        if (!isWanted(name)) continue;
        console.error(`comparing ${name} on ${runtime} …`);
        add(name, runtime, await compareCalls(trees, runtime, workload, { pairs, uses, otherUses: uses }));
      }
      for (const [name, manner] of Object.entries(pipelined)) {
        if (!isWanted(name)) continue;
        console.error(`comparing ${name} on ${runtime} …`);
        add(name, runtime, await comparePiped(trees, runtime, manner, pairs));
      }
      if (!isWanted("W6")) continue;
      console.error(`comparing starts on ${runtime} …`);
      for (const [name, ratios] of await compareStarts(trees, runtime, pairs)) add(name, runtime, ratios);
    }
    console.log(
      toTable(
        `Working tree / ${revision}, ${pairs} interleaved pairs; slower means over 3 % on Deno, 5 % on Bun`,
        rows,
      ),
    );
    return isGood;
  } finally {
    await trees.remove();
  }
}
