/**
 * Ends what belongs to a principal when its credentials expire.
 *
 * @module
 */
import type { Principal } from "./context.ts";
import type { Ticker } from "./timers.ts";

/** Calls `end` when the credentials of the principal expire. Returns a function that cancels it. */
export function startExpiry(ticker: Ticker, principal: Principal | undefined, end: () => void): () => void {
  const expiresAt = principal?.expiresAt;
  if (expiresAt === undefined) return () => {};
  const timeout = ticker.startTimeout(expiresAt - ticker.clock.date(), end);
  return () => ticker.cancel(timeout);
}
