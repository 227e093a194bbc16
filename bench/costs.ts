// W9: the cost of inner calls, of lists that depend on the caller, and of many tenants, in comparison with plain requests.
import { toModernAsk } from "./asks.ts";
import { findCursors, takeTurns, toRatio, type Turn } from "./growth.ts";
import type { Ask } from "./load.ts";
import { type Runtime, type Server, startServer, toMedian, toWords } from "./machine.ts";
import { type Row, toTable } from "./table.ts";

const start = (runtime: Runtime, kind: string): Promise<Server> =>
  startServer(toWords(runtime, "programs/ours_costs.ts", [kind]));
const toCall = (name: string, args: object = {}): Ask => toModernAsk("tools/call", { name, arguments: args });
const add = toCall("add", { a: 1, b: 2 });

/** Seconds of warm-up per request. With 2 seconds, code that few calls use is still being compiled. */
const WARM_UP = 6;

/** The requests of one row. If there are several, the row shows the sum of their costs. */
interface Case {
  readonly server: Server;
  readonly asks: readonly Ask[];
}

/** Measures cases in turns. Each row shows the cost of a case, and its ratio to the cost of the first case. */
async function compare(
  rows: Map<string, Row>,
  runtime: Runtime,
  cases: Readonly<Record<string, Case>>,
  slices: number,
): Promise<void> {
  const turns = new Map<string, readonly Turn[]>();
  for (const [name, { server, asks }] of Object.entries(cases)) {
    turns.set(name, asks.map((ask): Turn => ({ server, ask, cpu: [] })));
  }
  await takeTurns([...turns.values()].flat(), slices, WARM_UP);
  const sums = [...turns.values()].map((each) =>
    Array.from({ length: slices }, (_, i) => each.reduce((sum, { cpu }) => sum + cpu[i], 0))
  );
  [...turns.keys()].forEach((name, i) => {
    const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
    row?.set(`${runtime}: µs CPU`, toMedian(sums[i]).toFixed(1)).set(`${runtime}: ×`, toRatio(sums[i], sums[0]));
  });
}

async function measureCalls(rows: Map<string, Row>, runtime: Runtime, slices: number): Promise<void> {
  const server = await start(runtime, "calls");
  const asks = {
    "tools/call": add,
    "tools/call of an asynchronous handler": toCall("wait"),
    "tools/call of a handler that calls a tool": toCall("call"),
    "tools/call of a handler that gets a prompt": toCall("prompt"),
    "tools/call through call_tool": toCall("call_tool", { name: "add", arguments: { a: 1, b: 2 } }),
  };
  try {
    const toCase = ([name, ask]: [string, Ask]) => [name, { server, asks: [ask] }] as const;
    await compare(rows, runtime, Object.fromEntries(Object.entries(asks).map(toCase)), slices);
  } finally {
    await server.stop();
  }
}

async function measureLists(rows: Map<string, Row>, runtime: Runtime, slices: number): Promise<void> {
  const servers: Server[] = [];
  try {
    const cases: Record<string, Case> = {};
    for (const [name, kind] of [["1,000 tools", "open"], ["1,000 tools with allow", "decided"]]) {
      const server = await start(runtime, kind);
      servers.push(server);
      const cursors = await findCursors(server.port, "tools/list");
      cases[name] = {
        server,
        asks: [{}, ...cursors.map((cursor) => ({ cursor }))].map((each) => toModernAsk("tools/list", each)),
      };
    }
    await compare(rows, runtime, cases, slices);
  } finally {
    for (const server of servers) await server.stop();
  }
}

async function measureTenants(rows: Map<string, Row>, runtime: Runtime, slices: number): Promise<void> {
  const servers: Server[] = [];
  const host = { ...add, headers: { ...add.headers, host: "t{tenant}.example.com" } };
  const path = { ...add, path: "/tenants/{tenant}/mcp" };
  const cases = [
    ["1 host", "hosts", { ...host, tenants: 1 }],
    ["1,000 hosts", "hosts", { ...host, tenants: 1000 }],
    ["1 path", "paths", { ...path, tenants: 1 }],
    ["1,000 paths", "paths", { ...path, tenants: 1000 }],
  ] as const;
  try {
    const all: Record<string, Case> = {};
    for (const [name, kind, ask] of cases) {
      const server = await start(runtime, kind);
      servers.push(server);
      all[name] = { server, asks: [ask] };
    }
    await compare(rows, runtime, all, slices);
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** Measures workload W9. Returns Markdown tables. */
export async function measureCosts(runtimes: readonly Runtime[], slices: number): Promise<string> {
  const tables = [
    ["W9 tools/call, by the calls that it makes", measureCalls],
    ["W9 all pages of tools/list", measureLists],
    ["W9 tools/call, by the number of tenants", measureTenants],
  ] as const;
  const texts: string[] = [];
  for (const [title, measure] of tables) {
    const rows = new Map<string, Row>();
    for (const runtime of runtimes) await measure(rows, runtime, slices);
    texts.push(toTable(title, rows));
  }
  return texts.join("\n");
}
