/**
 * Ends streams whose caller is no longer authenticated.
 *
 * @module
 */
import type { Principal } from "./context.ts";
import type { Ticker } from "../capacity/timers.ts";

/**
 * Authenticates the caller of an open stream again. Resolves to `false` if the caller is refused, is another one or has
 * other scopes, and to `undefined` if that cannot be found out now.
 */
export type Recheck = () => Promise<boolean | undefined>;

/** Milliseconds between two checks of a caller. */
const RECHECK_MS = 60_000;
/** Milliseconds after which a caller counts as refused if no check succeeds, as while an issuer is not reachable. */
const MAX_UNKNOWN_MS = 300_000;

/** The caller of a stream. */
export interface WatchedCaller {
  readonly principal?: Principal;
  /** `undefined` for callers that are not checked again. */
  readonly recheck?: Recheck;
}

/** Calls a function once the credentials of a caller have expired or were revoked. Returns a function that stops it. */
export function watchCaller(ticker: Ticker, { principal, recheck }: WatchedCaller, end: () => void): () => void {
  const stopExpiry = ticker.startExpiry(principal?.expiresAt, end);
  if (!recheck) return stopExpiry;
  const { clock } = ticker;
  let isStopped = false;
  let known = clock.now();
  const check = async () => {
    const isValid = await recheck();
    if (isStopped) return;
    if (isValid) known = clock.now();
    if (isValid === false || clock.now() - known >= MAX_UNKNOWN_MS) return end();
    timeout = ticker.startTimeout(RECHECK_MS, check);
  };
  let timeout = ticker.startTimeout(RECHECK_MS, check);
  return () => {
    isStopped = true;
    ticker.cancel(timeout);
    stopExpiry();
  };
}
