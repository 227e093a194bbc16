/**
 * Makes callers wait after too many failed checks of credentials. Each check of an unknown token causes a request to an
 * issuer, and each check of a password is a guess.
 */
import { withLimits } from "../core/protocol/errors.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import { type AuthRefusal, type AuthRequestInfo, isRefusal, refuseRequest } from "../server/engine/auth.ts";
import { deadline } from "../core/kit/deadline.ts";
import { toNetwork } from "../server/capacity/account.ts";
import { FIXED_LIMITS, type FixedLimits } from "../server/capacity/fixed_limits.ts";
import { TokenCache } from "./token_cache.ts";

const WINDOW_MS = 60_000;

/**
 * Maximum number of keys whose failures are counted, and maximum total length of the keys. A client that fails with
 * 10,000 other keys makes the server forget the failures of a key, and so pays 10,000 requests for a few more failures.
 */
const KEYS = { entries: 10_000, characters: 1024 * 1024 };

/** The number of failed checks for one key, and the checks that are waiting. */
interface Tally {
  failed: number;
  /** Number of checks in progress that have not waited. */
  running: number;
  /** Number of checks in progress that have waited for their turn. */
  turns: number;
  /** For each check that waits, oldest first, a function that starts the check. */
  readonly waiting: Set<StartCheck>;
}

type StartCheck = (pauseMs: number) => void;

interface Waiting {
  readonly tally: Tally;
  readonly start: StartCheck;
  /** Resolves to whether the check has its turn. */
  readonly delay: Promise<boolean>;
}

/** Whom a budget counts, and how it makes them wait. */
export interface FailureBudgetOptions {
  /** The bound on the number of failures per key and minute. */
  readonly limit: keyof FixedLimits["auth"] & `failures${string}`;
  /** Milliseconds between two checks of a key that has reached the limit. Defaults to 0. */
  readonly pauseMs?: number;
}

/**
 * Counts the failed checks of each key, such as an address, for one minute from the first check. Checks in progress count
 * until they succeed, because callers could otherwise start any number of checks at the same time. If a key has reached
 * its limit, its further checks run in their order: when a check has succeeded, and otherwise one after another, each
 * after a pause. A check that does not get its turn in time is refused.
 */
export class FailureBudget {
  readonly #limit: number;
  readonly #limitName: string;
  readonly #pauseMs: number;
  readonly #tallies = new TokenCache<Tally>(KEYS);

  constructor({ limit, pauseMs = 0 }: FailureBudgetOptions) {
    this.#limit = FIXED_LIMITS.auth[limit];
    this.#limitName = `auth.${limit}`;
    this.#pauseMs = pauseMs;
  }

  /** Tests whether a check of a key would have to wait. */
  isFull(toKey: () => string | undefined, { now }: AuthRequestInfo): boolean {
    const tally = this.#tallies.size ? this.#find(toKey(), now) : undefined;
    return !!tally && this.#isFull(tally);
  }

  /**
   * Runs a check of credentials, immediately or in its turn. Every result except a principal and a refusal with status
   * 429 or 503 counts as a failure, and so does an error, because a function of the server's author may throw for a
   * wrong password. If `toKey` returns `undefined`, runs the check and counts nothing, because all callers whose address
   * is unknown would share one key. The recheck of the caller of an open stream counts nothing either, because it is not
   * a guess, and must not wait for guesses.
   */
  run<T>(
    toKey: () => string | undefined,
    info: AuthRequestInfo,
    check: () => T | PromiseLike<T>,
  ): T | AuthRefusal | Promise<T | AuthRefusal> {
    const key = () => info.isRecheck ? undefined : toKey();
    // Fast path: nobody has failed, and a synchronous check succeeds.
    const known = this.#tallies.size ? this.#find(key(), info.now) : undefined;
    if (known && this.#isFull(known)) return this.#enqueue(known, info, check);
    let found;
    try {
      found = check();
    } catch (error) {
      this.#open(key(), info.now).failed++;
      throw error;
    }
    if (isPromiseLike(found)) return this.#countCheck(key(), info, found);
    if (isFailure(found)) this.#open(key(), info.now).failed++;
    return found;
  }

  clear(): void {
    this.#tallies.clear();
  }

  #find(key: string | undefined, now: number): Tally | undefined {
    return key === undefined ? undefined : this.#tallies.get(key, now);
  }

