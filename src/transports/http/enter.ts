/**
 * Authenticates the callers of transports beside the HTTP endpoint, such as WebSocket.
 *
 * @module
 */
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
