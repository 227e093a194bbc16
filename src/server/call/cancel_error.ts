/**
 * The error that states why a call was cancelled.
 */
import { INTERNAL_ERROR, isMcpError, McpError } from "../../core/protocol/errors.ts";
import type { CancelReason } from "./observer.ts";

/**
 * The abort reason of `ctx.signal`. The class extends `McpError`, so that the client gets a valid JSON-RPC error if a
 * handler or an extension rethrows the reason. `name` is `TimeoutError` after a timeout, and `AbortError` otherwise.
 */
export class CancelError extends McpError {
  override readonly name: "AbortError" | "TimeoutError";
  readonly why: CancelReason;

  constructor(
    why: CancelReason,
    message = "Cannot continue the call: it was cancelled",
    code: number = INTERNAL_ERROR,
  ) {
    super(code, message);
    this.name = why === "timeout" ? "TimeoutError" : "AbortError";
    this.why = why;
  }

  /** The response to the cancelled call. `undefined` if the client no longer waits for a response. */
  get response(): McpError | undefined {
    return ANSWERED.includes(this.why) ? this : undefined;
  }
}

/** Causes of a cancellation after which the client still waits for a response. */
const ANSWERED: readonly CancelReason[] = ["timeout", "closing", "session"];

/** Another copy of this library may have created the error. */
export function isCancelError(error: unknown): error is CancelError {
  return isMcpError(error) && "why" in error && typeof error.why === "string";
}

/** Converts a cause to a positive integer. */
export function toReasonNumber(why: CancelReason): number {
  return 1 + REASONS.indexOf(why);
}

/** Returns `disconnected` for any other number. */
export function fromReasonNumber(number: number): CancelReason {
  return REASONS[number - 1] ?? "disconnected";
}

const REASONS: readonly CancelReason[] = [
  "client",
  "timeout",
  "disconnected",
  "session",
  "expired",
  "extension",
  "closing",
];
