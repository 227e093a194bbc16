/**
 * Sign-in errors. Their messages contain no secrets.
 *
 * @module
 */
import { AuthorizationResponseError, ResponseBodyError } from "oauth4webapi";
import { toPrintableLine } from "../../kit/printable.ts";

/** The error of a failed sign-in. */
export class SignInError extends Error {
  override readonly name = "SignInError";
}

const MAX_CHARACTERS = 200;

/** Returns text from a server in printable form, on one line and truncated. */
export function toShown(text: unknown): string {
  const line = toPrintableLine(text);
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
}

/**
 * Returns the error code that an authorization server sent, such as `invalid_grant`. Returns `undefined` for other
 * errors.
 */
export function toErrorCode(error: unknown): string | undefined {
  return error instanceof ResponseBodyError || error instanceof AuthorizationResponseError ? error.error : undefined;
}

/**
 * Describes why a request to an authorization server failed. Omits the `cause` of errors of the OAuth library, because
 * a cause contains the whole response, which may include tokens.
 */
export function toReason(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const { error_description: description } = error;
    return toShown(description ? `${error.error} (${description})` : error.error);
  }
  return toShown(error instanceof Error ? error.message : error);
}
