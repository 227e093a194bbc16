// An observer that counts, as a user would write it: it imports only the published entry point.
import type { Observer } from "@x/mcp";

/** The counts of an observer. */
export interface Totals {
  /** Number of calls by method and outcome, such as `tools/call result`. */
  readonly calls: Readonly<Record<string, number>>;
  /** Milliseconds of all calls by method. */
  readonly durations: Readonly<Record<string, number>>;
  /** Number of refusals by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** How often each limit was reached. */
  readonly limits: Readonly<Record<string, number>>;
  /** Number of calls that are running. */
  readonly running: number;
  /** Number of sessions that are open. */
  readonly sessions: number;
  /** Number of streams and connections that are open. */
  readonly streams: number;
  /** Number of subscriptions that are open. */
  readonly subscriptions: number;
  readonly faults: number;
}

/** An observer that counts. */
export interface Metrics extends Observer {
  readonly totals: () => Totals;
}

/** Creates an observer that counts. */
export function metrics(): Metrics {
  const calls: Record<string, number> = {};
  const durations: Record<string, number> = {};
  const refusals: Record<string, number> = {};
  const limits: Record<string, number> = {};
  const gauges = { running: 0, sessions: 0, streams: 0, subscriptions: 0, faults: 0 };
  const observer: Observer = {
    start: () => gauges.running++,
    call({ method, outcome, durationMs }) {
      gauges.running--;
      add(calls, `${method} ${outcome}`);
      add(durations, method, durationMs);
    },
    refused: ({ reason }) => add(refusals, reason),
    limit: ({ limit }) => add(limits, limit),
    session: ({ state }) => gauges.sessions += state === "ended" ? -1 : 1,
    stream: ({ state }) => gauges.streams += state === "ended" ? -1 : 1,
    subscription: ({ state }) => gauges.subscriptions += state === "ended" ? -1 : 1,
    fault: () => gauges.faults++,
  };
  const totals = () => ({ calls, durations, refusals, limits, ...gauges });
  // The property is not enumerable, because an observer has only methods for events.
  return Object.defineProperty({ ...observer, totals }, "totals", { enumerable: false });
}

function add(counts: Record<string, number>, key: string, by = 1): void {
  counts[key] = (counts[key] ?? 0) + by;
}
