/**
 * Sign-in errors. Their messages contain no secrets.
 */
import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from "oauth4webapi";
import { toPrintableLine } from "../../core/kit/printable.ts";
import { toShown } from "../shown.ts";

export { toShown };

export class SignInError extends Error {
  override readonly name: string = "SignInError";

  /** Escapes `message`, because it may contain text from a server, such as an issuer. */
  constructor(message: string) {
    super(toPrintableLine(message));
  }
}

export interface Refusal {
  readonly status: number;
  /** The error code, such as `invalid_grant`, or an empty text if the response contained no code. */
  readonly code: string;
}

/** Returns `undefined` for errors without a response with status 4xx. */
export function toRefusal(error: unknown): Refusal | undefined {
  if (error instanceof ResponseBodyError) return { status: error.status, code: error.error };
  const cause = error instanceof WWWAuthenticateChallengeError
    ? error
    : error instanceof Error
    ? error.cause
    : undefined;
  const status = cause instanceof Response || cause instanceof WWWAuthenticateChallengeError ? cause.status : 0;
  return status >= 400 && status < 500 ? { status, code: "" } : undefined;
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
