/**
 * Keeps the ends of sessions that the store has not confirmed, and retries until the store confirms them.
 */
import type { Account, Pot } from "../server/capacity/account.ts";
import type { Clock } from "../core/timers.ts";

/** The end of a session, and the state of writing it to the store. */
interface PendingEnd {
  readonly account: Account;
  readonly pot: Pot;
  /** Writes the end to the store. Resolves to `false` if the store did not confirm the write. */
  readonly write: () => Promise<boolean>;
  /** The attempt in progress. */
  writing?: Promise<boolean>;
  /** Whether the client was already told that the end is pending. */
  isLate?: boolean;
  /** Time at which the store confirmed the end, in milliseconds on the monotonic clock. */
  written?: number;
}

/** Milliseconds between two attempts to write the pending ends. */
const RETRY_MS = 1000;
/**
 * Milliseconds for which an end is kept if the store confirmed it only after the client's request. A client that
 * retries the request within this time gets a confirmation.
 */
const KEPT_MS = 60_000;

export class PendingEnds {
  // Bound: `sessions.ending`.
  readonly #ends = new Map<string, PendingEnd>();
  readonly #clock: Clock;
  #stop?: () => void;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns `"waiting"` if the end of the session is pending, or `"written"` if the store confirmed the end only after
   * the client's request. Returns `undefined` for all other sessions.
   */
  find(key: string): "written" | "waiting" | undefined {
    const end = this.#ends.get(key);
    return end && (end.written === undefined ? "waiting" : "written");
  }

  /** Reserves a place for an end. Returns `false` if too many ends of this client, or of all clients, are pending. */
  reserve(key: string, { account, pot, write }: Pick<PendingEnd, "account" | "pot" | "write">): boolean {
    if (this.#ends.has(key)) return true;
    this.#tidy();
    // Make room by dropping the client's ends that the store has confirmed, because the client may never retry their
    // requests.
    if (!pot.hasShare(account)) this.#dropWritten(account);
    if (!pot.charge(account)) return false;
    this.#ends.set(key, { account, pot, write });
    return true;
  }

  /**
   * Writes the end for which a place was reserved. If the store does not confirm the end, resolves to `false`, and the
   * end stays pending.
   */
  async write(key: string): Promise<boolean> {
    const end = this.#ends.get(key);
    if (!end || end.written !== undefined) return true;
    const isWritten = await this.#attempt(key, end);
    if (!isWritten) this.#retry();
    return isWritten;
  }

  /** Tries once more to write each pending end. Returns the number of ends that could not be written. */
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
    // Keep a late end for the client's retry. Drop any other end, because its request succeeds and needs no retry.
    else if (end.isLate) end.written ??= this.#clock.now();
    else this.#drop(key, end);
    return isWritten;
  }

  // Writes one end after another. Stops at the first failure, because the remaining ends would probably fail too.
  async #writeAll(): Promise<boolean> {
    for (const [key, end] of this.#ends) {
      if (end.written === undefined && !await this.#attempt(key, end)) return false;
    }
    return true;
  }

  #retry(): void {
    if (this.#isClosed) return;
    this.#stop ??= this.#clock.start(
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
    const now = this.#clock.now();
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
