// Runs timers of code that has no clock of its own on a fake clock, so that the speed of the machine does not matter.
import type { FakeClock } from "../../src/testing/testing.ts";

type Timer = ReturnType<typeof setTimeout>;

/** A delay that never elapses during a test, in milliseconds. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Runs `use`, during which timers of exactly `ms` milliseconds run on a fake clock. All other timers run on the real
 * clock.
 */
export async function withTimersOn(clock: FakeClock, ms: number, use: () => Promise<void>): Promise<void> {
  const { setTimeout: start, clearTimeout: clear } = globalThis;
  const { now } = performance;
  const stops = new Map<Timer, () => void>();
  const end = (timer: Timer) => {
    stops.get(timer)?.();
    stops.delete(timer);
    clear(timer);
  };
  Object.assign(globalThis, {
    setTimeout(job: () => void, givenMs?: number) {
      if (givenMs !== ms) return start(job, givenMs);
      // The caller can unref this timer, like a timer that fires.
      const timer = start(() => {}, NEVER_MS);
      const due = performance.now() + ms;
      // Show the due time while the job runs, because a job may read by how much it is late.
      const run = () => {
        end(timer);
        performance.now = () => due;
        try {
          job();
        } finally {
          performance.now = now;
        }
      };
      stops.set(timer, clock.start(run, ms));
      return timer;
    },
    clearTimeout: end,
  });
  try {
    await use();
  } finally {
    Object.assign(globalThis, { setTimeout: start, clearTimeout: clear });
    for (const timer of stops.keys()) end(timer);
  }
}
