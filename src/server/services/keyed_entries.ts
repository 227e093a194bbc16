/**
 * The values of services with a key: counts the users of each value, and disposes a value that no one has used for a
 * while, or whose room another key needs.
 */
import { quote, toBusy } from "../../core/protocol/errors.ts";
import type { Ticker } from "../../core/timers.ts";
import type { Account, Accounts } from "../capacity/account.ts";
import { type Definition, toDefinition } from "../call/container.ts";
import type { Service } from "../call/service.ts";
import { Entry, type EntryKey } from "./service_entry.ts";

export interface KeyedParts {
  readonly ticker: Ticker;
  readonly accounts: () => Accounts;
  /** Adds a new entry to `entries`. Throws if the container is closing. */
  readonly make: (entry: Entry, entries: Map<string, Entry>, key: string) => Entry;
  /** Disposes an entry that was removed. Never rejects. */
  readonly dispose: (entry: Entry) => Promise<void>;
}

export class KeyedEntries {
  readonly #parts: KeyedParts;
  /** For each service, the entries by key. The least recently used entry comes first. */
  // Bound: `services.values`.
  readonly #entries = new Map<Definition, Map<string, Entry>>();
  /**
   * Names of the pots of the services with values. Names are not unique, and the servers of paths make services anew.
   */
  // Bound: `services.values`.
  readonly #names = new Map<Definition, string>();
  /** The disposals of entries that were removed because they were idle. */
  // Bound: `max` of each service, apart from idle values.
  readonly #disposing = new Map<Promise<void>, Definition>();
  readonly #sweep = (now: number): number | undefined => this.#disposeIdle(now);

  constructor(parts: KeyedParts) {
    this.#parts = parts;
  }

  /** Creates the entry if necessary, and adds it to `holds`. */
  find(service: Service, { key, fullKey = "", account }: EntryKey, holds: Set<Entry> = new Set()): Entry {
    const definition = toDefinition(service);
    const entries = this.#entries.get(definition) ?? new Map<string, Entry>();
    let entry = entries.get(fullKey);
    if (!entry) {
      entry = new Entry(service, "key", { key, fullKey });
      this.#charge(entry, entries, account);
      this.#entries.set(definition, entries);
      hold(entry, holds);
      return this.#parts.make(entry, entries, fullKey);
    }
    hold(entry, holds);
    if (account) entry.holding?.use(this.#toOwn(account));
    // Move the entry to the end of the map, so that the least recently used entry is first.
    entries.delete(fullKey);
    entries.set(fullKey, entry);
    return entry;
  }

  release(holds: Set<Entry>): void {
    const entries = [...holds];
    holds.clear();
    for (const entry of entries) this.#release(entry);
  }

  clear(): readonly Entry[] {
    const all = [...this.#entries.values()].flatMap((entries) => [...entries.values()]);
    this.#entries.clear();
    this.#names.clear();
    for (const { holding } of all) holding?.end();
    return all;
  }

  get disposing(): readonly Promise<void>[] {
    return [...this.#disposing.keys()];
  }

  #release(entry: Entry): void {
    entry.users--;
    if (entry.users || entry.state !== "made") return;
    const { ticker } = this.#parts;
    entry.usedAt = ticker.clock.now();
    const { idleMs } = entry.definition;
    if (idleMs !== Infinity) ticker.schedule(this.#sweep, idleMs);
  }

  // A client with many keys evicts its own values first. Without a call, as in a unit test, the oldest value is evicted.
  #charge(entry: Entry, entries: Map<string, Entry>, account: Account | undefined): void {
    const { name, definition } = entry;
    const { max } = definition;
    const isClosing = () => [...this.#disposing.values()].filter((each) => each === definition).length >= max;
    const drop = (entry: Entry) => {
      // Otherwise a client with many keys could open values faster than they can be closed.
      if (entry.users || entry.state !== "made" || this.#disposing.size >= max && isClosing()) return false;
      return this.#evict(entry);
    };
    if (account) {
      const of = this.#toPotName(definition, name);
      const own = this.#toOwn(account);
      const pot = own.pot({ name: "services.values", of, total: max, small: 1, isCache: true });
      entry.holding = pot.keep(own, 1, () => drop(entry));
      // Room for the value may have come from the last other value of the service.
      if (entry.holding) return void this.#names.set(definition, of);
    } else if (entries.size < max || [...entries.values()].some(drop)) return;
    throw toBusy(
      `open service ${
        quote(name)
      }: all values that the client may use are in use or being closed (the service's max option is ${max})`,
    );
  }

  // Uses the names of earlier services again, because pots are never removed.
  #toPotName(definition: Definition, name: string): string {
    const known = this.#names.get(definition);
    if (known !== undefined) return known;
    const used = new Set(this.#names.values());
    let number = 0;
    const toName = () => `${name} ${definition.max} ${number}`;
    while (used.has(toName())) number++;
    return toName();
  }

  #forgetEmpty(definition: Definition): void {
    if (this.#entries.get(definition)?.size) return;
    this.#entries.delete(definition);
    this.#names.delete(definition);
  }

  // Mounted servers have accounts of their own, but share the values of a service.
  #toOwn({ key, tenant }: Account): Account {
    return this.#parts.accounts().find(key, tenant);
  }

  #evict(entry: Entry): true {
    entry.holding?.end();
    this.#entries.get(entry.definition)?.delete(entry.fullKey ?? "");
    this.#forgetEmpty(entry.definition);
    const disposing = this.#parts.dispose(entry).then(() => void this.#disposing.delete(disposing));
    this.#disposing.set(disposing, entry.definition);
    return true;
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
