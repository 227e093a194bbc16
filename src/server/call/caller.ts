/**
 * Identifies the caller of a call, for values that belong to one caller.
 */
import type { Link } from "./link.ts";

interface Calling {
  readonly home: {
    readonly opened?: object;
  };
  readonly link: Pick<Link, "principal" | "transport" | "inFlight">;
}

/** Objects that show nothing of the session or connection that they stand for. */
const opaque = new WeakMap<object, object>();

/**
 * Returns a text for a principal, and otherwise an object for the session or the connection. Returns `undefined` if
 * nothing identifies the caller, because two callers can have the same address and send the same headers.
 */
export function toCaller({ home, link: { principal, transport, inFlight } }: Calling): string | object | undefined {
  if (principal) return `principal ${principal.id}`;
  const known = home.opened ?? (transport === "http" || transport === "internal" ? undefined : inFlight);
  if (!known) return;
  const caller = opaque.get(known) ?? Object.freeze({});
  opaque.set(known, caller);
  return caller;
}
