/**
 * Ends of sessions that the store has not confirmed. They are written as soon as it answers.
 *
 * @module
 */
import type { Account, Pot } from "../core/capacity/account.ts";
import { systemClock } from "../core/capacity/timers.ts";

/** An end that takes a place. */
interface PendingEnd {
  readonly account: Account;
  readonly pot: Pot;
  /** Writes the end. Resolves to `false` if the store did not confirm it. */
  readonly write: () => Promise<boolean>;
  /** The attempt in progress. */
  writing?: Promise<boolean>;
  /** Whether the client was answered that the end waits. */
  isLate?: boolean;
  /** Time at which the end was written, in milliseconds of the monotonic clock. */
  written?: number;
}

/** Milliseconds before the next attempt. */
const RETRY_MS = 1000;
/** Milliseconds for which a client may ask again for an end that was written late. */
const KEPT_MS = 60_000;

/** The ends that wait, by the key of their session. */
export class PendingEnds {
  readonly #ends = new Map<string, PendingEnd>();
  #stop?: () => void;
  #isClosed = false;

  /** Whether an end waits or was written late, and the client may ask for it. */
  find(key: string): "written" | "waiting" | undefined {
    const end = this.#ends.get(key);
    return end && (end.written === undefined ? "waiting" : "written");
  }

  /** Takes a place for an end. Returns `false` if the client or all clients have too many. */
  reserve(key: string, { account, pot, write }: Pick<PendingEnd, "account" | "pot" | "write">): boolean {
    if (this.#ends.has(key)) return true;
    this.#tidy();
    // A client that does not ask again must not lose the place of an end that waits.
    if (!pot.hasShare(account)) this.#dropWritten(account);
    if (!pot.take(account)) return false;
    this.#ends.set(key, { account, pot, write });
    return true;
  }

  /** Writes an end that has a place. Resolves to `false` if it waits for the store. */
  async write(key: string): Promise<boolean> {
    const end = this.#ends.get(key);
    if (!end || end.written !== undefined) return true;
    const isWritten = await this.#attempt(key, end);
    if (!isWritten) this.#retry();
    return isWritten;
  }

  /** Tries each end once more, and returns the number of ends that are lost. */
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
    // Nobody asks again for an end that was answered at once.
    else if (end.isLate) end.written ??= systemClock.now();
    else this.#drop(key, end);
    return isWritten;
  }

  // One end after another, because a lost store would only reject them all.
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
