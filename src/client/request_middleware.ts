/**
 * Functions that wrap the requests of a client.
 *
 * @module
 */
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";

/** A request before it is sent. */
export interface ClientRequest {
  /** The method, such as `tools/call`. */
  readonly method: string;
  /** The parameters, without the fields that the protocol revision adds. */
  readonly params: Params;
  /** Additional HTTP headers. `null` removes a header. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** Aborts when the request is cancelled or times out. */
  readonly signal: AbortSignal;
}

/**
 * A function that wraps a request. `next` sends the request that it is called with, which may be a changed request. It
 * may be called several times. The function returns the result.
 */
export type ClientMiddleware = (
  request: ClientRequest,
  next: (request?: ClientRequest) => Promise<Result>,
) => Result | Promise<Result>;

/** Runs the functions that wrap a request. The first function is the outermost. */
export async function runMiddleware(
  use: readonly ClientMiddleware[],
  request: ClientRequest,
  send: (request: ClientRequest) => Promise<Result>,
): Promise<Result> {
  const [first, ...rest] = use;
  if (!first) return await send(request);
  const result: unknown = await first(request, (changed = request) => runMiddleware(rest, changed, send));
  if (isObject(result)) return result;
  throw new TypeError(
    `Cannot finish ${request.method}: a function of use returned no result; return the result of next()`,
  );
}
