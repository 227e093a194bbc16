/**
 * Returns the message of an error without its final full stop, because a remedy follows, as in `Cannot write a.json: disk
 * full; check the folder`.
 */
export function toState(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.trim().replace(/(?<=[^.\s])\s*\.$/, "");
}
