/**
 * Ends the open streams of callers that are no longer authenticated, or that `server.end` selects.
 */
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Principal } from "./context.ts";
import type { Ticker } from "../../core/timers.ts";

/**
 * Authenticates the caller of an open stream again. Resolves to `false` if the caller is refused, or if the id or the
 * scopes have changed. Resolves to `undefined` if the check cannot be completed at present.
 */
export type Recheck = () => Promise<boolean | undefined>;

/**
 * Renews the credentials of an open stream's caller. Resolves to the same caller with a later expiry, or to `false` if
 * the caller's credentials cannot be renewed. Resolves to `undefined` if the renewal cannot be completed at present.
 */
export type Renew = (principal: Principal) => Promise<Principal | false | undefined>;

export interface CallerChecks {
  readonly recheck?: Recheck;
  readonly renew?: Renew;
}

const RECHECK_MS = 60_000;
/** Milliseconds without a completed check, such as while the issuer is unreachable, before a caller is refused. */
const MAX_UNKNOWN_MS = 300_000;
/** Milliseconds before the expiry at which credentials are renewed, at most half of the remaining time. */
const RENEW_MS = 10_000;
/** A failed renewal is not retried if the credentials expire within this many milliseconds. */
const LEAST_RENEW_MS = 100;

export interface WatchedCaller {
  readonly principal?: Principal;
  /** `undefined` if the caller is neither rechecked nor renewed. */
  readonly checks?: CallerChecks;
  readonly onRenewed?: (principal: Principal) => void;
}

export class CallerWatch {
  readonly #ticker: Ticker;
  // Bound: `connections.streams`.
  readonly #watches = new Set<Watch>();

  constructor(ticker: Ticker) {
    this.#ticker = ticker;
  }

  /**
   * Calls `end` when the caller's credentials have expired or were revoked, or when {@linkcode CallerWatch.end} selects
   * the caller. Returns a function that stops watching.
   */
  watch(caller: WatchedCaller, end: () => void): () => void {
    const watch = new Watch(this.#ticker, caller, () => {
      stop();
      end();
    });
    const stop = () => {
      this.#watches.delete(watch);
      watch.stop();
    };
    this.#watches.add(watch);
    watch.start();
    return stop;
  }

  /**
   * Ends the streams of all callers for which `select` returns `true`. @throws {TypeError} if `select` is not a
   * function, or does not return a boolean. In that case, no stream is ended.
   */
  end(select: (caller: { readonly principal?: Principal }) => boolean): void {
    const refuse = (state: string) => new TypeError(`Cannot end the streams of callers: ${state}`);
    if (typeof select !== "function") {
      throw refuse("select is not a function; pass a function that returns true or false");
    }
    const selected = [...this.#watches].filter(({ principal }) => {
      const isSelected: unknown = select({ principal });
      if (typeof isSelected === "boolean") return isSelected;
      const kind = isStrayPromise(isSelected) ? "a promise" : `a value of type ${typeof isSelected}`;
      throw refuse(`the function returned ${kind}; return true or false`);
    });
    for (const watch of selected) watch.end();
  }
}

class Watch {
  readonly #ticker: Ticker;
  readonly #caller: WatchedCaller;
  readonly end: () => void;
  principal?: Principal;
  #isStopped = false;
  #known: number;
  // Bound: three kinds.
  readonly #stops = new Map<"expiry" | "recheck" | "renew", () => void>();

  constructor(ticker: Ticker, caller: WatchedCaller, end: () => void) {
    this.#ticker = ticker;
    this.#caller = caller;
    this.end = end;
    this.principal = caller.principal;
    this.#known = ticker.clock.now();
  }

  start(): void {
    const { recheck } = this.#caller.checks ?? {};
    if (recheck) this.#schedule("recheck", RECHECK_MS, () => this.#check(recheck));
    this.#expire();
  }

  stop(): void {
    this.#isStopped = true;
    for (const stop of this.#stops.values()) stop();
    this.#stops.clear();
  }

  #schedule(what: "recheck" | "renew", ms: number, run: () => void): void {
    this.#stops.set(what, this.#ticker.start(run, ms));
  }

  #expire(): void {
    this.#stops.get("expiry")?.();
    this.#stops.set("expiry", this.#ticker.startExpiry(this.principal?.expiresAt, this.end));
    const leftMs = this.#leftMs;
    const { renew } = this.#caller.checks ?? {};
    if (renew && leftMs < Infinity) this.#renewIn(Math.max(leftMs / 2, leftMs - RENEW_MS), renew);
  }

  get #leftMs(): number {
    return (this.principal?.expiresAt ?? Infinity) - this.#ticker.clock.date();
  }

  #renewIn(ms: number, renew: Renew): void {
    this.#schedule("renew", ms, () => this.#renew(renew));
  }

  async #renew(renew: Renew): Promise<void> {
    const { principal } = this;
    const renewed = principal && await renew(principal);
    if (this.#isStopped || renewed === false) return;
    if (renewed) {
      this.principal = renewed;
      this.#caller.onRenewed?.(renewed);
      return this.#expire();
    }
    const leftMs = this.#leftMs;
    if (leftMs > LEAST_RENEW_MS) this.#renewIn(leftMs / 2, renew);
  }

  async #check(recheck: Recheck): Promise<void> {
    const { clock } = this.#ticker;
    const isValid = await recheck();
    if (this.#isStopped) return;
    if (isValid) this.#known = clock.now();
    if (isValid === false || clock.now() - this.#known >= MAX_UNKNOWN_MS) return this.end();
    this.#schedule("recheck", RECHECK_MS, () => this.#check(recheck));
  }
}