  /** Returns the tally of a key. Without a key, returns a tally that no other check finds. */
  #open(key: string | undefined, now: number): Tally {
    const found = this.#find(key, now);
    if (found) return found;
    // Bound: `auth.delayed`.
    const value: Tally = { failed: 0, running: 0, turns: 0, waiting: new Set() };
    if (key !== undefined) this.#tallies.set(key, { value, until: now + WINDOW_MS }, now);
    return value;
  }

  async #countCheck<T>(key: string | undefined, { now }: AuthRequestInfo, checking: PromiseLike<T>): Promise<T> {
    const tally = this.#open(key, now);
    tally.running++;
    let hasFailed = true;
    try {
      const found = await checking;
      hasFailed = isFailure(found);
      return found;
    } finally {
      tally.running--;
      if (hasFailed) tally.failed++;
      this.#startNext(tally);
      // Remove an unused tally, so that the fast path stays usable.
      const isUnused = !tally.failed && !tally.running && !tally.turns;
      if (key !== undefined && isUnused && this.#find(key, now) === tally) this.#tallies.delete(key);
    }
  }

  /** Refuses the request immediately if too many requests wait. */
  #enqueue<T>(
    tally: Tally,
    info: AuthRequestInfo,
    check: () => T | PromiseLike<T>,
  ): AuthRefusal | Promise<T | AuthRefusal> {
    const { promise: turn, resolve: start } = Promise.withResolvers<number>();
    const delay = info.delay?.(turn, { limit: this.#limitName });
    if (!delay) return this.#refuse(tally, "auth.delayed, auth.delayedPerPeer");
    tally.waiting.add(start);
    this.#startNext(tally);
    return this.#runInTurn({ tally, start, delay }, info, check);
  }

  async #runInTurn<T>(
    { tally, start, delay }: Waiting,
    info: AuthRequestInfo,
    check: () => T | PromiseLike<T>,
  ): Promise<T | AuthRefusal> {
    try {
      if (!await delay) return this.#refuse(tally, "auth.delayMs");
      return await this.#count(tally, info, check);
    } finally {
      if (!tally.waiting.delete(start)) tally.turns--;
      this.#startNext(tally);
    }
  }

  async #count<T>(tally: Tally, { signal }: AuthRequestInfo, check: () => T | PromiseLike<T>): Promise<T> {
    let hasFailed = true;
    try {
      // A check that ignores the signal may never end.
      const found = await deadline(check(), { signal });
      hasFailed = isFailure(found);
      return found;
    } finally {
      if (hasFailed) tally.failed++;
    }
  }

  #isFull({ failed, running, turns }: Tally): boolean {
    return failed + running + turns >= this.#limit;
  }

  #isOver({ failed, running, turns }: Tally): boolean {
    return failed + running + turns > this.#limit;
  }

  #refuse({ failed }: Tally, bounds: string): AuthRefusal {
    const names = `${this.#limitName}, ${bounds}`;
    const state = failed >= this.#limit
      ? "were wrong"
      : failed
      ? "were wrong or are being checked"
      : "are being checked";
    const reason = `too many credentials from this address ${state} (${names}); try again later`;
    return withLimits(refuseRequest(429, { reason, retryAfterMs: FIXED_LIMITS.auth.delayMs }), bounds);
  }

  #startNext(tally: Tally): void {
    for (const start of tally.waiting) {
      if (tally.turns && this.#isFull(tally)) break;
      tally.waiting.delete(start);
      tally.turns++;
      // No pause is necessary if another check has succeeded.
      start(this.#isOver(tally) ? this.#pauseMs : 0);
    }
  }
}

/**
 * Returns the address whose failures are counted together. For IPv6, returns the /56 network, because one subscriber of
 * a provider commonly gets such a network, and would otherwise have 256 budgets. Returns `undefined` if the address is
 * unknown.
 */
export function toGuesser({ peer }: AuthRequestInfo): string | undefined {
  return peer === undefined ? undefined : toNetwork(`peer ${peer}`) ?? peer;
}

function isFailure(found: unknown): boolean {
  return isRefusal(found) ? found.status !== 429 && found.status !== 503 : found === undefined || found === null;
}
