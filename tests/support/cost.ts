// The cost of code, measured so that other work on the machine does not count.
import process from "node:process";

/**
 * Starts a measurement. The returned function gives the milliseconds of work since then: of the clock or of the CPU,
 * whichever is less. Other programs delay the clock, and tests that run in the same process use the CPU.
 */
export function startCost(): () => number {
  const since = performance.now();
  const used = toMs(process.cpuUsage());
  return () => Math.min(performance.now() - since, toMs(process.cpuUsage()) - used);
}

function toMs({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
}

/** The minimum cost of several runs in milliseconds, because other work disturbs single runs. */
export function leastCost(run: () => unknown, runs = 7): number {
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const cost = startCost();
    run();
    best = Math.min(best, cost());
  }
  return best;
}
