/**
 * Identifies the client of a call, for limits that count each client separately.
 */
import { toNetwork } from "../capacity/account.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import { findCall } from "./find_call.ts";

/** The key of a client: a string for a principal or an address, otherwise an object for the connection. */
export type ClientKey = string | object;

/** Key for all unknown clients over HTTP, because each of their requests has a separate account. */
const UNKNOWN = {};

/** A string key identifies the same client on all instances. */
export function toClientKey({ link: { account, http } }: Call): ClientKey {
  const { key } = account;
  // All calls on a connection have the same account. A nested read of a resource has the account of its outer call.
  if (key === undefined) return http ? UNKNOWN : account;
  // Count an IPv6 /56 network as one client, because one subscriber of a provider commonly gets such a network, which
  // contains 256 of the /64 networks by which accounts are identified.
  return toNetwork(key) ?? key;
}

/** `undefined` over stdio, where the process has only one client. */
export function toSharingKey(call: Call): ClientKey | undefined {
  return call.link.transport === "stdio" ? undefined : toClientKey(call);
}

/** Tests whether a key belongs to a principal, and not to an address or a connection. */
export function isPrincipal(key: ClientKey): boolean {
  return typeof key === "string" && key.startsWith("principal ");
}

/** A context of a test may have a principal without an account. */
export function findClientKey(ctx: Context<unknown>): ClientKey {
  if (ctx.principal) return `principal ${ctx.principal.id}`;
  const call = findCall(ctx);
  return call ? toClientKey(call) : UNKNOWN;
}

export function findSharingKey(ctx: Context<unknown>): ClientKey | undefined {
  return findCall(ctx)?.link.transport === "stdio" ? undefined : findClientKey(ctx);
}
