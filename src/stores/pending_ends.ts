/**
 * Keeps the ends of sessions that the store has not confirmed, and writes them as soon as the store responds.
 *
 * @module
 */
import type { Account, Pot } from "../core/capacity/account.ts";
import { systemClock } from "../core/capacity/timers.ts";

/** The end of a session that is not yet written to the store. */
interface PendingEnd {
  readonly account: Account;
  readonly pot: Pot;
  /** Writes the end. Resolves to `false` if the store did not confirm it. */
  readonly write: () => Promise<boolean>;
  /** The attempt in progress. */
  writing?: Promise<boolean>;
  /** Whether the client received the response that the end is still pending. */
  isLate?: boolean;
  /** Time at which the end was written, in milliseconds of the monotonic clock. */
  written?: number;
}

/** Milliseconds before the next attempt. */
const RETRY_MS = 1000;
/**
 * Milliseconds for which an end that was written late is remembered, so that a client that repeats its request gets a
 * confirmation.
 */
const KEPT_MS = 60_000;

/** The pending ends, by the key of their session. */
export class PendingEnds {
  readonly #ends = new Map<string, PendingEnd>();
  #stop?: () => void;
  #isClosed = false;

  /**
   * Returns whether the end of a session is pending or was written late. Returns `undefined` if there is no such end.
   */
  find(key: string): "written" | "waiting" | undefined {
    const end = this.#ends.get(key);
    return end && (end.written === undefined ? "waiting" : "written");
  }

  /**
   * Reserves a place for an end. Returns `false` if the client, or all clients together, have too many pending ends.
   */
  reserve(key: string, { account, pot, write }: Pick<PendingEnd, "account" | "pot" | "write">): boolean {
    if (this.#ends.has(key)) return true;
    this.#tidy();
    // Drop the client's written ends first. They are kept only for a repeated request, which may never come, and must
    // not use up the room for pending ends.
    if (!pot.hasShare(account)) this.#dropWritten(account);
    if (!pot.take(account)) return false;
    this.#ends.set(key, { account, pot, write });
    return true;
  }

  /**
   * Writes the end in a reserved place. Resolves to `false` if the store did not confirm the end, which then stays
   * pending.
   */
  async write(key: string): Promise<boolean> {
    const end = this.#ends.get(key);
    if (!end || end.written !== undefined) return true;
    const isWritten = await this.#attempt(key, end);
    if (!isWritten) this.#retry();
    return isWritten;
  }

  /** Tries to write each end once more. Returns the number of ends that could not be written. */
  async close(): Promise<number> {
    this.#isClosed = true;
    this.#stop?.();
    await this.#writeAll();
    return [...this.#ends.values()].filter(({ written }) => written === undefined).length;
  }

  async #attempt(key: string, end: PendingEnd): Promise<boolean> {
    const isWritten = await (end.writing ??= end.write());
    end.writing = undefined;
    if (!isWritten) end.isLate = true;
    // Forget an end that was confirmed at once, because its client will not repeat the request.
    else if (end.isLate) end.written ??= systemClock.now();
    else this.#drop(key, end);
    return isWritten;
  }

  // Writes one end after another, and stops at the first failure, because a lost store would reject the remaining ends
  // too.
  async #writeAll(): Promise<boolean> {
    for (const [key, end] of this.#ends) {
      if (end.written === undefined && !await this.#attempt(key, end)) return false;
    }
    return true;
  }

  #retry(): void {
    if (this.#isClosed) return;
    this.#stop ??= systemClock.start(
      () => {
        this.#writeAll().then((isDone) => {
          this.#stop = undefined;
          this.#tidy();
          if (!isDone) this.#retry();
        });
      },
      RETRY_MS,
      { background: true },
    );
  }

  #tidy(): void {
    const now = systemClock.now();
    for (const [key, end] of this.#ends) {
      if (end.written !== undefined && now - end.written > KEPT_MS) this.#drop(key, end);
    }
  }

  #dropWritten({ key: client }: Account): void {
    for (const [key, end] of this.#ends) {
      if (end.account.key === client && end.written !== undefined) return this.#drop(key, end);
    }
  }

  #drop(key: string, end: PendingEnd): void {
    if (this.#ends.get(key) !== end) return;
    this.#ends.delete(key);
    end.pot.give(end.account);
  }
}
