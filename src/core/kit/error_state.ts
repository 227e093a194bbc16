/**
 * Returns the message of an error without its final full stop, because a remedy follows, as in `Cannot write a.json: disk
 * full; check the folder`.
 */
export function toState(error: unknown): string {
  return toMessage(error).trim().replace(/(?<=[^.\s])\s*\.$/, "");
}

/** Returns the message of an error, or the text of another thrown value. */
export function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
