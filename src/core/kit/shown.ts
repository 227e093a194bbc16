/**
 * Prepares untrusted text for messages.
 */
import { toPrintableLine } from "./printable.ts";
import { shorten } from "./shorten.ts";

const MAX_CHARACTERS = 200;

/** Returns untrusted text in printable form, on one line and truncated. */
export function toShown(text: unknown): string {
  return shorten(toPrintableLine(text), MAX_CHARACTERS);
}
