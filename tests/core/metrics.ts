// An observer that counts events, as a user would write it. It imports only the published entry.
import type { Observer } from "@x/mcp";

/** The totals that an observer has counted. */
export interface Totals {
  /** Number of calls by method and outcome, with keys such as `tools/call result`. */
  readonly calls: Readonly<Record<string, number>>;
  /** Total duration of calls in milliseconds, by method. */
  readonly durations: Readonly<Record<string, number>>;
  /** Number of refusals by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Number of times that each limit was reached. */
  readonly limits: Readonly<Record<string, number>>;
  /** Number of running calls. */
  readonly running: number;
  /** Number of open sessions. */
  readonly sessions: number;
  /** Number of open streams and connections. */
  readonly streams: number;
  /** Number of open subscriptions. */
  readonly subscriptions: number;
  readonly faults: number;
}

export interface Metrics extends Observer {
  readonly totals: () => Totals;
}

/** Creates an observer that counts events. */
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
  // Make the property non-enumerable, because an observer can only have event methods.
  return Object.defineProperty({ ...observer, totals }, "totals", { enumerable: false });
}

function add(counts: Record<string, number>, key: string, by = 1): void {
  counts[key] = (counts[key] ?? 0) + by;
}
