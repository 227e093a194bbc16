// Measures the cost of requests: CPU time of the server as a + b × bytes, and the longest block of the event loop.
import type { Runtime } from "../processes.ts";
import { type CostCase, costCases, initialize, type Known, legacy, plain, type Sent } from "./cases.ts";
import { type Abused, startAbused } from "./server.ts";

/**
 * The limits on a request's cost: the number of plain calls, the microseconds for each byte, and the milliseconds of a
 * blocked event loop.
 */
export const MOST = { a: 4, b: 0.25, block: 250 } as const;

/** The cost of a case. */
export interface Cost {
  readonly name: string;
  /** The fixed cost, in plain calls. */
  readonly a: number;
  /** The cost for each byte, in microseconds of CPU time. */
  readonly b: number;
  /** The longest block of the event loop, in milliseconds. */
  readonly block: number;
  /** The statuses of the smallest and the largest request. */
  readonly statuses: string;
}

const utf8 = new TextEncoder();
/** Below this size, the size of a request has little effect on its cost. */
const LEAST_BYTES = 4096;

/** Sends one request and reads its response. Returns the status. */
export async function send(
  url: string,
  { method = "POST", headers, body }: Sent,
  signal?: AbortSignal,
): Promise<number> {
  const response = await fetch(url, { method, headers, body: method === "POST" ? body : undefined, signal });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a session in a revision. */
export async function openSession(url: string, version = "2025-11-25", capabilities = "{}"): Promise<string> {
  const { headers, body } = initialize(capabilities, version);
  const response = await fetch(url, { method: "POST", headers, body });
  await response.body?.cancel();
  const id = response.headers.get("mcp-session-id") ?? "";
  await send(url, legacy("ping", {}, "", id));
  return id;
}

/** Opens the sessions that cases need. */
export async function openKnown(url: string): Promise<Known> {
  return { session: await openSession(url), batching: await openSession(url, "2025-03-26") };
}

/** The CPU time of one request in microseconds, the longest block in milliseconds, and the status. */
export async function measure(
  server: Abused,
  sent: Sent,
  enough = 100_000,
): Promise<{ readonly cpu: number; readonly block: number; readonly status: number }> {
  let status = await send(server.url, sent);
  const start = (await server.spent()).cpu;
  let spent = 0;
  // The minimum of the longest blocks, because other processes use the cores too.
  let block = Infinity;
  let count = 0;
  let batch = 1;
  do {
    for (let i = 0; i < batch; i++) status = await send(server.url, sent);
    count += batch;
    const report = await server.spent();
    spent = report.cpu - start;
    block = Math.min(block, report.block);
    batch = Math.min(200, batch * 2);
  } while (count < 3 || spent < enough && count < 2000);
  return { cpu: spent / count, block, status };
}

/** The cost of a plain call in microseconds. */
export async function measurePlain(server: Abused): Promise<number> {
  await measure(server, plain(), 300_000);
  const costs: number[] = [];
  for (let i = 0; i < 3; i++) costs.push((await measure(server, plain(), 200_000)).cpu);
  return costs.toSorted((a, b) => a - b)[1];
}

/** The cost of one case relative to a plain call of `unit` microseconds. */
export async function measureCost(server: Abused, each: CostCase, { known, unit }: Baseline): Promise<Cost> {
  const small = await measure(server, each.make(0, known));
  let { block } = small;
  let b = 0;
  let { status } = small;
  for (const size of [each.most / 64, each.most]) {
    const sent = each.make(size, known);
    const bytes = utf8.encode(sent.body).length + Object.entries(sent.headers).join().length;
    const one = await measure(server, sent);
    if (bytes >= LEAST_BYTES) b = Math.max(b, (one.cpu - small.cpu) / bytes);
    block = Math.max(block, one.block);
    ({ status } = one);
  }
  return { name: each.name, a: small.cpu / unit, b, block, statuses: `${small.status}, ${status}` };
}

/** The reference for the costs of a server. */
export interface Baseline {
  readonly known: Known;
  /** The microseconds of a plain call. */
  readonly unit: number;
}

/** Measures a server that has just started. */
export async function openBaseline(server: Abused): Promise<Baseline> {
  const known = await openKnown(server.url);
  return { known, unit: await measurePlain(server) };
}

/** Measures all cases whose name matches. */
export async function measureCosts(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<number> {
  await using server = await startAbused(runtime);
  const base = await openBaseline(server);
  for (const each of costCases.filter(({ name }) => only.test(name))) {
    try {
      report(await measureCost(server, each, base));
    } catch (error) {
      report({ name: each.name, a: NaN, b: NaN, block: NaN, statuses: `${error}`.slice(0, 80) });
      if (server.isDead) throw new Error(`The server died of ${each.name}: ${server.errors}`);
    }
  }
  return base.unit;
}
