/**
 * Prepares text for the messages of errors and warnings.
 */
import { toMessage } from "../core/kit/error_state.ts";
import { readFailure } from "../core/kit/failure.ts";
import { RedirectError } from "./redirects.ts";

export { toShown } from "../core/kit/shown.ts";

/**
 * Returns the message for an error during an action, such as `Cannot begin a new session`. The errors of a connection,
 * such as `Cannot reach https://…`, state what cannot be done, and need no further action. `reason` defaults to the
 * message of the error.
 */
export function explain(action: string, error: unknown, reason = toMessage(error)): string {
  const isStated = error instanceof RedirectError || error instanceof Error && readFailure(error);
  return isStated ? reason : `${action}: ${reason}`;
}
