/**
 * What a request came to when it failed.
 *
 * @module
 */

/** The server answered with an error, or with something that is no answer. */
export class RpcError extends Error {
  /** `RpcError`. */
  override readonly name = "RpcError";
  /** The JSON-RPC error code; 0 if the answer was not a JSON-RPC message. */
  readonly code: number;
  /** What the server said for programs. */
  readonly data?: unknown;
  /** The HTTP status, if the request went over HTTP. */
  readonly status?: number;

  /** An error with a code, the server's text, its data, and the HTTP status. */
  constructor(code: number, message: string, data?: unknown, status?: number) {
    super(message);
    this.code = code;
    this.data = data;
    this.status = status;
  }
}
