/**
 * Records the calls that only pass on what the client wants, such as calls of a tool that calls the tool which a search
 * has found, or of a tool that reads a resource. Otherwise clients could exceed the concurrency of a handler, because an
 * inner call needs no slot.
 */
import type { Call } from "./call.ts";

const relays = new WeakSet<Call>();

/** Records that `call` makes its inner call for the client, and not for a handler of the author. */
export function markRelay(call: Call): void {
  relays.add(call);
}

/** Returns whether `call` makes its inner call for the client. */
export function isRelay(call: Call): boolean {
  return relays.has(call);
}

/** Returns the call of the client that passes `call` on, if any. */
export function findRelay({ host: { outer } }: Call): Call | undefined {
  // A handler that calls the relay may already keep a slot of the called handler.
  return outer && isRelay(outer) && !outer.host.outer ? outer : undefined;
}
