/**
 * Selects the era of each message.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/link.ts";

/** An era that recognizes its own messages. */
export interface SelectiveEra extends Era {
  /** Whether a message belongs to this era. */
  claims(message: Incoming, link: Link): boolean;
  /** Whether a request without a message belongs to this era. */
  claimsLink(link: Link): boolean;
}

const NO_VISITS: Reply = { status: 405, headers: { allow: "POST" } };

/** Combines two eras. Messages that the first does not claim go to the second. */
export function chooseEra(first: SelectiveEra, second: Era): Era {
  // The first era has neither standalone streams nor sessions.
  const visit = (method: "attach" | "detach"): Era["attach"] => (link) =>
    first.claimsLink(link) ? NO_VISITS : second[method]?.(link) ?? NO_VISITS;
  return {
    accept: (message, link) => (first.claims(message, link) ? first : second).accept(message, link),
    attach: visit("attach"),
    detach: visit("detach"),
  };
}
