/**
 * The servers behind the proxies of a server, for its health checks.
 */
import type { ServerHandle } from "./server_handle.ts";

/** `none` means that the server has not been needed yet. */
export type UpstreamState = "ok" | "failed" | "none";

export interface KnownUpstream {
  readonly name: string;
  readonly read: () => UpstreamState;
}

const UPSTREAMS = {};

/** The key is the proxy, because names are not unique. */
export function findUpstreams({ slot }: Pick<ServerHandle, "slot">): Map<object, KnownUpstream> {
  // Bound: the proxies of the server.
  return slot(UPSTREAMS, () => new Map<object, KnownUpstream>());
}
