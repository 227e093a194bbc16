/**
 * Records which requests `ctx.forward` has forwarded in one run of a handler.
 */

/** A call that can forward requests. */
export interface Forwarder {
  /** The outer call, which keeps the forwarded requests, because the client retries that call. */
  readonly forwarder?: Forwarder;
  /**
   * The keys of the requests that were forwarded in this run: by the handler, by its layers and middleware, and by
   * the resources that it reads.
   */
  forwardedKeys?: Set<string>;
}

/** Returns the call that keeps the forwarded requests of a call. */
export function findForwarder<F extends Forwarder & { readonly forwarder?: F }>(call: F): F {
  let outermost = call;
  while (outermost.forwarder) outermost = outermost.forwarder;
  return outermost;
}

/** Returns the keys of the requests that were forwarded in this run. */
export function openKeys(call: Forwarder): Set<string> {
  return findForwarder(call).forwardedKeys ??= new Set();
}

/** Lets a call use the keys of its outer calls, also when it no longer has an outer call. */
export function keepKeys(call: Forwarder): void {
  call.forwardedKeys = openKeys(call);
}
