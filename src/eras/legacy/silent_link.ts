/**
 * A link for calls that send nothing.
 *
 * @module
 */
import type { Link } from "../../core/call/link.ts";

/** A link to the same client over which nothing is sent. */
export function toSilent(
  { transport, inFlight, account, principal }: Pick<Link, "transport" | "inFlight" | "account" | "principal">,
): Link {
  const send = () => undefined;
  return { transport, inFlight, account, principal, streams: false, send, wait() {}, open() {}, release() {} };
}
