/**
 * The lease of a process: a value in the store that expires soon after the process ends. The expired lease shows other
 * processes that this process has ended.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";
import { toBase64Url } from "../kit/base64.ts";
import { type Operations, toOwn } from "./operations.ts";

/** Number of renewals per time to live of a lease. */
export const RENEWALS = 3;

const LEASE = toOwn("lease");

/** The lease of this process in a store. The lease is renewed only while a caller of `hold` needs it. */
export class ProcessLease {
  readonly ms: number;
  readonly #operations: Pick<Operations, "set">;
  readonly #holders = new Set<object>();
  #id?: string;
  /** The first write of the lease. Set only while the write is in progress. */
  #starting?: Promise<void>;
  #stop?: () => void;

  constructor(operations: Pick<Operations, "set">, ms: number) {
    this.#operations = operations;
    this.ms = ms;
  }

  // Create the id when it is first needed, because Workers do not allow random values while a module loads.
  get id(): string {
    return this.#id ??= toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
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
      if (!this.#stop) await (this.#starting ??= this.#start());
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  /** Stops renewing the lease. Returns whether the lease was in use. */
  close(): boolean {
    const wasHeld = !!this.#stop;
    this.#holders.clear();
    this.#end();
    return wasHeld;
  }

  async #start(): Promise<void> {
    try {
      await this.#write();
      this.#renewLater();
    } finally {
      this.#starting = undefined;
    }
  }

  #renewLater(): void {
    this.#stop = systemClock.start(() => this.#renew(), this.ms / RENEWALS, { background: true });
  }

  // Check only at each renewal whether the lease is still needed, so that calls in quick succession share one lease.
  async #renew(): Promise<void> {
    if (!this.#holders.size) return this.#end();
    try {
      await this.#write();
    } catch {
      // The next renewal writes the lease again. If the renewal comes too late, other processes assume that this
      // process has ended.
    }
    // Do not renew the lease if the store was closed during the write.
    if (this.#stop) this.#renewLater();
  }

  async #write(): Promise<void> {
    await this.#operations.set(LEASE, this.id, "1", { ttlMs: this.ms });
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
