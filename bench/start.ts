// W6: from the start of a process to its first answer over standard output.
import { toInitialize } from "./asks.ts";
import { type Runtime, toMedian, toWords } from "./machine.ts";
import type { Peer } from "./peers.ts";
import { startPiped } from "./stdio.ts";
import { type Row, toTable } from "./table.ts";

const question = new TextEncoder().encode(toInitialize() + "\n");

/** Milliseconds to the first answer, which must hold a text. */
async function time(words: readonly string[]): Promise<number> {
  const start = performance.now();
  const server = startPiped(words);
  await server.send(question);
  const line = await server.receive(1);
  const ms = performance.now() - start;
  await server.stop();
  if (!line.includes("protocolVersion")) throw new Error(`Cannot measure a server that answers ${line}`);
  return ms;
}

/** Measures starts; a Markdown table. */
export async function measureStart(
  runtimes: readonly Runtime[],
  peers: readonly Peer[],
  count: number,
): Promise<string> {
  const answer = await Deno.makeTempFile({ suffix: ".json" });
  const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "bench", version: "1.0.0" } };
  await Deno.writeTextFile(answer, JSON.stringify([JSON.stringify({ jsonrpc: "2.0", id: 1, result })]));
  const subjects: readonly (readonly [name: string, file: string, args: readonly string[], floor: string])[] = [
    ["floor: loop", "programs/floor_stdio.ts", [answer], "floor: loop"],
    ["@x/mcp", "programs/start.ts", [], "floor: loop"],
    ["floor: loop that loads zod", "programs/floor_stdio.ts", [answer, "zod"], "floor: loop that loads zod"],
    ["@x/mcp with zod", "programs/ours.ts", ["stdio"], "floor: loop that loads zod"],
    ...peers.filter(({ stdio }) => stdio).map((peer) =>
      [peer.name, peer.file, ["stdio"], "floor: loop that loads zod"] as const
    ),
  ];
  const rows = new Map<string, Row>(subjects.map(([name]) => [name, new Map()]));
  for (const runtime of runtimes) {
    const times = new Map(subjects.map(([name]) => [name, [] as number[]]));
    for (let i = -1; i < count; i++) {
      for (const [name, file, args] of subjects) {
        const ms = await time(toWords(runtime, file, args));
        if (i >= 0) times.get(name)?.push(ms); // the first start fills the caches
      }
    }
    for (const [name, , , floor] of subjects) {
      const [own, least] = [name, floor].map((each) => toMedian(times.get(each) ?? []));
      rows.get(name)?.set(`${runtime}: ms`, own.toFixed(1)).set(`${runtime}: × floor`, (own / least).toFixed(2));
    }
  }
  await Deno.remove(answer);
  return toTable("W6 start of the process to the first answer over stdio", rows);
}
