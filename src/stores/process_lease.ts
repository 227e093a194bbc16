/**
 * The lease of a process: a value in the store that expires soon after the process ends. The expired lease shows other
 * processes that this process has ended.
 *
 * @module
 */
import type { Clock } from "../core/capacity/timers.ts";
import type { Awaitable } from "../core/store.ts";
import { toBase64Url } from "../kit/base64.ts";
import { type Operations, User } from "./operations.ts";

/** Number of renewals per time to live of a lease. */
export const RENEWALS = 3;

/**
 * The part of the lease's time to live that must be left to start work that no other process may repeat. It covers the
 * time until the work starts, and clocks that run at different speeds.
 */
const MARGIN = 0.1;

/** Milliseconds between two attempts to renew a lease that could not be renewed. */
const REPEAT_MS = 50;

/** Number of attempts to write a lease that is certain to be held afterwards. */
const ATTEMPTS = 3;

const LEASE = new User("lease");

/** Options of {@linkcode ProcessLease}. */
export interface LeaseOptions {
  /** Time to live of the lease, in milliseconds. */
  readonly ms: number;
  /** The clock of the store. */
  readonly clock: Clock;
}

/** The lease of this process in a store. The lease is renewed only while a caller of `hold` needs it. */
export class ProcessLease {
  readonly ms: number;
  readonly #operations: Pick<Operations, "set">;
  readonly #clock: Clock;
  readonly #holders = new Set<object>();
  #id?: string;
  #heldUntil = 0;
  #term = 0;
  /** The write in progress. */
  #writing?: Promise<void>;
  /** Stops the timer for the next renewal. Set while the lease is renewed. */
  #stop?: () => void;
  #isClosed = false;

  constructor(operations: Pick<Operations, "set">, { ms, clock }: LeaseOptions) {
    this.#operations = operations;
    this.#clock = clock;
    this.ms = ms;
  }

  // Create the id when it is first needed, because Workers do not allow random values while a module loads.
  get id(): string {
    return this.#id ??= toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
  }

  get heldUntil(): number {
    return this.#heldUntil;
  }

  /** Whether the process renews the lease. */
  get isUsed(): boolean {
    return !!this.#stop;
  }

  async hold(): Promise<() => void> {
    const holder = {};
    this.#holders.add(holder);
    const release = () => void this.#holders.delete(holder);
    try {
      // Write the lease before the caller writes data that depends on the lease, because other processes that find the
      // data must also find the lease.
      await this.confirm();
    } catch (error) {
      release();
      throw error;
    }
    if (!this.#stop && !this.#isClosed) this.#renewLater(this.#toNextMs());
    return release;
  }

  confirm(): Awaitable<number> {
    if (this.#isCertain()) return this.#term;
    return this.#confirm();
  }

  async #confirm(): Promise<number> {
    for (let left = ATTEMPTS; left; left--) {
      await this.#write();
      // A write that has taken long leaves too little time.
      if (this.#isCertain()) return this.#term;
    }
    throw new Error(
      `Cannot hold the lease: in all ${ATTEMPTS} attempts, the write took longer than the lease; raise leaseMs`,
    );
  }

  /** Stops renewing the lease. Returns whether the lease was in use. */
  close(): boolean {
    const wasHeld = !!this.#stop;
    this.#isClosed = true;
    this.#holders.clear();
    this.#end();
    return wasHeld;
  }

  #isCertain(): boolean {
    return this.#clock.now() < this.#heldUntil - MARGIN * this.ms;
  }

  /** Returns the milliseconds until the lease is due for renewal. */
  #toNextMs(): number {
    const age = this.#clock.now() - (this.#heldUntil - this.ms);
    return Math.max(0, this.ms / RENEWALS - age);
  }

  #renewLater(ms: number): void {
    this.#stop = this.#clock.start(() => void this.#renew(), ms, { background: true });
  }

  // Check only at each renewal whether the lease is still needed, so that calls in quick succession share one lease.
  async #renew(): Promise<void> {
    if (!this.#holders.size) return this.#end();
    let nextMs = this.ms / RENEWALS;
    try {
      await this.#write();
      nextMs = this.#toNextMs();
    } catch {
      // Until the lease expires, repeat the renewal at once, because other processes have not noticed anything yet.
      if (this.#clock.now() < this.#heldUntil) nextMs = Math.min(nextMs, REPEAT_MS);
    }
    // Do not renew the lease if the store was closed during the write.
    if (this.#stop) this.#renewLater(nextMs);
  }

  #write(): Promise<void> {
    return this.#writing ??= this.#writeOnce().finally(() => this.#writing = undefined);
  }

  async #writeOnce(): Promise<void> {
    const began = this.#clock.now();
    await this.#operations.set(LEASE, this.id, "1", { ttlMs: this.ms });
    // The old value may have expired before this write, so that another process may have found no lease.
    if (this.#clock.now() >= this.#heldUntil) this.#term++;
    this.#heldUntil = began + this.ms;
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
