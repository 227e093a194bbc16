// Measures the cost of code, without the cost of other work on the machine.
import process from "node:process";

/**
 * Starts a measurement, and returns a function that returns its cost in milliseconds: the elapsed time or the CPU time
 * of this thread, whichever is less. Other programs and concurrent tests do not increase the CPU time of this thread.
 */
export function startCost(): () => number {
  const since = performance.now();
  const used = readCpu();
  return () => Math.min(performance.now() - since, readCpu() - used);
}

/**
 * Measures runs in turns, until the condition `isFine` holds for their minimum costs in milliseconds. Measures at least
 * five and at most `rounds` rounds. Returns the minimum costs, or `undefined` if the condition holds.
 *
 * Other work on the machine disturbs some rounds, but not the minimum of many rounds.
 */
export async function compareCosts<Name extends string>(
  runs: Readonly<Record<Name, () => unknown>>,
  isFine: (costs: Readonly<Record<Name, number>>) => boolean,
  { rounds = 100 }: { readonly rounds?: number } = {},
): Promise<Readonly<Record<Name, number>> | undefined> {
  // The cast is safe, because the keys of an object literal are its names.
  const names = Object.keys(runs) as Name[];
  const least = Object.fromEntries(names.map((name) => [name, Infinity])) as Record<Name, number>;
  for (let round = 1; round <= rounds; round++) {
    for (const name of names) {
      const cost = startCost();
      await runs[name]();
      least[name] = Math.min(least[name], cost());
    }
    if (round >= 5 && isFine(least)) return;
  }
  return least;
}

/** Returns the minimum cost of several runs in milliseconds. Other work disturbs some runs, but not the minimum. */
export function leastCost(run: () => unknown, runs = 7): number {
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const cost = startCost();
    run();
    best = Math.min(best, cost());
  }
  return best;
}

/** Reads a clock of the system into an array of seconds and nanoseconds. */
type ReadClock = (clock: number, time: BigInt64Array) => void;

const CLOCK_THREAD_CPUTIME_ID = 3;
const time = new BigInt64Array(2);
const readClock = process.platform === "linux" ? await openClock() : undefined;

// Call the C library, because `process.threadCpuUsage` has a resolution of up to 10 ms.
async function openClock(): Promise<ReadClock | undefined> {
  try {
    if (process.versions.deno) {
      const parameters = ["i32", "buffer"] as const;
      return Deno.dlopen("libc.so.6", { clock_gettime: { parameters, result: "i32" } }).symbols.clock_gettime;
    }
    if (!process.versions.bun) return;
    // Deno type-checks this file, but has no types for Bun.
    const name = "bun:ffi";
    const { dlopen } = await import(name);
    return dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } }).symbols.clock_gettime;
  } catch {
    // The system has another C library.
  }
}

/** Returns the CPU time of this thread in milliseconds, or of the whole process where threads have no clock. */
function readCpu(): number {
  if (readClock) {
    readClock(CLOCK_THREAD_CPUTIME_ID, time);
    return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
  }
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
