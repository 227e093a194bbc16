/**
 * The values of services with a key: counts the users of each value, and disposes a value that no one has used for a
 * while, or whose room another key needs.
 */
import { quote, toBusy } from "../../core/protocol/errors.ts";
import type { Ticker } from "../../core/timers.ts";
import { type Definition, toDefinition } from "../call/container.ts";
import type { Service } from "../call/service.ts";
import { Entry, type EntryKey } from "./service_entry.ts";

/** The parts of a container that its values with a key use. */
export interface KeyedParts {
  readonly ticker: Ticker;
  /** Adds a new entry to `entries`. Throws if the container is closing. */
  readonly make: (entry: Entry, entries: Map<string, Entry>, key: string) => Entry;
  /** Disposes an entry that was removed. Never rejects. */
  readonly dispose: (entry: Entry) => Promise<void>;
}

/** The entries of services with a key. */
export class KeyedEntries {
  readonly #parts: KeyedParts;
  /** For each service, the entries by key. The least recently used entry comes first. */
  readonly #entries = new Map<Definition, Map<string, Entry>>();
  /** The disposals of entries that were removed because they were idle. */
  readonly #disposing = new Set<Promise<void>>();
  readonly #sweep = (now: number): number | undefined => this.#disposeIdle(now);

  constructor(parts: KeyedParts) {
    this.#parts = parts;
  }

  /** Returns the entry of a service for a key, and adds it to `holds`. Creates the entry if necessary. */
  find(service: Service, { key, fullKey = "" }: EntryKey, holds: Set<Entry> = new Set()): Entry {
    const definition = toDefinition(service);
    let entries = this.#entries.get(definition);
    if (!entries) this.#entries.set(definition, entries = new Map());
    let entry = entries.get(fullKey);
    if (!entry) {
      if (entries.size >= definition.max) this.#makeRoom(service.name, entries);
      entry = new Entry(service, "key", { key, fullKey });
      hold(entry, holds);
      return this.#parts.make(entry, entries, fullKey);
    }
    hold(entry, holds);
    // Move the entry to the end of the map, so that the least recently used entry is first.
    entries.delete(fullKey);
    entries.set(fullKey, entry);
    return entry;
  }

  /** Ends the use of entries. */
  release(holds: Set<Entry>): void {
    const entries = [...holds];
    holds.clear();
    for (const entry of entries) this.#release(entry);
  }

  /** Removes all entries. Returns them. */
  clear(): readonly Entry[] {
    const all = [...this.#entries.values()].flatMap((entries) => [...entries.values()]);
    this.#entries.clear();
    return all;
  }

  /** Returns the disposals in progress. */
  get disposing(): readonly Promise<void>[] {
    return [...this.#disposing];
  }

  #release(entry: Entry): void {
    entry.users--;
    if (entry.users || entry.state !== "made") return;
    const { ticker } = this.#parts;
    entry.usedAt = ticker.clock.now();
    const { idleMs } = entry.definition;
    if (idleMs !== Infinity) ticker.schedule(this.#sweep, idleMs);
  }

  #makeRoom(name: string, entries: Map<string, Entry>): void {
    for (const entry of entries.values()) {
      if (!entry.users && entry.state === "made") return this.#evict(entry);
    }
    throw toBusy(`open service ${quote(name)}: all ${entries.size} values are in use (the service's max option)`);
  }

  #evict(entry: Entry): void {
    this.#entries.get(entry.definition)?.delete(entry.fullKey ?? "");
    const disposing = this.#parts.dispose(entry).then(() => void this.#disposing.delete(disposing));
    this.#disposing.add(disposing);
  }

  #disposeIdle(now: number): number | undefined {
    let next = Infinity;
    for (const entries of this.#entries.values()) {
      for (const entry of entries.values()) {
        if (entry.users || entry.state !== "made") continue;
        const leftMs = entry.usedAt + entry.definition.idleMs - now;
        if (leftMs > 0) next = Math.min(next, leftMs);
        else this.#evict(entry);
      }
    }
    return next === Infinity ? undefined : next;
  }
}

function hold(entry: Entry, holds: Set<Entry>): void {
  if (holds.has(entry)) return;
  holds.add(entry);
  entry.users++;
}
