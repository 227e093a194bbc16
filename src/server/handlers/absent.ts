/**
 * Remembers that a resource does not exist because its `read` has returned nothing, and not because of another error.
 */
import { McpError } from "../../core/protocol/errors.ts";
import type { Call } from "../call/call.ts";

/**
 * The errors for which a `read` has returned `undefined` or `null`, with the parameters of its call. The call of a layer
 * has the parameters of the call that it wraps, and an inner call has others.
 */
const absent = new WeakMap<object, Call["params"]>();

export function toAbsent(uri: string, { params }: Call): McpError {
  const error = McpError.resourceNotFound(uri);
  absent.set(error, params);
  return error;
}

/** Returns whether an error means that `read` has returned `undefined` or `null` in this call. */
export function isAbsent(error: unknown, { params }: Call): boolean {
  return absent.get(Object(error)) === params;
}
