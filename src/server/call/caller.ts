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

/** Objects that identify a session or connection without exposing its properties. */
const opaque = new WeakMap<object, object>();

/**
 * Returns a text for a principal, and otherwise an object for the session or the connection. Returns `undefined` if
 * nothing identifies the caller. Addresses and headers do not, because two callers can have the same address and headers.
 */
export function toCaller({ home, link: { principal, transport, inFlight } }: Calling): string | object | undefined {
  if (principal) return `principal ${principal.id}`;
  const known = home.opened ?? (transport === "http" || transport === "internal" ? undefined : inFlight);
  if (!known) return;
  const caller = opaque.get(known) ?? Object.freeze({});
  opaque.set(known, caller);
  return caller;
}
