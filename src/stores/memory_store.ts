/**
 * A store in the memory of the process.
 */
import { checkOptions, type KnownOptions, show } from "../core/known_options.ts";
import type { Store } from "../server/engine/store.ts";
import type { Clock } from "../core/timers.ts";
import { StoreClock } from "./store_clock.ts";
import { CustomStore } from "./custom_store.ts";
import { MemoryEngine } from "./memory_engine.ts";

/** Options of {@linkcode memoryStore}. */
export interface MemoryStoreOptions {
  /** Maximum total size of all values and entries, in bytes. Each character counts as two bytes. Defaults to 512 MiB. */
  readonly bytes?: number;
  /** Milliseconds without a renewal of its lease after which a server counts as ended. Defaults to 5000. */
  readonly leaseMs?: number;
  /** Clock of the store. Replace it in tests. Defaults to the clock of the first server that uses the store. */
  readonly clock?: Clock;
}

/**
 * The default of `bytes`, which is more than one server stores for its clients, so that clients reach their own shares
 * first: 128 MiB for extensions and 64 MiB for idempotency keys, which sealing makes a third larger, and 32 MiB for
 * sessions. The rest is for topics.
 */
const DEFAULT_BYTES = 512 * 1024 * 1024;

const OPTIONS: KnownOptions<keyof MemoryStoreOptions> = { names: { bytes: true, leaseMs: true, clock: true } };

/**
 * Creates a store in the memory of this process. Several servers in the process can share the store.
 *
 * ```ts
 * import { memoryStore } from "@x/mcp/stores";
 *
 * const store = memoryStore();
 * const version = await store.set("count", "1", { ttlMs: 60_000 });
 * const isSet = await store.set("count", "2", { ttlMs: 60_000, version }) !== undefined;
 * if (!isSet) throw new Error("somebody else has changed it");
 * ```
 *
 * @throws {TypeError} if `bytes` or `leaseMs` is not a number above 0.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions("create a store", options, OPTIONS);
  const { bytes = DEFAULT_BYTES, leaseMs, clock: given } = options;
  if (!(bytes > 0)) throw new TypeError(`Cannot create a store: bytes is ${show(bytes)}; use a number above 0`);
  const clock = new StoreClock(given);
  const engine = new MemoryEngine({ clock, bytes });
  return new CustomStore(() => engine, { leaseMs }, { isShared: false, isReplaceable: false, clock });
}
