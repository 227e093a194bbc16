/**
 * Middleware that wraps a client's requests.
 */
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";

/** A request that middleware receives and can change. */
export interface ClientRequest {
  /** The method, such as `tools/call`. */
  readonly method: string;
  /** The parameters, without the fields that the client adds for the protocol revision. */
  readonly params: Params;
  /** Additional HTTP headers. `null` removes a header. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** Aborts when the request is cancelled or times out. */
  readonly signal: AbortSignal;
}

/**
 * A function that wraps a request, and returns the result. `next(request)` sends a request, such as a changed copy of
 * the original request, and returns the server's result. The function can call `next` several times, for example to
 * retry.
 */
export type ClientMiddleware = (
  request: ClientRequest,
  next: (request?: ClientRequest) => Promise<Result>,
) => Result | Promise<Result>;

/** The first function is the outermost. */
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
    `Cannot finish ${request.method}: a function in the option use returned no result; return the result of next()`,
  );
}
