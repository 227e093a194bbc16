/**
 * Selects the era of each message.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/call/link.ts";

/** An era that recognizes its own messages. */
export interface SelectiveEra extends Era {
  /** Whether a message belongs to this era. */
  claims(message: Incoming, link: Link): boolean;
  /** Whether a request without a message belongs to this era. */
  claimsLink(link: Link): boolean;
}

const METHOD_NOT_ALLOWED: Reply = { status: 405, headers: { allow: "POST" } };

/** Combines two eras. Messages that the first does not claim go to the second. */
export function chooseEra(first: SelectiveEra, second: Era): Era {
  // The first era has neither standalone streams nor sessions.
  const forward = (method: "attach" | "detach"): Era["attach"] => (link) =>
    first.claimsLink(link) ? METHOD_NOT_ALLOWED : second[method]?.(link) ?? METHOD_NOT_ALLOWED;
  return {
    accept: (message, link) => (first.claims(message, link) ? first : second).accept(message, link),
    attach: forward("attach"),
    detach: forward("detach"),
    async load() {
      await first.load?.();
      await second.load?.();
    },
    rest: () => second.rest?.(),
  };
}
