/**
 * Records which requests `ctx.forward` has forwarded in one run of a handler.
 */
import type { ServerState } from "../capacity/server_state.ts";

export interface Forwarder {
  /** The outer call, which keeps the forwarded requests, because the client retries that call. */
  readonly forwarder?: Forwarder;
  /** The keys of this run: of the handler, its layers and middleware, and the resources that it reads. */
  forwardedKeys?: Set<string>;
}

export function findForwarder<F extends Forwarder & { readonly forwarder?: F }>(call: F): F {
  let outermost = call;
  while (outermost.forwarder) outermost = outermost.forwarder;
  return outermost;
}

export function openKeys(call: Forwarder): Set<string> {
  return findForwarder(call).forwardedKeys ??= new Set();
}

/** Lets a call use the keys of its outer calls, also when it no longer has an outer call. */
export function keepKeys(call: Forwarder): void {
  call.forwardedKeys = openKeys(call);
}

/** Ends the request that waits for the answers to its questions, if there is one with this `requestState`. */
export type EndForwarded = (requestState: unknown) => void;

/** Returns the functions of a server that are called when no run will continue a forwarded request. */
export function findForwardedEnds(state: ServerState): Set<EndForwarded> {
  // Bound: the proxies of the server.
  return state.slot(findForwardedEnds, () => new Set());
}
