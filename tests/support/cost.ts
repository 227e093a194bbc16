// The cost of code, measured so that other work on the machine does not count.
import process from "node:process";

/**
 * Starts a measurement. The function it returns gives the milliseconds of work since then: of the clock or of the
 * processor, whichever is less. Other programs slow the clock, and tests that run in the same process use the processor.
 */
export function startCost(): () => number {
  const since = performance.now();
  const used = toMs(process.cpuUsage());
  return () => Math.min(performance.now() - since, toMs(process.cpuUsage()) - used);
}

function toMs({ user, system }: { readonly user: number; readonly system: number }): number {
  return (user + system) / 1000;
}

/** The least cost of several runs in milliseconds, because single runs are disturbed. */
export function leastCost(run: () => unknown, runs = 7): number {
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const cost = startCost();
    run();
    best = Math.min(best, cost());
  }
  return best;
}
