// Measures the cost of requests: the server's CPU time as a + b × bytes, and the longest time for which the event loop
// is blocked.
import type { Runtime } from "../processes.ts";
import { type CostCase, costCases, initialize, type Known, legacy, plain, type Sent } from "./cases.ts";
import { type Abused, startAbused } from "./server.ts";

/** The limits on a request's cost: `a` in plain calls, `b` in microseconds per byte, and `block` in milliseconds. */
export const MOST = { a: 4, b: 0.25, block: 250 } as const;

/** The measured cost of a case. */
export interface Cost {
  readonly name: string;
  /** The fixed cost, as a multiple of the cost of a plain call. */
  readonly a: number;
  /** The CPU time per byte, in microseconds. */
  readonly b: number;
  /** The longest time for which the event loop was blocked, in milliseconds. */
  readonly block: number;
  /** The response statuses for the smallest and the largest request. */
  readonly statuses: string;
}

const utf8 = new TextEncoder();
/** Smallest measured request in bytes. Below this size, the size has little effect on the cost. */
const LEAST_BYTES = 4096;

/** Sends one request, reads its response, and returns the status. */
export async function send(
  url: string,
  { method = "POST", headers, body }: Sent,
  signal?: AbortSignal,
): Promise<number> {
  const response = await fetch(url, { method, headers, body: method === "POST" ? body : undefined, signal });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a session of the given revision, and returns its id. */
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

/**
 * Measures one request: the CPU time in microseconds, the longest block of the event loop in milliseconds, and the
 * status.
 */
export async function measure(
  server: Abused,
  sent: Sent,
  enough = 100_000,
): Promise<{ readonly cpu: number; readonly block: number; readonly status: number }> {
  let status = await send(server.url, sent);
  const start = (await server.spent()).cpu;
  let spent = 0;
  // Use the shortest of several longest blocks, because other processes also use the cores.
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

/** Returns the CPU time of a plain call in microseconds. */
export async function measurePlain(server: Abused): Promise<number> {
  await measure(server, plain(), 300_000);
  const costs: number[] = [];
  for (let i = 0; i < 3; i++) costs.push((await measure(server, plain(), 200_000)).cpu);
  return costs.toSorted((a, b) => a - b)[1];
}

/** Measures one case, relative to a plain call of `unit` microseconds. */
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

/** Values that every measurement of a server needs. */
export interface Baseline {
  readonly known: Known;
  /** The CPU time of a plain call in microseconds. */
  readonly unit: number;
}

/** Measures a plain call on a server that has just started, and opens the sessions for the cases. */
export async function openBaseline(server: Abused): Promise<Baseline> {
  const known = await openKnown(server.url);
  return { known, unit: await measurePlain(server) };
}

/** Measures all cases whose name matches `only`. */
export async function measureCosts(runtime: Runtime, only: RegExp, report: (cost: Cost) => void): Promise<number> {
  await using server = await startAbused(runtime);
  const base = await openBaseline(server);
  for (const each of costCases.filter(({ name }) => only.test(name))) {
    try {
      report(await measureCost(server, each, base));
    } catch (error) {
      report({ name: each.name, a: NaN, b: NaN, block: NaN, statuses: `${error}`.slice(0, 80) });
      if (server.isDead) throw new Error(`The server died during ${each.name}: ${server.errors}`);
    }
  }
  return base.unit;
}
