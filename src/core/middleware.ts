/**
 * Middleware: functions that wrap calls.
 *
 * @module
 */
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";

/**
 * Wraps a call. It calls `next` for the result, and returns that result or another one, or throws.
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

/** Composes middleware around a function. The first one is the outermost. */
export function compose<A extends readonly unknown[]>(
  middleware: readonly Middleware[],
  last: (call: Call, ...rest: A) => Result | Promise<Result>,
): (call: Call, ...rest: A) => Result | Promise<Result> {
  return middleware.reduceRight<(call: Call, ...rest: A) => Result | Promise<Result>>(
    (next, use) => (call, ...rest) => use(call, async () => await next(call, ...rest)),
    last,
  );
}
