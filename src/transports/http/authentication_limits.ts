/**
 * Limits the work for requests whose caller is not known yet, in number and in time.
 *
 * @module
 */
import type { Core } from "../../core/core.ts";

/** A request whose caller is not known yet. */
export interface Entering {
  /** Address of the client, if known. */
  readonly peer?: string;
}

/** Work that takes longer than `limits.auth.timeoutMs`. */
export const TOO_SLOW = new Error("Cannot admit a caller: it took too long");

/** Work that has not ended when the server closes. */
export const CLOSED = new Error("Cannot admit a caller: the server is closing");

/** Limits work that takes time, such as authentications, by `limits.auth`. */
export class AuthenticationLimits {
  readonly #core: Core;
  /** Number of requests that wait, in all and by peer. */
  #running = 0;
  readonly #runningOf = new Map<string, number>();
  /** Ends each wait with an error. */
  readonly #stops = new Set<(error: Error) => void>();
  #isClosed = false;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Tests whether no more work may start for a request. Fast while nothing waits. */
  isFull(entry: Entering): boolean {
    return this.#running > 0 && this.#exceeds(entry.peer);
  }

  /**
   * Waits for work, up to `limits.auth.timeoutMs`. Work that never settles must not hold its place forever.
   *
   * @throws {Error} `TOO_SLOW`, or `CLOSED`.
   */
  async wait<T>(work: PromiseLike<T>, { peer }: Entering): Promise<T> {
    const { ticker, limits: { auth: { timeoutMs } } } = this.#core;
    this.#count(peer, 1);
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const timeout = ticker.startTimeout(timeoutMs, () => reject(TOO_SLOW));
    this.#stops.add(reject);
    if (this.#isClosed) reject(CLOSED);
    try {
      return await Promise.race([work, stopped]);
    } finally {
      this.#stops.delete(reject);
      ticker.cancel(timeout);
      this.#count(peer, -1);
    }
  }

  /** Ends all waits, also later ones. The timer that would end them stops with the server. */
  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop(CLOSED);
  }

  #exceeds(peer: string | undefined): boolean {
    const { observing, limits: { auth: { running, runningPerPeer } } } = this.#core;
    const isAll = this.#running >= running;
    if (!isAll && (peer === undefined || (this.#runningOf.get(peer) ?? 0) < runningPerPeer)) return false;
    observing?.reach(isAll ? "auth.running" : "auth.runningPerPeer", isAll ? undefined : `peer ${peer}`);
    return true;
  }

  #count(peer: string | undefined, change: number): void {
    this.#running += change;
    if (peer === undefined) return;
    const count = (this.#runningOf.get(peer) ?? 0) + change;
    if (count) this.#runningOf.set(peer, count);
    else this.#runningOf.delete(peer);
  }
}
