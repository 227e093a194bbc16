// W1 to W4: requests over HTTP. All servers of a workload run at the same time, and take turns in slices of a second.
import { type Manner, readAnswer, type Subject, toAsk } from "./asks.ts";
import { type Ask, load } from "./load.ts";
import { measure, type Runtime, type Server, startServer, toMedian, toWords } from "./machine.ts";
import type { Peer } from "./peers.ts";
import { toFigure, type Workload } from "./record.ts";
import type { Row } from "./table.ts";
import { judgeWarmUp, type WarmUpStep } from "./warm_up.ts";

interface Plan {
  readonly title: string;
  readonly subject: Subject;
  readonly manner: Manner;
  /** The kinds of responses of the minimal server. The cheapest kind is the reference. */
  readonly floors: readonly (keyof typeof FLOORS)[];
}

export const workloads: Readonly<Record<string, Plan>> = {
  W1: { title: "tools/call", subject: "add", manner: "modern", floors: ["json", "read"] },
  W2: { title: "tools/call in a session", subject: "add", manner: "session", floors: ["json", "read"] },
  W3: {
    title: "tools/list, 100 tools with 6 properties each",
    subject: "list",
    manner: "modern",
    floors: ["text", "bytes", "json"],
  },
  W4: { title: "tools/call with 10 progress notifications", subject: "count", manner: "modern", floors: ["frames"] },
};

const FLOORS = {
  json: "floor: parses and writes JSON, checks nothing",
  read: "floor that also reads all parts to check",
  text: "floor: inserts the id into a ready string",
  bytes: "floor: inserts the id into ready bytes",
  frames: "floor: writes ready events",
};

interface Runner {
  readonly name: string;
  readonly server: Server;
  readonly ask: Ask;
  /** CPU time per request in microseconds, by round. */
  readonly cpu: number[];
  readonly rate: number[];
  readonly latency: number[];
}

/** The way in which a workload is measured. */
export interface HttpOptions {
  readonly runtimes: readonly Runtime[];
  readonly peers: readonly Peer[];
  /** Number of rounds. In each round, each server has one slice. */
  readonly rounds: number;
  /** Whether to measure only the CPU time, which takes half as long. */
  readonly isRecord: boolean;
}

/** The figures of a workload, and the servers that were not warm when the rounds began. */
export interface Measured {
  readonly workload: Workload;
  /** Requests per second and latencies, by server. */
  readonly others: ReadonlyMap<string, Row>;
  readonly falling: readonly string[];
}

async function start(plan: Plan, runtime: Runtime, peers: readonly Peer[]): Promise<Runner[]> {
  const { subject, manner, floors } = plan;
  const runners: Runner[] = [];
  const answer = await Deno.makeTempFile({ suffix: ".json" });

  async function add(name: string, file: string, args: readonly string[], manner: Manner): Promise<Runner> {
    const server = await startServer(toWords(runtime, file, args));
    const runner = { name, server, ask: await toAsk(server.port, subject, manner), cpu: [], rate: [], latency: [] };
    runners.push(runner);
    return runner;
  }

  try {
    const what = subject === "list" ? "list" : "call";
    const ours = await add("@x/mcp", "programs/ours.ts", [what], manner);
    await Deno.writeTextFile(answer, JSON.stringify(await readAnswer(ours.server.port, ours.ask, subject)));
    if (runtime === "node") await add("@x/mcp with @hono/node-server", "programs/ours.ts", [what, "adapter"], manner);
    for (const floor of floors) {
      const words = toWords(runtime, "programs/floor.ts", [floor, answer]);
      const server = await startServer(words);
      runners.push({ name: FLOORS[floor], server, ask: ours.ask, cpu: [], rate: [], latency: [] });
      await readAnswer(server.port, ours.ask, subject);
    }
    for (const peer of peers) {
      const peerManner = manner === "session" ? manner : peer.manner;
      const runner = await add(peer.name, peer.file, [manner === "session" ? peer.session : what], peerManner);
      await readAnswer(runner.server.port, runner.ask, subject);
    }
    return runners;
  } catch (error) {
    await stop(runners);
    throw error;
  } finally {
    await Deno.remove(answer);
  }
}

async function stop(runners: readonly Runner[]): Promise<void> {
  for (const { server } of runners) await server.stop();
}

/** Puts load on a server until it is warm. Returns whether its CPU time per request still falls. */
async function warmUp({ name, server, ask }: Runner): Promise<boolean> {
  const steps: WarmUpStep[] = [];
  let state: ReturnType<typeof judgeWarmUp> = "cold";
  while (state === "cold") {
    const { cpu, value } = await measure(server.pid, () => load(server.port, ask, 32));
    steps.push({ cpu, requests: value.requests });
    state = judgeWarmUp(steps);
  }
  const used = steps.reduce((sum, { cpu }) => sum + cpu, 0);
  const [first, last] = [steps[0], steps[steps.length - 1]].map(({ cpu, requests }) => cpu / requests * 1e6);
  const change = `from ${first.toFixed(1)} to ${last.toFixed(1)} µs per request`;
  console.error(`    ${name}: ${state} after ${used.toFixed(1)} s of CPU time, ${change}`);
  return state === "falling";
}

async function measureRound(runners: readonly Runner[], isRecord: boolean): Promise<void> {
  for (const { server, ask, cpu, rate } of runners) {
    const { cpu: used, value } = await measure(server.pid, () => load(server.port, ask, 32));
    cpu.push(used / value.requests * 1e6);
    rate.push(value.requests / value.micros * 1e6);
  }
  if (isRecord) return;
  for (const { server, ask, latency } of runners) {
    const { value } = await measure(server.pid, () => load(server.port, ask, 1));
    latency.push(value.p50);
  }
}

/** Measures one workload on the runtimes. Prints its progress. */
export async function measureHttp(name: string, { runtimes, peers, rounds, isRecord }: HttpOptions): Promise<Measured> {
  const plan = workloads[name];
  const servers: Record<string, Record<string, ReturnType<typeof toFigure>>> = {};
  const others = new Map<string, Row>();
  const falling: string[] = [];
  for (const runtime of runtimes) {
    console.error(`  ${name} on ${runtime}: warming up`);
    const runners = await start(plan, runtime, peers);
    try {
      for (const runner of runners) if (await warmUp(runner)) falling.push(`${runner.name} (${name}, ${runtime})`);
      for (let round = 1; round <= rounds; round++) {
        console.error(`  ${name} on ${runtime}: round ${round} of ${rounds}`);
        await measureRound(runners, isRecord);
      }
    } finally {
      await stop(runners);
    }
    for (const { name, cpu, rate, latency } of runners) {
      servers[name] = { ...servers[name], [runtime]: toFigure(cpu) };
      const row = others.get(name) ?? new Map();
      others.set(name, row);
      row.set(`${runtime}: req/s`, Math.round(toMedian(rate)).toString());
      if (!isRecord) row.set(`${runtime}: µs latency`, Math.round(toMedian(latency)).toString());
    }
  }
  return { workload: { title: plan.title, servers }, others, falling };
}
