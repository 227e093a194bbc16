// W7: the resident memory of a server with idle streams, and after many requests.
import { readRss, type Runtime, type Server, startServer, toMedian, toWords } from "./machine.ts";
import { type Row, toTable } from "./table.ts";
import { startVisitor, type Visitor } from "./visitor.ts";

const STREAMS = 5000;
const ROUNDS = 3;
const OURS = ["@x/mcp", "programs/ours_grown.ts"] as const;
const kinds = [["an idle subscription", "listen"], ["an idle GET stream with its session", "get"]] as const;

interface Pair {
  readonly server: Server;
  readonly visitor: Visitor;
}

/** Starts a server and its clients, calls `use`, and stops the server and the clients. */
async function withServer<T>(runtime: Runtime, file: string, use: (pair: Pair) => Promise<T>): Promise<T> {
  const server = await startServer(toWords(runtime, file, []));
  const visitor = startVisitor(server.port);
  try {
    return await use({ server, visitor });
  } finally {
    await visitor.stop();
    await server.stop();
  }
}

/** Returns the resident memory per stream in KiB, after every stream has received a keep-alive comment. */
function weighStreams(runtime: Runtime, file: string, kind: "listen" | "get"): Promise<number> {
  return withServer(runtime, file, async ({ server, visitor }) => {
    await visitor.send("call", 1000);
    await visitor.open(kind, 100);
    await rest(1000);
    const before = readRss(server.pid);
    await visitor.open(kind, STREAMS);
    await rest(10_000);
    return (readRss(server.pid) - before) / STREAMS / 1024;
  });
}

/** Measures the memory of idle streams. Returns a Markdown table. */
async function measureStreams(runtimes: readonly Runtime[]): Promise<string> {
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    for (const [title, kind] of kinds) {
      const own: number[] = [];
      const floor: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const [each, least] = await Promise.all(
          [OURS[1], "programs/floor_streams.ts"].map((file) => weighStreams(runtime, file, kind)),
        );
        own.push(each);
        floor.push(least);
      }
      for (
        const [name, sizes] of [[`${OURS[0]}: ${title}`, own], [`floor for ${title}: a bare stream`, floor]] as const
      ) {
        const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
        row?.set(`${runtime}: KiB`, toMedian(sizes).toFixed(1));
        row?.set(`${runtime}: × floor`, toMedian(sizes.map((size, i) => size / floor[i])).toFixed(2));
      }
    }
  }
  return toTable(`W7 resident memory per idle stream, with ${STREAMS} streams`, rows);
}

const STEP = 10_000;
const STEPS = 10;
const jobs = [
  ["initialize", "programs/ours.ts", "initialize"],
  ["initialize and initialized", "programs/ours.ts", "handshake"],
  ["tools/call", "programs/ours.ts", "call"],
  ["floor: tools/call", "programs/floor_streams.ts", "call"],
] as const;

/** Returns the resident memory in bytes after each batch of requests. */
function sendMany(runtime: Runtime, file: string, what: "initialize" | "handshake" | "call"): Promise<number[]> {
  return withServer(runtime, file, async ({ server, visitor }) => {
    const sizes = [];
    for (let step = 0; step < STEPS; step++) {
      await visitor.send(what, STEP);
      sizes.push(readRss(server.pid));
    }
    return sizes;
  });
}

/** Returns the memory growth per request in bytes: the slope of a linear fit to the second half of the sizes. */
function toSlope(sizes: readonly number[]): number {
  const half = sizes.slice(sizes.length >> 1);
  const middle = (half.length - 1) / 2;
  const mean = half.reduce((sum, size) => sum + size, 0) / half.length;
  const [rise, run] = half.reduce(
    ([rise, run], size, i) => [rise + (i - middle) * (size - mean), run + (i - middle) ** 2],
    [0, 0],
  );
  return rise / run / STEP;
}

/** Measures the memory of a server that receives many requests. Returns a Markdown table. */
async function measureGrowth(runtimes: readonly Runtime[]): Promise<string> {
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    const columns = await Promise.all(jobs.map(([, file, what]) => sendMany(runtime, file, what)));
    jobs.forEach(([title], i) => {
      const cells = columns[i].map((size, step) =>
        [`${((step + 1) * STEP).toLocaleString("en")}`, (size / 2 ** 20).toFixed(1)] as const
      );
      for (
        const [name, text] of [
          ...cells,
          ["bytes per request, in the second half", toSlope(columns[i]).toFixed(1)] as const,
        ]
      ) {
        const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
        row?.set(`${runtime}: ${title}`, text);
      }
    });
  }
  return toTable("W7 resident memory in MiB, by the number of HTTP requests", rows);
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Measures workload W7. Returns Markdown tables. */
export async function measureMemory(runtimes: readonly Runtime[]): Promise<string> {
  return await measureStreams(runtimes) + "\n" + await measureGrowth(runtimes);
}
