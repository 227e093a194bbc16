/**
 * Ends what belongs to a principal when its credentials expire.
 *
 * @module
 */
import type { Principal } from "./context.ts";
import type { Ticker, Timeout } from "./timers.ts";

/** Calls `end` when the principal expires. Returns `undefined` if it never does. */
export function startExpiry(ticker: Ticker, principal: Principal | undefined, end: () => void): Timeout | undefined {
  const expiresAt = principal?.expiresAt;
  return expiresAt === undefined ? undefined : ticker.startTimeout(expiresAt - ticker.clock.date(), end);
}
