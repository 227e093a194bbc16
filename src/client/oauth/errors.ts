/**
 * Sign-in errors. Their messages name the cause and the remedy, and contain no secrets.
 *
 * @module
 */
import { AuthorizationResponseError, ResponseBodyError } from "oauth4webapi";
import { toPrintableLine } from "../../kit/printable.ts";

/** The error for a sign-in that failed. */
export class SignInError extends Error {
  override readonly name = "SignInError";
}

const MAX_CHARACTERS = 200;

/** Converts text from a server for display: on one line, and truncated. */
export function toShown(text: unknown): string {
  const line = toPrintableLine(text);
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
}

/** Returns the error code of an authorization server, such as `invalid_grant`, if it refused a request. */
export function toErrorCode(error: unknown): string | undefined {
  return error instanceof ResponseBodyError || error instanceof AuthorizationResponseError ? error.error : undefined;
}

/**
 * Describes why a request to an authorization server failed. Omits the causes of the library's errors, because they
 * contain whole responses, which may include tokens.
 */
export function toReason(error: unknown): string {
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const { error_description: description } = error;
    return toShown(description ? `${error.error} (${description})` : error.error);
  }
  return toShown(error instanceof Error ? error.message : error);
}
