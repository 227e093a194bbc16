/**
 * A store engine that keeps values and logs in the memory of the process.
 */
import type {
  AppendOptions,
  DeleteOptions,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  StoredEntry,
  StoredValue,
} from "../server/engine/store.ts";
import type { Clock } from "../core/timers.ts";
import { toBytes } from "../core/protocol/weight.ts";

interface Value extends StoredValue {
  readonly due: number;
}

interface Log {
  due: number;
  first: number;
  readonly epoch: string;
  readonly values: string[];
  readonly tokens: string[];
}

/** Values and logs in memory. All methods are synchronous. */
// Bound: the option `bytes`.
export class MemoryEngine {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #values = new Map<string, Value>();
  readonly #logs = new Map<string, Log>();
  readonly #listeners = new Set<(log: string) => void>();
  #bytes = 0;
  #writes = 0;

  /** `bytes` is the maximum total size of keys, values and entries. */
  constructor({ clock, bytes }: { readonly clock: Clock; readonly bytes: number }) {
    this.#clock = clock;
    this.#maxBytes = bytes;
  }

  get(key: string): StoredValue | undefined {
    const found = this.#findValue(key);
    return found && { value: found.value, version: found.version };
  }

  set(key: string, value: string, { ttlMs, version, token }: SetOptions & { readonly token: string }): boolean {
    const now = this.#clock.now();
    const found = this.#findValue(key, now);
    if (found?.version === token) return true;
    if (version !== undefined && (found?.version ?? null) !== version) return false;
    const before = found ? toHeld(key, found.value) : 0;
    this.#charge("set", toHeld(key, value) - before, now);
    this.#values.set(key, { value, version: token, due: now + ttlMs });
    return true;
  }

  delete(key: string, { version }: DeleteOptions): boolean {
    const found = this.#findValue(key);
    if (!found) return true;
    if (version !== undefined && found.version !== version) return false;
    this.#drop(key, found);
    return true;
  }

  list(prefix: string, { after = "", limit }: ListOptions): readonly StoredEntry[] {
    const now = this.#clock.now();
    const found: StoredEntry[] = [];
    for (const [key, { value, version, due }] of this.#values) {
      if (due > now && key > after && key.startsWith(prefix)) found.push({ key, value, version });
    }
    return found.sort((a, b) => a.key < b.key ? -1 : 1).slice(0, limit);
  }

  append(log: string, value: string, { ttlMs, max, token }: AppendOptions & { readonly token: string }): number {
    const now = this.#clock.now();
    const found = this.#findLog(log, now);
    const index = found?.tokens.lastIndexOf(token) ?? -1;
    if (found && index >= 0) return found.first + index;
    this.#charge("append", toHeld(log, value), now);
    const kept = found ?? { due: 0, first: 1, epoch: crypto.randomUUID(), values: [], tokens: [] };
    this.#logs.set(log, kept);
    kept.due = now + ttlMs;
    kept.values.push(value);
    kept.tokens.push(token);
    this.#shorten(log, kept, kept.values.length - max);
    for (const listener of [...this.#listeners]) listener(log);
    return kept.first + kept.values.length - 1;
  }

  read(log: string, { after = 0, limit }: ReadOptions): LogPage {
    const found = this.#findLog(log);
    if (!found) return { entries: [], first: 1, last: 0, epoch: "" };
    const { first, values, epoch } = found;
    const from = Math.max(after + 1, first);
    const page = values.slice(from - first, from - first + limit);
    const entries = page.map((value, index) => ({ id: from + index, value }));
    return { entries, first, last: first + values.length - 1, epoch };
  }

  heads(logs: readonly string[]): readonly LogHead[] {
    return logs.map((log) => this.read(log, { limit: 0 }));
  }

  trim(log: string, before: number): void {
    const found = this.#findLog(log);
    if (found) this.#shorten(log, found, before - found.first);
  }

  listen(onRing: (log: string) => void): () => void {
    const listener = (log: string) => onRing(log);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #findValue(key: string, now: number = this.#clock.now()): Value | undefined {
    const found = this.#values.get(key);
    if (!found || found.due > now) return found;
    this.#drop(key, found);
  }

  #findLog(log: string, now: number = this.#clock.now()): Log | undefined {
    const found = this.#logs.get(log);
    if (!found || found.due > now) return found;
    this.#dropLog(log, found);
  }

  #shorten(log: string, found: Log, count: number): void {
    if (count <= 0) return;
    found.tokens.splice(0, count);
    for (const value of found.values.splice(0, count)) {
      this.#bytes -= toHeld(log, value);
      found.first++;
    }
  }

  #drop(key: string, { value }: Value): void {
    this.#values.delete(key);
    this.#bytes -= toHeld(key, value);
  }

  #dropLog(log: string, found: Log): void {
    this.#shorten(log, found, found.values.length);
    this.#logs.delete(log);
  }

  // Removes all expired values after every `SWEEP_WRITES` writes. Reads also remove the expired values that they find,
  // so no timer is needed. `now` must be the same for the whole operation. Otherwise the old value could expire during
  // the operation, and its bytes would be subtracted twice.
  #charge(operation: string, bytes: number, now: number): void {
    if (++this.#writes % SWEEP_WRITES === 0 || this.#bytes + bytes > this.#maxBytes) this.#sweep(now);
    if (this.#bytes + bytes > this.#maxBytes) {
      const state = `the store would contain more than ${this.#maxBytes} bytes (bytes); raise the limit`;
      // The mark distinguishes a full store from a value that is too large.
      throw Object.assign(new RangeError(`Cannot ${operation}: ${state}`), { isFull: true });
    }
    this.#bytes += bytes;
  }

  #sweep(now: number): void {
    for (const [key, value] of this.#values) if (value.due <= now) this.#drop(key, value);
    for (const [name, log] of this.#logs) if (log.due <= now) this.#dropLog(name, log);
  }
}

/** Number of writes between two removals of all expired values. */
const SWEEP_WRITES = 1000;

/** Returns the memory that a value or an entry takes, in bytes. */
function toHeld(key: string, value: string): number {
  return 200 + toBytes(key) + toBytes(value);
}
