/**
 * Prepares text for the messages of errors and warnings.
 *
 * @module
 */
import { readFailure } from "../kit/failure.ts";
import { toPrintableLine } from "../kit/printable.ts";
import { RedirectError } from "./redirects.ts";

const MAX_CHARACTERS = 200;

/** Returns text from a server in printable form, on one line and truncated. */
export function toShown(text: unknown): string {
  const line = toPrintableLine(text);
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
}

/**
 * Returns the message for an error during an action, such as `Cannot begin a new session`. The errors of a connection,
 * such as `Cannot reach https://…`, state what cannot be done, and need no further action. `reason` defaults to the
 * message of the error.
 */
export function explain(action: string, error: unknown, reason = toMessage(error)): string {
  const isStated = error instanceof RedirectError || error instanceof Error && readFailure(error);
  return isStated ? reason : `${action}: ${reason}`;
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
