/**
 * Serves several generations of the protocol at once.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/link.ts";

/** An era that can tell its own messages from those of others. */
export interface SelectiveEra extends Era {
  /** Whether a message is for this era. */
  claims(message: Incoming, link: Link): boolean;
  /** Whether a request without a message is for this era. */
  claimsLink(link: Link): boolean;
}

const NO_VISITS: Reply = { status: 405, headers: { allow: "POST" } };

/** One era in front of another: what the first does not claim is for the second. */
export function chooseEra(first: SelectiveEra, second: Era): Era {
  // The first era has no streams of their own to open and no sessions to end.
  const visit = (method: "attach" | "detach"): Era["attach"] => (link) =>
    first.claimsLink(link) ? NO_VISITS : second[method]?.(link) ?? NO_VISITS;
  return {
    accept: (message, link) => (first.claims(message, link) ? first : second).accept(message, link),
    attach: visit("attach"),
    detach: visit("detach"),
  };
}
