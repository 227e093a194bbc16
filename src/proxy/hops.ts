/**
 * Finds loops of proxies: each proxy adds its id to the metadata of a request.
 */
import type { Context, Params } from "../library.ts";

const HOPS = "x-mcp/proxies";
/** Number of proxies that a request may pass. */
const MAX_HOPS = 8;
/** Maximum length of the id of a proxy. */
const MAX_ID = 64;

/** Whether a request has already passed a proxy, or has passed too many of them. */
export function findLoop({ meta }: Context, id: string): boolean {
  const hops = readHops(meta);
  return hops.includes(id) || hops.length >= MAX_HOPS;
}

/**
 * Returns the metadata that a proxy passes on: the proxies that the request has passed, and the caller's metadata without
 * the members of the protocol, and without `baggage`, which can contain secrets of other systems.
 */
export function toHops(ctx: Context | undefined, id: string): Params {
  const { meta = {} } = ctx ?? {};
  const kept = Object.entries(meta).filter(([name]) =>
    !/^(io\.modelcontextprotocol\/|progressToken$|baggage$)/.test(name) && name !== HOPS
  );
  return { ...Object.fromEntries(kept), ...toOwnHops(readHops(meta), id) };
}

/** Returns metadata that contains only the proxies that a request has passed, including the proxy `id`. */
export function toOwnHops(hops: readonly string[], id: string): Params {
  return { [HOPS]: [...hops, id] };
}

export function readHops(meta: Params): readonly string[] {
  const hops = meta[HOPS];
  return Array.isArray(hops) ? hops.filter((each) => typeof each === "string" && each.length <= MAX_ID) : [];
}
