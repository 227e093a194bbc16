/**
 * Facts about the errors of a client. Programs decide by these facts, because the messages of errors may change.
 */

/** The reason why a request failed, if programs handle this reason differently from other reasons. */
export type Failure =
  /** No connection to the URL. The error's `cause` is the error of the runtime. */
  | { readonly kind: "unreachable"; readonly url: string }
  /** The command of a server could not be started. The error's `cause` is the error of the runtime. */
  | { readonly kind: "not-started"; readonly command: string }
  /** The process of a server has exited with this code. */
  | { readonly kind: "exited"; readonly code: number }
  /** The response is not a JSON-RPC message. `state` describes the response, such as `got 502 text/html`. */
  | { readonly kind: "unreadable"; readonly state: string }
  /** The server at the URL is not an MCP server. The error's message contains a remedy. */
  | { readonly kind: "not-mcp" };

// Another copy of this library may have created the error.
const FAILURE: unique symbol = Symbol.for("mcp.failure");

export function withFailure<E extends Error>(error: E, failure: Failure): E {
  // The property is not enumerable, so that comparisons of errors ignore the property.
  return Object.defineProperty(error, FAILURE, { value: failure });
}

/** Returns `undefined` if the error has no facts. */
export function readFailure(error: Error): Failure | undefined {
  const { [FAILURE]: failure }: { readonly [FAILURE]?: Failure } = Object(error);
  return failure;
}
