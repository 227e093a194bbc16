// The record of a run of `deno task bench:peers --record`, from which `deno task docs:plots` draws.
import type { Row } from "./table.ts";

export const RUNTIMES = ["node", "deno", "bun"] as const;

/** The CPU times of the servers in a workload. */
export interface Workload {
  readonly title: string;
  /** By server, the CPU time per request on each runtime, in microseconds. */
  readonly servers: Readonly<Record<string, Readonly<Partial<Record<typeof RUNTIMES[number], number>>>>>;
}

/** The figures of all workloads over HTTP. */
export interface Figures {
  /** The machine and the versions of the runtimes. */
  readonly machine: string;
  readonly workloads: Readonly<Record<string, Workload>>;
}

const file = new URL("peers.json", import.meta.url);

/** Returns the figures in the rows of a table. */
export function toWorkload(title: string, rows: ReadonlyMap<string, Row>): Workload {
  const servers = [...rows].map(([name, row]) => {
    const figures = RUNTIMES.map((runtime) => [runtime, Number(row.get(`${runtime}: µs CPU`))] as const);
    return [name, Object.fromEntries(figures.filter(([, micros]) => micros > 0))] as const;
  });
  return { title, servers: Object.fromEntries(servers) };
}

export async function readRecord(): Promise<Figures> {
  return JSON.parse(await Deno.readTextFile(file));
}

/** Replaces the record. */
export async function writeRecord(record: Figures): Promise<void> {
  await Deno.writeTextFile(file, JSON.stringify(record, null, 2) + "\n");
}
