/**
 * Prepares text for the messages of errors and warnings.
 *
 * @module
 */
export { toShown } from "../kit/shown.ts";

/**
 * Returns the message for an error during an action, such as `Cannot begin a new session`. An error that already states
 * what cannot be done needs no further action.
 */
export function explain(action: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return reason.startsWith("Cannot ") ? reason : `${action}: ${reason}`;
}
