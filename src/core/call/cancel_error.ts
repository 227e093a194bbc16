/**
 * The reason of a cancelled call.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, McpError } from "../../protocol/errors.ts";
import type { CancelReason } from "./observer.ts";

/**
 * The reason with which the signal of a call aborts. It is an `McpError`, so that a handler or an extension that
 * rethrows it sends a valid JSON-RPC error. Its name is `TimeoutError` after a timeout, and `AbortError` otherwise.
 */
export class CancelError extends McpError {
  override readonly name: "AbortError" | "TimeoutError";
  /** Why the call was cancelled. */
  readonly why: CancelReason;

  /** Creates the reason. `code` is the code of the JSON-RPC error. */
  constructor(why: CancelReason, message = "Cannot go on: the call was cancelled", code: number = INTERNAL_ERROR) {
    super(code, message);
    this.name = why === "timeout" ? "TimeoutError" : "AbortError";
    this.why = why;
  }

  /** The response to the cancelled call. `undefined` if the client does not wait for a response. */
  get response(): McpError | undefined {
    return ANSWERED.includes(this.why) ? this : undefined;
  }
}

/** The reasons for which a call ends although its client still waits for a response. */
const ANSWERED: readonly CancelReason[] = ["timeout", "closing", "session"];

/** Whether an error is a {@linkcode CancelError}, created by any copy of this library. */
export function isCancelError(error: unknown): error is CancelError {
  return isMcpError(error) && "why" in error && typeof error.why === "string";
}

/** Returns the number that stands for a reason, from 1. */
export function toReasonNumber(why: CancelReason): number {
  return 1 + REASONS.indexOf(why);
}

/** Returns the reason that a number stands for. */
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
