/**
 * Remembers that a resource does not exist because its `read` has returned nothing, and not because of another error.
 */
import { McpError } from "../../core/protocol/errors.ts";
import type { Call } from "../call/call.ts";

/** The calls whose `read` has returned `undefined` or `null`. */
const absent = new WeakSet<Call>();

/** Returns the error for a URI whose `read` has returned `undefined` or `null`. */
export function toAbsent(uri: string, call: Call): McpError {
  absent.add(call);
  return McpError.resourceNotFound(uri);
}

/** Returns whether `read` has returned `undefined` or `null` since the last time. */
export function takeAbsent(call: Call): boolean {
  return absent.delete(call);
}
