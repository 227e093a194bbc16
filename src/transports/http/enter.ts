/**
 * Authenticates the callers of transports beside the HTTP endpoint, such as WebSocket.
 *
 * @module
 */
import { BUSY, isMcpError } from "../../protocol/errors.ts";
import type { Core } from "../../core/core.ts";
import type { ConnectionInfo } from "./access.ts";
import type { EnterOptions } from "./authenticator.ts";
import type { LazyEndpoint } from "./lazy_endpoint.ts";

/** Returns what is known about the connection of an admitted request, or the response to a refused one. */
export async function enterCaller(
  { options: { loadAuth } }: LazyEndpoint,
  request: Request,
  info: ConnectionInfo | undefined,
  options: EnterOptions,
): Promise<ConnectionInfo | Response | undefined> {
  const authenticator = await loadAuth?.();
  return authenticator ? await authenticator.enter(request, info, options) : info;
}

/**
 * Returns the message for a client that may try again, or the response to any other error, such as one of `handlers`.
 * The runtime would show the client the error itself.
 */
export async function toEntryFault(core: Core, error: unknown): Promise<string | Response> {
  return isMcpError(error) && error.code === BUSY ? error.message : await respondToFault(core, error);
}

/** Reports an unexpected error, and creates the response to its request. */
export async function respondToFault(core: Core, error: unknown): Promise<Response> {
  const { toFault } = await import("./exchange.ts");
  return toFault(core, error);
}
