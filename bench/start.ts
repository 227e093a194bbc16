// W6: the time from the start of a process to its first response on standard output.
import { toInitialize } from "./asks.ts";
import { readRunTime, type Runtime, toMedian, toWords } from "./machine.ts";
import type { Peer } from "./peers.ts";
import { startPiped } from "./stdio.ts";
import { type Row, toTable } from "./table.ts";

const question = new TextEncoder().encode(toInitialize() + "\n");

/** The cost of one start up to the first response. */
export interface StartTime {
  readonly ms: number;
  /** CPU time in milliseconds. Other processes affect the CPU time less than the elapsed time. */
  readonly cpu: number;
}

async function time(words: readonly string[]): Promise<StartTime> {
  const start = performance.now();
  const server = startPiped(words);
  await server.send(question);
  const line = await server.receive(1);
  const ms = performance.now() - start;
  const cpu = readRunTime(server.pid) * 1000;
  await server.stop();
  if (!line.includes("protocolVersion")) throw new Error(`Cannot measure the server: its response is ${line}`);
  return { ms, cpu };
}

/**
 * Starts the programs alternately. Returns the times of each program, in the order of `programs`. The first two rounds
 * are ignored, because the starts in these rounds fill the caches.
 */
export async function timeStarts(programs: readonly (readonly string[])[], count: number): Promise<StartTime[][]> {
  const times: StartTime[][] = programs.map(() => []);
  for (let round = -2; round < count; round++) {
    // Alternate the order, so that no program is always started first.
    const order = [...programs.keys()];
    for (const i of round % 2 ? order : order.reverse()) {
      const each = await time(programs[i]);
      if (round >= 0) times[i].push(each);
    }
  }
  return times;
}

/** Writes the response of the minimal server to a temporary file. Returns the path of the file. */
export async function writeAnswer(): Promise<string> {
  const answer = await Deno.makeTempFile({ suffix: ".json" });
  const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "bench", version: "1.0.0" } };
  await Deno.writeTextFile(answer, JSON.stringify([JSON.stringify({ jsonrpc: "2.0", id: 1, result })]));
  return answer;
}

/** Measures workload W6. Returns a Markdown table. */
export async function measureStart(
  runtimes: readonly Runtime[],
  peers: readonly Peer[],
  count: number,
): Promise<string> {
  const answer = await writeAnswer();
  const subjects: readonly (readonly [name: string, file: string, args: readonly string[], floor: string])[] = [
    ["floor", "programs/floor_stdio.ts", [answer], "floor"],
    ["@x/mcp", "programs/start.ts", [], "floor"],
    ["floor that loads zod", "programs/floor_stdio.ts", [answer, "zod"], "floor that loads zod"],
    ["@x/mcp with zod", "programs/ours.ts", ["stdio"], "floor that loads zod"],
    ...peers.filter(({ stdio }) => stdio).map((peer) =>
      [peer.name, peer.file, ["stdio"], "floor that loads zod"] as const
    ),
  ];
  const rows = new Map<string, Row>(subjects.map(([name]) => [name, new Map()]));
  for (const runtime of runtimes) {
    const series = await timeStarts(subjects.map(([, file, args]) => toWords(runtime, file, args)), count);
    const times = new Map(subjects.map(([name], i) => [name, series[i].map(({ ms }) => ms)]));
    for (const [name, , , floor] of subjects) {
      const [own, least] = [name, floor].map((each) => toMedian(times.get(each) ?? []));
      rows.get(name)?.set(`${runtime}: ms`, own.toFixed(1)).set(`${runtime}: × floor`, (own / least).toFixed(2));
    }
  }
  await Deno.remove(answer);
  return toTable("W6 time from the start of a process to its first response over stdio", rows);
}
