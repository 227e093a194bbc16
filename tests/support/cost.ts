// The cost of code, measured so that other work on the machine does not count.
import process from "node:process";

/**
 * Starts a measurement. The returned function returns the milliseconds of elapsed time or of CPU time since then,
 * whichever is less. Other programs increase the elapsed time, and tests in the same process increase the CPU time.
 */
export function startCost(): () => number {
  const since = performance.now();
  const used = toMs(process.cpuUsage());
  return () => Math.min(performance.now() - since, toMs(process.cpuUsage()) - used);
}

function toMs({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
}

/** The minimum cost of several runs in milliseconds. The minimum is used because other work disturbs single runs. */
export function leastCost(run: () => unknown, runs = 7): number {
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const cost = startCost();
    run();
    best = Math.min(best, cost());
  }
  return best;
}
