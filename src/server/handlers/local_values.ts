/**
 * Values in the memory of this process, for a server without a store.
 */
import type { SharedValue, SharedValues } from "../call/shared_values.ts";
import type { Clock } from "../../core/timers.ts";

/** A value with the time at which it expires, in milliseconds of the monotonic clock. */
interface LocalValue {
  readonly text: string;
  readonly version: string;
  readonly until: number;
}

/** Values in memory. The lease is always held, because the values cannot outlive this process. */
export class LocalValues implements SharedValues {
  readonly lease: SharedValues["lease"] = {
    id: "",
    hold: () => Promise.resolve(() => {}),
    confirm: () => 0,
    isHeld: () => true,
  };
  readonly #clock: Clock;
  // Bound: `idempotency.bytes`.
  readonly #values = new Map<string, LocalValue>();
  #writes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hash(_kind: string, name: string): Promise<string> {
    return Promise.resolve(name);
  }

  get(key: string): Promise<SharedValue | undefined> {
    const found = this.#find(key);
    return Promise.resolve(found && { value: JSON.parse(found.text), version: found.version });
  }

  set(
    key: string,
    value: unknown,
    { ttlMs, version }: { readonly ttlMs: number; readonly version?: string | null },
  ): Promise<string | undefined> {
    if (version !== undefined && (this.#find(key)?.version ?? null) !== version) return Promise.resolve(undefined);
    const made = `${++this.#writes}`;
    this.#values.set(key, { text: JSON.stringify(value), version: made, until: this.#clock.now() + ttlMs });
    return Promise.resolve(made);
  }

  delete(key: string, version?: string): Promise<boolean> {
    const found = this.#find(key);
    if (found && version !== undefined && found.version !== version) return Promise.resolve(false);
    this.#values.delete(key);
    return Promise.resolve(true);
  }

  queue<T>(_key: string, run: () => Promise<T>): Promise<T> {
    return run();
  }

  attempt<T>(_operation: string, run: () => Promise<T>): Promise<T> {
    return run();
  }

  /** Removes expired values. Returns whether any values are left. */
  sweep(now: number): boolean {
    for (const [key, { until }] of this.#values) if (until <= now) this.#values.delete(key);
    return this.#values.size > 0;
  }

  #find(key: string): LocalValue | undefined {
    const found = this.#values.get(key);
    return found && found.until > this.#clock.now() ? found : undefined;
  }
}
