/**
 * Prepares text for the messages of errors and warnings.
 *
 * @module
 */
import { toPrintableLine } from "../kit/printable.ts";

const MAX_CHARACTERS = 200;

/** Returns text from a server in printable form, on one line and truncated. */
export function toShown(text: unknown): string {
  const line = toPrintableLine(text);
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
}

/**
 * Returns the message for an error during an action, such as `Cannot begin a new session`. An error that already states
 * what cannot be done needs no further action.
 */
export function explain(action: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason.startsWith("Cannot ") ? reason : `${action}: ${reason}`;
}
