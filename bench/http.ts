// W1 to W4: requests over HTTP. All servers of a workload run at the same time, and take turns in slices of a second.
import { type Manner, readAnswer, type Subject, toAsk } from "./asks.ts";
import { type Ask, load } from "./load.ts";
import { measure, type Runtime, type Server, startServer, toMedian, toWords } from "./machine.ts";
import type { Peer } from "./peers.ts";
import type { Row } from "./table.ts";

interface Workload {
  readonly title: string;
  readonly subject: Subject;
  readonly manner: Manner;
  /** The kinds of responses of the minimal server. The cheapest kind is the reference. */
  readonly floors: readonly (keyof typeof FLOORS)[];
}

export const workloads: Readonly<Record<string, Workload>> = {
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
  /** CPU time per request in microseconds, by slice. */
  readonly cpu: number[];
  readonly rate: number[];
  readonly latency: number[];
}

async function run(workload: Workload, runtime: Runtime, peers: readonly Peer[], slices: number): Promise<Runner[]> {
  const { subject, manner, floors } = workload;
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
    // Warm up, so that the engine compiles the code.
    for (const { server, ask } of runners) await load(server.port, ask, 32, 2);
    for (let slice = 0; slice < slices; slice++) {
      for (const { server, ask, cpu, rate } of runners) {
        const { cpu: used, value } = await measure(server.pid, () => load(server.port, ask, 32));
        cpu.push(used / value.requests * 1e6);
        rate.push(value.requests / value.micros * 1e6);
      }
      for (const { server, ask, latency } of runners) {
        const { value } = await measure(server.pid, () => load(server.port, ask, 1));
        latency.push(value.p50);
      }
    }
    return runners;
  } finally {
    for (const { server } of runners) await server.stop();
    await Deno.remove(answer);
  }
}

/** Measures one workload on the runtimes. Returns the rows of a table, by server. */
export async function measureHttp(
  name: string,
  runtimes: readonly Runtime[],
  peers: readonly Peer[],
  slices: number,
): Promise<ReadonlyMap<string, Row>> {
  const workload = workloads[name];
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    const runners = await run(workload, runtime, peers, slices);
    const floors = runners.filter(({ name }) => Object.values(FLOORS).includes(name));
    const [floor] = floors.toSorted((a, b) => toMedian(a.cpu) - toMedian(b.cpu));
    for (const { name, cpu, rate, latency } of runners) {
      const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
      row?.set(`${runtime}: ratio`, toMedian(cpu.map((each, i) => floor.cpu[i] / each)).toFixed(3));
      row?.set(`${runtime}: µs CPU`, toMedian(cpu).toFixed(1));
      row?.set(`${runtime}: req/s`, Math.round(toMedian(rate)).toString());
      row?.set(`${runtime}: µs latency`, Math.round(toMedian(latency)).toString());
    }
  }
  return rows;
}
