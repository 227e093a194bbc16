/**
 * Code around calls.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";

/**
 * Code around a call. It sees the call, calls `next` for the result, and returns it, another one, or throws. It runs
 * for every method that the server answers, handshakes and pings included. For a subscription, `next` settles when that
 * ends, and throws if the client ended it. During a handshake nothing can be sent before its result.
 *
 * ```ts
 * import type { Middleware } from "@x/mcp";
 *
 * const timing: Middleware = async (call, next) => {
 *   const start = performance.now();
 *   const result = await next();
 *   console.error(call.method, performance.now() - start);
 *   return result;
 * };
 * ```
 */
export type Middleware = (call: Context, next: () => Promise<Result>) => Promise<Result>;

/** Composes middleware around what it wraps, once; the first is the outermost. */
export function compose<A extends readonly unknown[]>(
  middleware: readonly Middleware[],
  last: (call: Call, ...rest: A) => Result | Promise<Result>,
): (call: Call, ...rest: A) => Result | Promise<Result> {
  return middleware.reduceRight<(call: Call, ...rest: A) => Result | Promise<Result>>(
    (next, use) => (call, ...rest) => use(call, async () => await next(call, ...rest)),
    last,
  );
}
