/**
 * Limits the number of invalid tokens per client address, because the server has to introspect each unknown token at
 * its issuer.
 *
 * @module
 */
import { TokenCache } from "./token_cache.ts";

/**
 * Maximum number of invalid tokens per address and minute. Each invalid token causes an introspection request to the
 * issuer.
 */
const MAX_FAILURES = 60;
const WINDOW_MS = 60_000;

/** Counts the invalid tokens from each address, for one minute from the first invalid token. */
export class FailureBudget {
  readonly #failures = new TokenCache<{ count: number; readonly ends: number }>({
    entries: 10_000,
    characters: 1024 * 1024,
  });

  /**
   * Returns the number of milliseconds until the server introspects an unknown token from this address again. Returns
   * `undefined` if the address has not reached the limit.
   */
  toWait(peer: string | undefined, now: number): number | undefined {
    const found = peer === undefined ? undefined : this.#failures.get(peer, now);
    return found && found.count >= MAX_FAILURES ? found.ends - now : undefined;
  }

  /**
   * Counts an invalid token. Does not count tokens without an address, because all clients whose address is unknown
   * would share one limit.
   */
  fail(peer: string | undefined, now: number): void {
    if (peer === undefined) return;
    const found = this.#failures.get(peer, now);
    if (found) found.count++;
    else this.#failures.set(peer, { value: { count: 1, ends: now + WINDOW_MS }, until: now + WINDOW_MS }, now);
  }

  /** Resets the counts of all addresses. */
  clear(): void {
    this.#failures.clear();
  }
}
