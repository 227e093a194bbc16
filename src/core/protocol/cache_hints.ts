/**
 * The cache hints that a result itself contains: how long it may be cached, and by whom.
 *
 * @see specification/2026-07-28/server/utilities/caching
 */
import type { Result } from "./jsonrpc.ts";

/** The lifetime of a result, and the callers that may share it. */
export interface CacheHints {
  /** Milliseconds. */
  readonly ttlMs: number;
  readonly scope: "public" | "private" | "anonymous";
}

/** A symbol, because the JSON text of a result contains the server's hints instead. Copies of a result keep the symbol. */
const HINTS: unique symbol = Symbol.for("mcp.cacheHints");

interface Hinted {
  readonly [HINTS]?: Partial<CacheHints>;
}

/**
 * Adds the members `ttlMs` and `cacheScope` of a value that the author's code has returned, and perhaps got from another
 * server. Members of a wrong type are ignored.
 */
export function withHints<R extends Result>(result: R, given: Readonly<Record<string, unknown>>): R {
  const { ttlMs, cacheScope } = given;
  const isTtl = typeof ttlMs === "number" && ttlMs >= 0;
  if (!isTtl && cacheScope !== "private") return result;
  const before = (result as Hinted)[HINTS]; // The cast is safe, because only this function sets the property.
  const hints = {
    ...before,
    ...isTtl && { ttlMs: Math.min(Math.floor(ttlMs), before?.ttlMs ?? Infinity) },
    ...cacheScope === "private" && { scope: cacheScope },
  };
  return { ...result, [HINTS]: hints };
}

/** Returns the server's hints for a result, narrowed by those of the result. */
export function narrowHints(own: CacheHints, result: Result): CacheHints {
  const { [HINTS]: hints } = result as Hinted; // See above.
  if (!hints) return own;
  const { ttlMs = Infinity, scope = own.scope } = hints;
  return { ttlMs: Math.min(own.ttlMs, ttlMs), scope };
}
