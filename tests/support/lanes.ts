// Work that runs on several items at the same time.

/** Number of steps, apps or clients that run at the same time, because machines of contributors have few cores. */
const LANES = 2;

/** Runs a function for each item, in order, for at most {@linkcode LANES} items at the same time. */
export async function runInLanes<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (const item of waiting) await run(item);
  }));
}
