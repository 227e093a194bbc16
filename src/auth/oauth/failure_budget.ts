/**
 * Limits how often an address may make the server ask an issuer about tokens that turn out to be invalid.
 *
 * @module
 */
import { TokenCache } from "./token_cache.ts";

/** Maximum number of invalid tokens from one address per minute. Each invalid token costs the issuer a request. */
const MAX_FAILURES = 60;
const WINDOW_MS = 60_000;

/** Counts the invalid tokens from each address within the last minute. */
export class FailureBudget {
  readonly #failures = new TokenCache<{ count: number; readonly ends: number }>({
    entries: 10_000,
    characters: 1024 * 1024,
  });

  /**
   * Returns the milliseconds until an address may present another unknown token, or `undefined` if it may present a
   * token now.
   */
  toWait(peer: string | undefined, now: number): number | undefined {
    const found = peer === undefined ? undefined : this.#failures.get(peer, now);
    return found && found.count >= MAX_FAILURES ? found.ends - now : undefined;
  }

  /**
   * Counts an invalid token. An unknown address has no budget, because all clients without an address would share it.
   */
  fail(peer: string | undefined, now: number): void {
    if (peer === undefined) return;
    const found = this.#failures.get(peer, now);
    if (found) found.count++;
    else this.#failures.set(peer, { value: { count: 1, ends: now + WINDOW_MS }, until: now + WINDOW_MS }, now);
  }

  /** Forgets all addresses. */
  clear(): void {
    this.#failures.clear();
  }
}
