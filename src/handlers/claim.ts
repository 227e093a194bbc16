/**
 * The record that reserves an idempotency key for one run of a handler, so that no other call runs it meanwhile.
 *
 * @module
 */
import type { SharedValues } from "../core/call/shared_values.ts";
import type { Ticker, Timeout } from "../core/capacity/timers.ts";
import { type ClaimRecord, type Fingerprint, readRecord, toClaimed } from "./claim_record.ts";
import type { KeptBytes } from "./kept_bytes.ts";

/** What a claim is made of. */
export interface ClaimParts {
  readonly ticker: Ticker;
  readonly values: SharedValues;
  /** Key of the record. */
  readonly name: string;
  readonly ttlMs: number;
  readonly input: Fingerprint;
  /** Counts what is kept. */
  readonly bytes: KeptBytes;
  /** Whether a call still waits for the run. */
  readonly isWanted: () => boolean;
  /** Called if no call has waited for the run for as long as the key is remembered. */
  readonly onAbandoned: () => void;
}

/** The outcome of a write: the record was written, or another run has taken over the claim with the record `other`. */
export interface Written {
  readonly other?: ClaimRecord;
}

/** The claim of one run. */
export class Claim {
  readonly #parts: ClaimParts;
  readonly #id = crypto.randomUUID();
  /** What the record should be. `undefined` if there should be none. */
  #record?: ClaimRecord;
  /** The version of the record. `undefined` if it is unknown whether it was written. */
  #version?: string;
  /** Releases the lease of this process, unless something else needs it. */
  #release?: () => void;
  /** Whether the record was written, or perhaps was: the store has not answered. */
  #state: "free" | "doubtful" | "taken" | "over" = "free";
  /** How many renewals an unwanted run may miss. */
  #left = RENEWALS;
  #timeout?: Timeout;

  /** Creates a claim that is not taken. */
  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  /** What each record of this run has. */
  get claimed(): ReturnType<typeof toClaimed> {
    return toClaimed(this.#parts.input, this.#id);
  }

  /**
   * Takes the key if its record has this version, or if there is none for `null`. Returns whether it did. `undefined` if
   * the store does not answer.
   */
  async take(version: string | null): Promise<boolean | undefined> {
    const { values, name, ttlMs } = this.#parts;
    const record = { ...this.claimed, by: values.lease.id };
    const written = await values.attempt("set", async () => {
      // Others must find the lease before they find the record.
      this.#release ??= await values.lease.hold();
      this.#state = "doubtful";
      return [await values.set(name, record, { ttlMs, version })] as const;
    });
    if (!written) return;
    const [made] = written;
    this.#state = made === undefined ? "free" : "taken";
    if (made === undefined) return false;
    this.#version = made;
    this.#record = record;
    this.#renewLater();
    return true;
  }

  /** Gives up a claim that was not taken. */
  drop(): void {
    // Otherwise the key might count as taken for as long as this process lives.
    if (this.#state === "doubtful") void this.end(undefined);
    else this.#finish();
  }

  /** Makes room for a text. Returns `false` if there is none. */
  grow(text: string): boolean {
    return this.#parts.bytes.grow(text);
  }

  /** Replaces the record while the handler goes on. If the store does not answer, the next renewal does it. */
  async replace(record: ClaimRecord): Promise<void> {
    this.#record = record;
    await this.#write();
  }

  /**
   * Ends the claim, and writes what is known from now on, or removes the record. If the store does not answer, the write
   * is repeated until it does, and `undefined` is returned.
   */
  async end(record: ClaimRecord | undefined): Promise<Written | undefined> {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#record = record;
    const { ticker, ttlMs } = this.#parts;
    if (this.#timeout) ticker.cancel(this.#timeout);
    const written = await this.#write();
    if (written) this.#finish();
    else this.#repeatUntil(ticker.clock.now() + ttlMs);
    return written;
  }

  // The handler may take longer than the key is remembered.
  #renewLater(): void {
    const { ticker, ttlMs } = this.#parts;
    this.#timeout = ticker.startTimeout(ttlMs / RENEWALS, () => this.#renew());
  }

  #renew(): void {
    const { isWanted, onAbandoned } = this.#parts;
    if (isWanted()) void this.#write();
    else if (!this.#left--) {
      this.#state = "over";
      this.#record = undefined;
      this.#finish();
      return onAbandoned();
    }
    this.#renewLater();
  }

  #repeatUntil(until: number): void {
    const { ticker } = this.#parts;
    ticker.startTimeout(REPEAT_MS, async () => {
      if (await this.#write() || ticker.clock.now() >= until) this.#finish();
      else this.#repeatUntil(until);
    });
  }

  #finish(): void {
    const { bytes, ticker, ttlMs } = this.#parts;
    if (this.#record) bytes.expireAt(ticker.clock.now() + ttlMs);
    else bytes.end();
    this.#release?.();
  }

  // One after another, because each needs the version of the one before. `undefined` if the store does not answer.
  #write(): Promise<Written | undefined> {
    const { values, name } = this.#parts;
    return values.queue(name, () => this.#writeFitting());
  }

  async #writeFitting(): Promise<Written | undefined> {
    const { values } = this.#parts;
    let isTooLarge = false;
    const write = async () => {
      try {
        return await this.#replaceStored();
      } catch (error) {
        isTooLarge = error instanceof RangeError;
        throw error;
      }
    };
    const written = await values.attempt("set", write);
    if (!isTooLarge) return written;
    // The handler has run, which must not be forgotten with its result.
    this.#record = { ...this.claimed, lost: true };
    return await values.attempt("set", write);
  }

  async #replaceStored(): Promise<Written> {
    const { values, name, ttlMs } = this.#parts;
    let version: string | null | undefined = this.#version;
    for (let left = ATTEMPTS; left; left--) {
      const record = this.#record;
      if (record && version !== undefined) {
        const made: string | undefined = await values.set(name, record, { ttlMs, version });
        if (made !== undefined) {
          this.#version = made;
          return {};
        }
      } else if (typeof version === "string" && await values.delete(name, version)) return {};
      // An earlier write may have succeeded without an answer.
      const found = await values.get(name);
      if (!found && !this.#record) return {};
      const other = found && readRecord(found.value);
      if (found && other?.claim !== this.#id) return { other };
      // The store may have lost the record.
      version = found?.version ?? null;
    }
    throw new Error(`Cannot write the record of an idempotency key: ${ATTEMPTS} other changes came first`);
  }
}

/** How often a record is renewed while it would last once. */
const RENEWALS = 3;

/** Milliseconds between attempts to write the end of a claim to a store that does not answer. */
const REPEAT_MS = 1000;

/** Number of attempts to replace a record. Nobody else changes it while its process lives. */
const ATTEMPTS = 5;
