// The record of a run of `deno task bench:peers --record`, from which `deno task docs:plots` writes plots and pages.

export const RUNTIMES = ["deno", "bun", "node"] as const;

/** The CPU time per request of a server in a workload, in microseconds. */
export interface Figure {
  /** The median of all rounds. */
  readonly micros: number;
  /** The range over all rounds. Missing in a record of an earlier version of the harness. */
  readonly least?: number;
  readonly most?: number;
}

/** The CPU times of the servers in a workload. */
export interface Workload {
  readonly title: string;
  /** By server, the figure on each runtime. */
  readonly servers: Readonly<Record<string, Readonly<Partial<Record<typeof RUNTIMES[number], Figure>>>>>;
}

/** The way in which the figures of a record were measured. */
export interface Conditions {
  readonly rounds: number;
  /** CPU time in seconds that each server had used before its first round, at least. */
  readonly warmUpSeconds: number;
  /** The servers whose CPU time per request was still falling when the rounds began. */
  readonly falling: readonly string[];
  /** Number of slices in which other processes used more than 10 % of a core, and of all slices. */
  readonly shared: number;
  readonly slices: number;
}

/** The figures of all workloads over HTTP. */
export interface Figures {
  /** The machine and the versions of the runtimes. */
  readonly machine: string;
  /** Missing in a record of an earlier version of the harness, whose servers were not warm. */
  readonly conditions?: Conditions;
  readonly workloads: Readonly<Record<string, Workload>>;
}

const file = new URL("peers.json", import.meta.url);

/** Returns the median and the range of the CPU times of all rounds, in tenths of a microsecond. */
export function toFigure(rounds: readonly number[]): Figure {
  const sorted = rounds.toSorted((a, b) => a - b);
  const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  const toTenths = (micros: number) => Math.round(micros * 10) / 10;
  return { micros: toTenths(middle), least: toTenths(sorted[0]), most: toTenths(sorted[sorted.length - 1]) };
}

export async function readRecord(): Promise<Figures> {
  return JSON.parse(await Deno.readTextFile(file));
}

/** Replaces the record. */
export async function writeRecord(record: Figures): Promise<void> {
  await Deno.writeTextFile(file, JSON.stringify(record, null, 2) + "\n");
}
