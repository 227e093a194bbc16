/**
 * A clock that tests advance.
 */
import type { Clock } from "../core/timers.ts";

/** A clock whose time changes only when a test advances it. */
export interface FakeClock extends Clock {
  /** The number of jobs that have not run yet. */
  readonly waiting: number;
  /**
   * Advances the clock by `ms` milliseconds, and runs the jobs that become due, in the order of their due times. While
   * a job runs, the clock shows the job's due time. After each job, waits for one turn of the event loop, so that
   * promises settle. New jobs that become due within `ms` also run.
   */
  advance(ms: number): Promise<void>;
}

/**
 * Creates a clock to pass to `createServer({ clock })`.
 *
 * ```ts
 * import { fakeClock } from "@x/mcp/testing";
 *
 * const clock = fakeClock();
 * let rang = false;
 * clock.start(() => rang = true, 60_000);
 * await clock.advance(59_999);
 * if (rang) throw new Error("too early");
 * await clock.advance(1);
 * if (!rang) throw new Error("too late");
 * ```
 *
 * @param date The initial value of `date()`, in milliseconds since 1970. Defaults to 2026-01-01 UTC.
 */
export function fakeClock(date: number = Date.UTC(2026, 0)): FakeClock {
  const jobs = new Set<{ readonly due: number; readonly job: () => void }>();
  let now = 0;

  function findDue(end: number): { readonly due: number; readonly job: () => void } | undefined {
    // Jobs that are due at the same time run in the order in which they were started. The set preserves this order.
    const due = [...jobs].filter((each) => each.due <= end);
    return due.reduce<typeof due[number] | undefined>(
      (first, each) => first && first.due <= each.due ? first : each,
      undefined,
    );
  }

  return {
    now: () => now,
    date: () => date + now,
    start(job, ms) {
      const entry = { due: now + ms, job };
      jobs.add(entry);
      return () => void jobs.delete(entry);
    },
    get waiting() {
      return jobs.size;
    },
    async advance(ms) {
      const end = now + ms;
      await waitForTurn();
      for (let next = findDue(end); next; next = findDue(end)) {
        jobs.delete(next);
        now = Math.max(now, next.due);
        next.job();
        await waitForTurn();
      }
      now = end;
    },
  };
}

function waitForTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
