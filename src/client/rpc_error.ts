/**
 * The error of a failed request.
 *
 * @module
 */

/** The server responded with an error, or with no valid response. */
export class RpcError extends Error {
  /** `RpcError`. */
  override readonly name = "RpcError";
  /** The JSON-RPC error code; 0 if the response was not a JSON-RPC message. */
  readonly code: number;
  /** The data of the error, for programs. */
  readonly data?: unknown;
  /** The HTTP status, if the request was sent over HTTP. */
  readonly status?: number;

  /** An error with a code, the server's text, its data, and the HTTP status. */
  constructor(code: number, message: string, data?: unknown, status?: number) {
    super(message);
    this.code = code;
    this.data = data;
    this.status = status;
  }
}
