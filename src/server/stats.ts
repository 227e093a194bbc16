/**
 * Numbers of what a server holds at one moment.
 *
 * @module
 */
import type { PotName } from "../core/capacity/account.ts";
import type { Engine } from "../core/era.ts";

/** What a server holds at one moment. Those of `mount` are the sums over its servers. */
export interface ServerStats {
  /** Whether `close()` was called, so that the server refuses new calls. */
  readonly isClosing: boolean;
  /** Number of calls that run, with the work of `ctx.defer`. A call without an `await` is never seen running. */
  readonly running: number;
  /** Number of calls that wait for a slot. */
  readonly waiting: number;
  /** Number of handlers that go on after their response, as those of tasks do. */
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

/** Reads the numbers of a server. */
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

/** Adds the numbers of two servers. */
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
