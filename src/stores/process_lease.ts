/**
 * The lease of a process: a value in the store that expires soon after the process ends. The expired lease shows other
 * processes that this process has ended.
 */
import type { Clock } from "../core/timers.ts";
import type { StoredValue, StoreView } from "../server/engine/store.ts";
import { toBase64Url } from "../core/kit/base64.ts";
import { BoundedMap } from "../core/kit/bounded_map.ts";

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

/**
 * The time without a lease after which its process has ended, as a part of the lease's time to live. It is longer than
 * the time between two renewals, because the lease of a living process may be missing until its next renewal: after an
 * outage of the store, or after a clock by which the store expires values was set forward.
 */
const ABSENT = 0.4;

/**
 * The time without a renewal after which a process has ended, as a multiple of the lease's time to live. The store may
 * still contain the lease, if a clock by which the store expires values was set back.
 */
const STALE = 2;

/** The value of the lease of a process that has closed its store. */
export const RELEASED = "";

/** Maximum number of other processes whose leases are remembered. */
const MAX_SEEN = 1000;

export interface LeaseOptions {
  /** Time to live of the lease, in milliseconds. */
  readonly ms: number;
  readonly clock: Clock;
}

/** The lease of another process, as the last checks have found it. */
interface SeenLease {
  /** `undefined` if the store did not contain the lease. */
  readonly version: string | undefined;
  /** Monotonic time of the first of the last checks with this version. */
  readonly since: number;
  readonly ms: number;
}

/**
 * The lease of this process in a store. The lease is renewed only while a caller of `hold` needs it.
 *
 * The process relies on the lease only if both its clocks allow it. The monotonic clock may stand still while the machine
 * is suspended. The wall clock may be set forward, and some stores expire values by the wall clock.
 */
export class ProcessLease {
  readonly ms: number;
  readonly #operations: Pick<StoreView, "set">;
  readonly #clock: Clock;
  // Bound: `calls.running` and `calls.detached`.
  readonly #holders = new Set<object>();
  readonly #seen = new BoundedMap<string, SeenLease>({ max: MAX_SEEN, full: "evict" });
  #id?: string;
  /** The times at which the last successful write began. */
  #renewed?: { readonly now: number; readonly date: number };
  /** The version of the last successful write. */
  #version?: string;
  #term = 0;
  #writing?: Promise<void>;
  /** Stops the timer for the next renewal. Set while the lease is renewed. */
  #stop?: () => void;
  #isClosed = false;

  constructor(operations: Pick<StoreView, "set">, { ms, clock }: LeaseOptions) {
    this.#operations = operations;
    this.#clock = clock;
    this.ms = ms;
  }

  // Create the id when it is first needed, because Workers do not allow random values while a module loads.
  get id(): string {
    return this.#id ??= toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
  }

  get heldUntil(): number {
    if (!this.#renewed) return 0;
    const until = this.#renewed.now + this.ms;
    return this.#toAge() < this.ms ? until : Math.min(until, this.#clock.now());
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
      // Write the lease first, because other processes that find data of the caller must also find the lease.
      await this.confirm();
    } catch (error) {
      release();
      throw error;
    }
    if (!this.#stop && !this.#isClosed) this.#renewLater(this.#toNextMs());
    return release;
  }

  async confirm(): Promise<number> {
    // A write that has taken long leaves too little time.
    for (let left = ATTEMPTS; !this.#isCertain(); left--) {
      if (!left) {
        throw new Error(
          `Cannot hold the lease: in all ${ATTEMPTS} attempts, the write took longer than the lease; raise leaseMs`,
        );
      }
      await this.#write();
    }
    return this.#term;
  }

  /** Whether a process may still hold its lease, if `found` is what the store contains under its id now. */
  isHeld(id: string, found: StoredValue | undefined): boolean {
    const now = this.#clock.now();
    const known = this.#seen.get(id);
    const version = found?.version;
    const since = known && known.version === version ? known.since : now;
    // The value is the time to live that the other process has chosen.
    const ms = found ? Number(found.value) || this.ms : known?.ms ?? this.ms;
    this.#seen.set(id, { version, since, ms });
    return found?.value !== RELEASED && now - since < (found ? STALE : ABSENT) * ms;
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
    return this.#toAge() < this.ms * (1 - MARGIN);
  }

  /**
   * Returns the milliseconds since the last renewal, by the clock that shows more of them. A wall clock that was set back
   * does not show the age of the lease, so the distance counts.
   */
  #toAge(): number {
    if (!this.#renewed) return Infinity;
    const { now, date } = this.#renewed;
    return Math.max(this.#clock.now() - now, Math.abs(this.#clock.date() - date));
  }

  #toNextMs(): number {
    return Math.max(0, this.ms / RENEWALS - this.#toAge());
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
      if (this.#toAge() < this.ms) nextMs = Math.min(nextMs, REPEAT_MS);
    }
    // Do not renew the lease if the store was closed during the write.
    if (this.#stop) this.#renewLater(nextMs);
  }

  #write(): Promise<void> {
    return this.#writing ??= this.#writeOnce().finally(() => this.#writing = undefined);
  }

  async #writeOnce(): Promise<void> {
    const began = { now: this.#clock.now(), date: this.#clock.date() };
    const write = (version?: string) => this.#operations.set(this.id, String(this.ms), { ttlMs: this.ms, version });
    let version = this.#version !== undefined && await write(this.#version);
    // The store's own clock may have been set forward, so that the store has no lease any more. After a write that may
    // have succeeded although it failed here, the version is another one too.
    const isLost = !version;
    version ||= await write();
    // Another process may have found no lease before this write.
    if (isLost || this.#toAge() >= this.ms) this.#term++;
    this.#version = version;
    this.#renewed = began;
  }

  #end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }
}
