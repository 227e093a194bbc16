/**
 * Counts a server's calls, streams, sessions and bytes.
 */
import type { PotName } from "./capacity/account.ts";
import type { Engine } from "./engine/era.ts";

/**
 * The numbers of a server's calls, streams, sessions and bytes at one moment. For `mount`, each number is the sum of
 * its servers' numbers.
 */
export interface ServerStats {
  /** Whether `close()` was called. The server then rejects new calls. */
  readonly isClosing: boolean;
  /**
   * Number of running calls, including work passed to `ctx.defer`. Calls with a synchronous handler are not counted.
   */
  readonly running: number;
  /** Number of calls that wait in a queue before they run. */
  readonly waiting: number;
  /** Number of handlers that continue after the response to their call, such as the handlers of tasks. */
  readonly detached: number;
  /** Number of open event streams, sockets and subscriptions. Event streams that respond to a call do not count. */
  readonly streams: number;
  /** Number of HTTP sessions in memory. The server can evict an idle session from memory without ending the session. */
  readonly sessions: number;
  /** Number of concrete paths in memory. 0 if the server's path has no parameters. */
  readonly paths: number;
  /**
   * Estimated memory that is charged to clients, in bytes: for requests that run or wait, events, sessions and other
   * state.
   */
  readonly bytes: number;
}

/** Returns a server's current numbers, except the number of concrete paths. */
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
