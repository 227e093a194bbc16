// W8: the cost of a call, a list page and a notification, by the number of tools, list items and subscribers.
import { toModernAsk } from "./asks.ts";
import { type Ask, load } from "./load.ts";
import { measure, readRunTime, type Runtime, type Server, startServer, toMedian, toWords } from "./machine.ts";
import { type Row, toTable } from "./table.ts";
import { startVisitor } from "./visitor.ts";

const OURS = "programs/ours_grown.ts";

/** A request to one of several servers. The servers take turns. */
export interface Turn {
  readonly server: Server;
  readonly ask: Ask;
  /** CPU time per request in microseconds, by slice. */
  readonly cpu: number[];
}

/** Measures the requests in turns. First sends each request for `warmUp` seconds, so that the engine compiles the code. */
export async function takeTurns(turns: readonly Turn[], slices: number, warmUp = 2): Promise<void> {
  for (const { server, ask } of turns) await load(server.port, ask, 32, warmUp);
  for (let slice = 0; slice < slices; slice++) {
    for (const { server, ask, cpu } of turns) {
      const { cpu: used, value } = await measure(server.pid, () => load(server.port, ask, 32));
      cpu.push(used / value.requests * 1e6);
    }
  }
}

/**
 * Returns the median of the ratios of all slices. The two measurements of a slice are close in time, so their
 * conditions are the same.
 */
export function toRatio(cpu: readonly number[], base: readonly number[]): string {
  return toMedian(cpu.map((each, i) => each / base[i])).toFixed(2);
}

const add = toModernAsk("tools/call", { name: "add", arguments: { a: 1, b: 2 } });

/** Measures calls with a growing number of tools. Returns a Markdown table. */
async function measureTools(runtimes: readonly Runtime[], slices: number): Promise<string> {
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    const counts = [1, 100, 1000, 10_000];
    const turns: Turn[] = [];
    try {
      for (const count of counts) {
        turns.push({ server: await startServer(toWords(runtime, OURS, [`${count}`])), ask: add, cpu: [] });
      }
      await takeTurns(turns, slices);
    } finally {
      for (const { server } of turns) await server.stop();
    }
    turns.forEach(({ cpu }, i) => {
      const name = `${counts[i].toLocaleString("en")} tool${i ? "s" : ""}`;
      const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
      row?.set(`${runtime}: µs CPU`, toMedian(cpu).toFixed(1)).set(`${runtime}: × 1 tool`, toRatio(cpu, turns[0].cpu));
    });
  }
  return toTable("W8 tools/call, by the number of tools", rows);
}

/** Returns the cursors of all pages of a list after the first one. */
export async function findCursors(port: number, method: string): Promise<readonly string[]> {
  const cursors: string[] = [];
  while (true) {
    const { headers, body } = toModernAsk(method, cursors.length ? { cursor: cursors.at(-1) } : {});
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", headers, body });
    const { result } = await response.json();
    if (!result.nextCursor) return cursors;
    cursors.push(result.nextCursor);
  }
}

/** Measures the first and the last page of long and short lists. Returns a Markdown table. */
async function measurePages(runtimes: readonly Runtime[], slices: number): Promise<string> {
  const rows = new Map<string, Row>();
  const counts = [100, 10_000];
  for (const runtime of runtimes) {
    const servers: Server[] = [];
    const turns = new Map<string, Turn[]>();
    try {
      for (const count of counts) {
        const server = await startServer(toWords(runtime, OURS, [`${count}`]));
        servers.push(server);
        for (const method of ["tools/list", "resources/list"]) {
          const pages = { first: {}, last: { cursor: (await findCursors(server.port, method)).at(-1) ?? "" } };
          for (const [page, params] of Object.entries(pages)) {
            const name = `${method}, ${page} page`;
            const row = turns.get(name) ?? [];
            turns.set(name, row);
            row.push({ server, ask: toModernAsk(method, params), cpu: [] });
          }
        }
      }
      await takeTurns([...turns.values()].flat(), slices);
    } finally {
      for (const server of servers) await server.stop();
    }
    for (const [name, [few, many]] of turns) {
      const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
      row?.set(`${runtime}: µs CPU, 100 entries`, toMedian(few.cpu).toFixed(1));
      row?.set(`${runtime}: µs CPU, 10,000 entries`, toMedian(many.cpu).toFixed(1));
      row?.set(`${runtime}: ratio`, toRatio(many.cpu, few.cpu));
    }
  }
  return toTable("W8 one page of a list with 100 or 10,000 entries", rows);
}

const LISTENERS = [10, 100, 1000, 10_000];
/**
 * Number of notifications per measurement, for each number of listeners. A single notification to few listeners takes
 * too little time to measure.
 */
const NEWS = [100, 50, 20, 5];
const crowds = [
  ["@x/mcp: subscriptions", OURS, "listen"],
  ["@x/mcp: GET streams of sessions", OURS, "get"],
  ["floor: writes one event to all streams", "programs/floor_streams.ts", "listen"],
] as const;

/** Measures notifications to a growing number of listeners. Returns a Markdown table. */
async function measureNews(runtimes: readonly Runtime[], slices: number): Promise<string> {
  const rows = new Map<string, Row>();
  for (const runtime of runtimes) {
    const running: { server: Server; visitor: ReturnType<typeof startVisitor> }[] = [];
    try {
      for (const [, file] of crowds) {
        const server = await startServer(toWords(runtime, file, []));
        running.push({ server, visitor: startVisitor(server.port) });
      }
      for (const [stage, listeners] of LISTENERS.entries()) {
        const more = listeners - (LISTENERS[stage - 1] ?? 0);
        const cpu = crowds.map(() => [] as number[]);
        for (const [i, { visitor }] of running.entries()) {
          await visitor.open(crowds[i][2], more);
          await visitor.touch(NEWS[stage]); // Warm up, so that the engine compiles the code.
        }
        for (let slice = 0; slice < slices; slice++) {
          for (const [i, { server, visitor }] of running.entries()) {
            const before = readRunTime(server.pid);
            await measure(server.pid, () => visitor.touch(NEWS[stage]));
            cpu[i].push((readRunTime(server.pid) - before) / NEWS[stage] / listeners * 1e6);
          }
        }
        crowds.forEach(([name], i) => {
          const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
          const ratio = i < 2 ? ` (${toRatio(cpu[i], cpu[2])})` : "";
          row?.set(`${runtime}: ${listeners.toLocaleString("en")}`, toMedian(cpu[i]).toFixed(1) + ratio);
        });
      }
    } finally {
      for (const { server, visitor } of running) {
        await visitor.stop();
        await server.stop();
      }
    }
  }
  return toTable(
    "W8 notification of a resource update: µs CPU per listener (× floor), by the number of listeners",
    rows,
  );
}

/** Measures workload W8. Returns Markdown tables. */
export async function measureAllGrowth(runtimes: readonly Runtime[], slices: number): Promise<string> {
  const tools = await measureTools(runtimes, slices);
  const news = await measureNews(runtimes, slices);
  return [tools, news, await measurePages(runtimes, slices)].join("\n");
}
