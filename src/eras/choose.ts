/**
 * Selects the era of each message.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/link.ts";

/** Recognizes the messages of one era. */
export interface Claims {
  /** Whether a message belongs to the era. */
  claims(message: Incoming, link: Link): boolean;
  /** Whether a request without a message belongs to the era. */
  claimsLink(link: Link): boolean;
}

const METHOD_NOT_ALLOWED: Reply = { status: 405, headers: { allow: "POST" } };

/** Combines two eras. Messages that are not claimed for the first go to the second. */
export function chooseEra(first: Era, { claims, claimsLink }: Claims, second: Era): Era {
  // The first era has neither standalone streams nor sessions.
  const forward = (method: "attach" | "detach"): Era["attach"] => (link) =>
    claimsLink(link) ? METHOD_NOT_ALLOWED : second[method]?.(link) ?? METHOD_NOT_ALLOWED;
  return {
    accept: (message, link) => (claims(message, link) ? first : second).accept(message, link),
    attach: forward("attach"),
    detach: forward("detach"),
  };
}
