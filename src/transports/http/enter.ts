/**
 * Authenticates the callers of transports beside the HTTP endpoint, such as WebSocket.
 *
 * @module
 */
import { BUSY, isMcpError } from "../../protocol/errors.ts";
import type { Principal } from "../../core/context.ts";
import type { Core } from "../../core/core.ts";
import type { SeenRequest } from "../../core/link.ts";
import type { ConnectionInfo } from "./access.ts";
import type { EnterOptions } from "./authenticator.ts";
import type { HttpEntry } from "./lazy_endpoint.ts";

/** What is known about the caller of an admitted request. */
export interface Entered {
  readonly principal?: Principal;
  /** The request without credentials, if the server has authenticated it. */
  readonly seen?: SeenRequest;
}

/** Returns what is known about the caller of an admitted request, or the response to a refused one. */
export async function enterCaller(
  { core, endpoint: { options: { loadAuth } } }: HttpEntry,
  request: Request,
  info: ConnectionInfo | undefined,
  options: EnterOptions,
): Promise<Entered | Response> {
  const authenticator = await loadAuth?.();
  if (authenticator) return await authenticator.enter(request, info, options);
  const { readFront } = await import("./front_principal.ts");
  const principal = readFront(core, request, { info, transport: options.transport });
  return principal instanceof Response ? principal : { principal };
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
