/**
 * The record that reserves an idempotency key for one run of a handler.
 */
import type { SharedValues } from "../call/shared_values.ts";
import type { Charge } from "../capacity/charges.ts";
import type { Ticker, Timeout } from "../../core/timers.ts";
import { CHANGED, update } from "../engine/update.ts";
import { type ClaimRecord, type Fingerprint, readRecord, toClaimed } from "./claim_record.ts";

export interface ClaimParts {
  readonly ticker: Ticker;
  readonly values: SharedValues;
  /** Name of the record in the store. */
  readonly name: string;
  readonly ttlMs: number;
  readonly input: Fingerprint;
  /** The bytes that this process keeps for the key. */
  readonly charge: Charge;
}

/** If `other` is set, nothing was written, because another run of the handler has replaced the record with `other`. */
export interface Written {
  readonly other?: ClaimRecord;
}

export class Claim {
  readonly #parts: ClaimParts;
  readonly #id = crypto.randomUUID();
  /** The record to write, or `undefined` to remove the stored record. */
  #record?: ClaimRecord;
  /** Version of the stored record. `undefined` if it is unknown whether the record was written. */
  #version?: string;
  /** Releases the lease of this process. The lease ends only after every holder has released it. */
  #release?: () => void;
  /** The term of the lease in which the record was last written. */
  #term?: number;
  /**
   * Whether the key is reserved. `doubtful` means that the store did not respond, so it may contain the record. `over`
   * means that the claim has ended.
   */
  #state: "free" | "doubtful" | "taken" | "over" = "free";
  #timeout?: Timeout;

  /** Only `reserve` reserves the key. */
  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  get claimed(): ReturnType<typeof toClaimed> {
    return toClaimed(this.#parts.input, this.#id);
  }

  /**
   * Reserves the key if the stored record has this version. `null` reserves the key only if no record is stored.
   * Returns whether the key was reserved, or `undefined` if the store does not respond.
   */
  async reserve(version: string | null): Promise<boolean | undefined> {
    const { values, name, ttlMs } = this.#parts;
    const record = { ...this.claimed, by: values.lease.id };
    const before = this.#state;
    const take = async () => {
      // Hold the lease before the record is written. Otherwise another instance could read the record, find no lease,
      // and assume that this process has ended.
      this.#release ??= await values.lease.hold();
      this.#term = await values.lease.confirm();
      this.#state = "doubtful";
      return [await values.set(name, record, { ttlMs, version })] as const;
    };
    const written = await values.attempt("set", take).catch((error) => {
      // The client has used up its share of the store, so nothing was written.
      this.#state = before;
      throw error;
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

  /**
   * Confirms that no other instance can have taken over the key. Writes the record again if other instances may have
   * found the lease expired, so that a takeover that has begun fails. Returns `false` if another instance has taken over
   * the key, or `undefined` if the store does not respond.
   */
  async confirm(): Promise<boolean | undefined> {
    const { values } = this.#parts;
    while (true) {
      const term = await values.attempt("set", async () => await values.lease.confirm());
      if (term === undefined) return;
      if (term === this.#term) return true;
      const written = await this.#write();
      if (!written) return;
      if (written.other) return false;
      this.#term = term;
    }
  }

  /** Abandons the claim without running the handler. */
  drop(): void {
    // Remove the record, because the store may contain it. Otherwise the key would count as reserved for as long as
    // this process lives.
    if (this.#state === "doubtful") void this.end(undefined);
    else this.#finish();
  }

  /** Reserves bytes for the text of a result. Returns `false` if the result would exceed a limit for kept bytes. */
  grow(text: string): boolean {
    return this.#parts.charge.grow(2 * text.length);
  }

  /** Replaces the record while the handler runs. If the store does not respond, the next renewal writes the record. */
  async replace(record: ClaimRecord): Promise<void> {
    this.#record = record;
    await this.#write();
  }

  /**
   * Ends the claim: replaces the stored record, or removes the stored record if `record` is `undefined`. If the store
   * does not respond, returns `undefined` and repeats the write for up to `ttlMs`.
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

  // Renew the record while the handler runs, also if no call waits for the handler any more. Otherwise the store would
  // remove the record if the handler takes longer than `ttlMs`, and the next call would run the handler at the same time.
  #renewLater(): void {
    const { ticker, ttlMs } = this.#parts;
    this.#timeout = ticker.startTimeout(ttlMs / RENEWALS, () => {
      void this.#write();
      this.#renewLater();
    });
  }

  #repeatUntil(until: number): void {
    const { ticker } = this.#parts;
    ticker.startTimeout(REPEAT_MS, async () => {
      if (await this.#write() || ticker.clock.now() >= until) this.#finish();
      else this.#repeatUntil(until);
    });
  }

  #finish(): void {
    const { charge, ttlMs } = this.#parts;
    if (this.#record) charge.expireIn(ttlMs);
    else charge.end();
    this.#release?.();
  }

  // Writes run one after the other, because each write needs the version that the previous write returned. Returns
  // `undefined` if the store does not respond.
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
    // The result is too large for the store. Record that the handler has run, so that a repeated call does not run the
    // handler again.
    this.#record = { ...this.claimed, lost: true };
    return await values.attempt("set", write);
  }

  async #replaceStored(): Promise<Written> {
    const { values, name, ttlMs } = this.#parts;
    let version: string | null | undefined = this.#version;
    return await update("write the record of an idempotency key", async () => {
      const record = this.#record;
      if (record && version !== undefined) {
        const made: string | undefined = await values.set(name, record, { ttlMs, version });
        if (made !== undefined) {
          this.#version = made;
          return {};
        }
      } else if (typeof version === "string" && await values.delete(name, version)) return {};
      // An earlier write may have succeeded even if the store did not respond to the write.
      const found = await values.get(name);
      if (!found && !this.#record) return {};
      const other = found && readRecord(found.value);
      if (found && other?.claim !== this.#id) return { other };
      // If the store has lost the record, create the record again: `null` writes only if no record is stored.
      version = found?.version ?? null;
      return CHANGED;
    });
  }
}

/** The number of renewals within `ttlMs`. */
const RENEWALS = 3;

/** Milliseconds between attempts to write the end of a claim to a store that does not respond. */
const REPEAT_MS = 1000;
