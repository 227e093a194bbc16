/**
 * Authenticates the callers of transports beside the HTTP endpoint, such as WebSocket.
 *
 * @module
 */
import type { Principal } from "../../core/context.ts";
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
  const principal = readFront(core, { info, transport: options.transport });
  return principal instanceof Response ? principal : { principal };
}
