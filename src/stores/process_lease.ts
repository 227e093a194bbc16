/**
 * The lease of a process: a value in the store that expires soon after the process has ended, so that others notice.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";
import type { Awaitable, Lease, Store } from "../core/store.ts";
import { toBase64Url } from "../kit/base64.ts";

/** How often a lease is renewed while it would last once. */
export const RENEWALS = 3;

/** The lease of this process in one store. */
export class ProcessLease implements Lease {
  readonly ms: number;
  readonly #store: Pick<Store, "get" | "set">;
  readonly #holders = new Set<object>();
  #id?: string;
  /** The write in progress of a lease that nobody held before. */
  #starting?: Promise<void>;
  #stop?: () => void;

  constructor(store: Pick<Store, "get" | "set">, ms: number) {
    this.#store = store;
    this.ms = ms;
  }

  // Made on first use, because Workers forbid randomness while a module loads.
  get id(): string {
    return this.#id ??= toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
  }

  async hold(): Promise<() => void> {
    const holder = {};
    this.#holders.add(holder);
    const release = () => void this.#holders.delete(holder);
    try {
      // Others must find it before they learn of what depends on it.
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

  /** Renews the lease no more. Returns whether it was held. */
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

  // Calls that follow each other soon share a lease, so it is only given up when it would be renewed.
  async #renew(): Promise<void> {
    if (!this.#holders.size) return this.#end();
    try {
      await this.#write();
    } catch {
      // Written again at the next time. Until then others may take this process for dead.
    }
    // The store was closed in the meantime.
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
