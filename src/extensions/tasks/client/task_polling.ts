/**
 * Computes the delays between polls of a task and between retries, and decides which failures to retry.
 */
import { BUSY, INTERNAL_ERROR, isMcpError, isRemoteError, RATE_LIMITED } from "../../../core/protocol/errors.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import type { TaskState } from "./task_state.ts";

/** Minimum milliseconds between polls, because a server may suggest an interval of zero and would be flooded. */
export const MIN_POLL_MS = 100;
const MAX_POLL_MS = 60_000;
const DEFAULT_POLL_MS = 1000;
/** Maximum share of the interval that is added at random, so that polls of many tasks do not coincide. */
const JITTER = 0.1;
/**
 * Factor by which the interval is multiplied while the client receives notifications of changes. With notifications,
 * polls only find changes whose notification was lost.
 */
const LISTENING_FACTOR = 10;
const MAX_LISTENING_MS = 30_000;
const RETRY_MS = 250;
const MAX_RETRY_MS = 10_000;

export function toPollMs({ pollIntervalMs = DEFAULT_POLL_MS }: Pick<TaskState, "pollIntervalMs">, listens = false) {
  const wanted = Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, pollIntervalMs));
  const ms = listens ? Math.max(wanted, Math.min(MAX_LISTENING_MS, wanted * LISTENING_FACTOR)) : wanted;
  return ms * (1 + Math.random() * JITTER);
}

/** Uses the delay that the server requests, or else exponential backoff. */
export function toRetryMs(retry: number, error: unknown): number {
  const data: unknown = isRemoteError(error) ? error.data : undefined;
  const wanted = isObject(data) && typeof data.retryAfterMs === "number" ? data.retryAfterMs : RETRY_MS * 2 ** retry;
  return Math.min(MAX_RETRY_MS, Math.max(RETRY_MS, wanted));
}

/** Tests whether a retry may succeed, because the connection was lost, or the server is restarting, busy or failing. */
export function isTransient(error: unknown): boolean {
  if (isMcpError(error)) return false;
  if (!isRemoteError(error)) return true;
  const { code, status = 200 } = error;
  if (status >= 500 || status === 429 || status === 408) return true;
  // Code 0 means that the response is not a complete message.
  return status < 400 && [0, INTERNAL_ERROR, BUSY, RATE_LIMITED].includes(code);
}
