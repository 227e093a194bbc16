/**
 * Counts the calls, streams, sessions and bytes that a server holds.
 *
 * @module
 */
import type { PotName } from "../core/capacity/account.ts";
import type { Engine } from "../core/era.ts";

/** Counts of what a server holds at one moment. For `mount`, each count is the sum over its servers. */
export interface ServerStats {
  /** Whether `close()` was called, so that the server refuses new calls. */
  readonly isClosing: boolean;
  /**
   * Number of running calls, including the work of `ctx.defer`. A call whose handler is synchronous is never counted.
   */
  readonly running: number;
  /** Number of calls that wait for a slot. */
  readonly waiting: number;
  /** Number of handlers that continue after their response, such as the handlers of tasks. */
  readonly detached: number;
  /** Number of open event streams of sessions, subscriptions and WebSockets. */
  readonly streams: number;
  /** Number of HTTP sessions in memory. An idle session may be dropped from memory without ending. */
  readonly sessions: number;
  /** Number of concrete paths in memory. 0 if the path of the server has no parameters. */
  readonly paths: number;
  /** Bytes that are charged to clients: requests that run or wait, events, sessions and other state. Estimated. */
  readonly bytes: number;
}

/** Reads the counts of a server. */
export function readStats({ accounts, scheduler }: Pick<Engine, "accounts" | "scheduler">): ServerStats {
  const count = (name: PotName) => accounts.pots.get(name)?.used ?? 0;
  return {
    isClosing: !scheduler.isOpen,
    running: scheduler.running,
    waiting: scheduler.waiting,
    detached: count("calls.detached"),
    streams: count("connections.streams"),
    sessions: count("connections.sessions"),
    paths: count("endpoints.open"),
    bytes: count("memory.bytes") + scheduler.unchargedBytes,
  };
}

/** Adds the counts of two servers. */
export function addStats(one: ServerStats, other: ServerStats): ServerStats {
  return {
    isClosing: one.isClosing || other.isClosing,
    running: one.running + other.running,
    waiting: one.waiting + other.waiting,
    detached: one.detached + other.detached,
    streams: one.streams + other.streams,
    sessions: one.sessions + other.sessions,
    paths: one.paths + other.paths,
    bytes: one.bytes + other.bytes,
  };
}
