/**
 * The lease of a process: a value in the store that expires soon after the process has ended, so that other processes
 * notice its end.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";
import type { Awaitable, Lease, Store } from "../core/store.ts";
import { toBase64Url } from "../kit/base64.ts";

/** Number of renewals within the duration of a lease. */
export const RENEWALS = 3;

/** The lease of this process in one store. */
export class ProcessLease implements Lease {
  readonly ms: number;
  readonly #store: Pick<Store, "get" | "set">;
  readonly #holders = new Set<object>();
  #id?: string;
  /** The first write of the lease, while it is in progress. */
  #starting?: Promise<void>;
  #stop?: () => void;

  constructor(store: Pick<Store, "get" | "set">, ms: number) {
    this.#store = store;
    this.ms = ms;
  }

  // Created on first use, because Workers forbid random values while a module loads.
  get id(): string {
    return this.#id ??= toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
  }

  async hold(): Promise<() => void> {
    const holder = {};
    this.#holders.add(holder);
    const release = () => void this.#holders.delete(holder);
    try {
      // Write the lease before the caller writes data that depends on it, because other processes must find the lease
      // when they find the data.
      if (!this.#stop) await (this.#starting ??= this.#start());
    } catch (error) {
      release();
      throw error;
    }
    return release;
  }

  isHeld(id: string): Awaitable<boolean> {
    const found = this.#store.get(id);
    return found instanceof Promise ? found.then((found) => !!found) : !!found;
  }

  /** Stops renewing the lease. Returns whether it was held. */
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

  // Give up the lease only when it is due for renewal, so that calls in quick succession share one lease.
  async #renew(): Promise<void> {
    if (!this.#holders.size) return this.#end();
    try {
      await this.#write();
    } catch {
      // The next renewal writes the lease again. If the renewal comes too late, other processes assume that this
      // process has ended.
    }
    // Do not renew if the store was closed in the meantime.
    if (this.#stop) this.#renewLater();
  }

  async #write(): Promise<void> {
    await this.#store.set(this.id, "1", { ttlMs: this.ms });
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
