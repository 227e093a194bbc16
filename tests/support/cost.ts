// Measures the cost of code, without the cost of other work on the machine.
import process from "node:process";

/**
 * Starts a measurement, and returns a function that returns its cost in milliseconds: the elapsed time or the CPU time,
 * whichever is less. Other programs increase only the elapsed time, and concurrent tests in this process increase only
 * the CPU time.
 */
export function startCost(): () => number {
  const since = performance.now();
  const used = toMs(process.cpuUsage());
  return () => Math.min(performance.now() - since, toMs(process.cpuUsage()) - used);
}

function toMs({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
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
