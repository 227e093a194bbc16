/**
 * Sign-in errors. Their messages contain no secrets.
 */
import { AuthorizationResponseError, ResponseBodyError } from "oauth4webapi";
import { toPrintableLine } from "../../core/kit/printable.ts";
import { toShown } from "../shown.ts";

export { toShown };

/** The error of a failed sign-in. */
export class SignInError extends Error {
  override readonly name: string = "SignInError";

  /** Creates an error. Escapes `message`, because it may contain text from a server, such as an issuer. */
  constructor(message: string) {
    super(toPrintableLine(message));
  }
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
  const message = toShown(error instanceof Error ? error.message : error);
  // The OAuth library does not state the status of a response that is not valid.
  const response = error instanceof Error ? error.cause : undefined;
  return response instanceof Response
    ? `the response has status ${response.status} and is not valid (${message})`
    : message;
}
