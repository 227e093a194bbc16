/**
 * Marks ids in memory, or in a store that several instances share.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import { type Mark, MarkedIds, type Marking, toSetName } from "./marked_ids.ts";
import type { SetOptions } from "./store.ts";
import type { Clock } from "../../core/timers.ts";
import { CHANGED, update } from "./update.ts";

interface KnownSet {
  readonly ids: MarkedIds;
  /** Time at which all ids in the set have expired, in milliseconds of the monotonic clock. */
  until: number;
}

/** The number of sets is limited, see {@linkcode toSetName}, and each set has a maximum size. */
export class KnownMarks {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** The set that was least recently changed comes first. */
  // Bound: 256 names for each first letter, see `toSetName`.
  readonly #sets = new Map<string, KnownSet>();
  /** Cut-offs that were found in a store, by client, newest last. */
  readonly #cutoffs = new BoundedMap<string, number>({ full: "evict", max: MAX_CUTOFFS });

  /** `ttlMs` is the maximum lifetime of an id in milliseconds. */
  constructor(clock: Clock, ttlMs: number) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /**
   * Returns the creation time for a new id, in milliseconds since 1970. The time is after the client's cut-off even if
   * the clock was set back, so that a new id never counts as marked.
   */
  toTime(client: string): number {
    const cutoff = this.#sets.get(toSetName({ client }))?.ids.toCutoff(client) ?? 0;
    return Math.max(this.#clock.date(), cutoff + 1, (this.#cutoffs.get(client) ?? 0) + 1);
  }

  recordCutoff(client: string, cutoff: number): void {
    this.#cutoffs.set(client, cutoff);
  }

  /**
   * Marks an id in memory unless it counts as marked, and returns its state before. Also drops expired sets. Synchronous,
   * so that no other use of the id can be marked in between.
   */
  mark(mark: Mark): Marking {
    const name = toSetName(mark);
    const set = this.#sets.get(name) ?? { ids: new MarkedIds(), until: 0 };
    const marking = set.ids.mark(mark, { date: this.#clock.date(), ttlMs: this.#ttlMs });
    if (marking.found) return marking;
    set.until = this.#clock.now() + this.#ttlMs;
    this.#sets.delete(name);
    this.#sets.set(name, set);
    this.#sweep();
    return marking;
  }

  #sweep(): void {
    const now = this.#clock.now();
    for (const [name, { until }] of this.#sets) {
      if (until >= now) return;
      this.#sets.delete(name);
    }
  }
}

/** Maximum number of clients whose cut-off from a store is in memory. */
const MAX_CUTOFFS = 1000;

/** A store that seals values when it writes them, and opens values when it reads them. */
export interface MarkStore {
  get(key: string): Promise<{ readonly value: unknown; readonly version: string } | undefined>;
  set(key: string, value: unknown, options: SetOptions): Promise<string | undefined>;
}

export interface MarkPlace {
  readonly store: MarkStore;
  readonly key: string;
  /** Milliseconds after which all ids in the set have expired. */
  readonly ttlMs: number;
  /** The current wall-clock time in milliseconds since 1970. */
  readonly date: number;
  /**
   * Key of the time since which the store records marks. Set if the time is read before ids are created, see
   * {@linkcode readSince}. If the store has lost its sets, all ids that were created before this time count as marked.
   */
  readonly sinceKey?: string;
}

/**
 * Marks an id in a store, and resolves to the state of the id before the change. If several processes mark the same id
 * concurrently, only one process finds that the id was not marked. Rejects if the store fails.
 */
export async function markStored(mark: Mark, place: MarkPlace): Promise<Marking> {
  return await update("mark an id as used", async () => {
    const { ids, version, isRepaired } = await read(place);
    const known = ids.mark(mark, place);
    if (known.found && !isRepaired) return known;
    return await place.store.set(place.key, ids, { ttlMs: place.ttlMs, version }) ? known : CHANGED;
  });
}

/**
 * Resolves to the state of an id in a set that only earlier versions change. `since` is the time since which another set
 * is used: if this set cannot be read, all ids that were created before count as marked. Rejects if the store fails.
 */
export async function findStored(mark: Mark, { store, key, ttlMs }: MarkPlace, since: number): Promise<Marking> {
  const found = await store.get(key);
  return (found ? MarkedIds.read(found.value, ttlMs) ?? new MarkedIds(since) : new MarkedIds()).find(mark);
}

/**
 * Resolves to the time since which a store has recorded marks without a loss of its data, in milliseconds since 1970.
 * Records the current time if the store has none, because it is new, or has lost its data. Called before an id is
 * created, so that the id is newer than this time. Rejects if the store fails.
 */
export async function readSince({ store, date }: Pick<MarkPlace, "store" | "date">, key: string): Promise<number> {
  return await update("mark an id as used", async () => {
    const found = await store.get(key);
    if (typeof found?.value === "number") return found.value;
    return await store.set(key, date, { ttlMs: MAX_TTL_MS, version: found?.version ?? null }) ? date : CHANGED;
  });
}

interface Read {
  readonly ids: MarkedIds;
  readonly version: string | null;
  readonly isRepaired: boolean;
}

async function read({ store, key, ttlMs, date, sinceKey }: MarkPlace): Promise<Read> {
  const found = await store.get(key);
  if (!found) {
    // Either the set is new, or the store has lost it. A set whose ids have all expired counts as new.
    const since = sinceKey === undefined ? 0 : await readSince({ store, date }, sinceKey);
    return { ids: new MarkedIds(since), version: null, isRepaired: false };
  }
  const ids = MarkedIds.read(found.value, ttlMs);
  // If the set cannot be read, treat all existing ids as marked, because the set may have contained any id.
  return { ids: ids ?? new MarkedIds(date), version: found.version, isRepaired: !ids };
}

/** Maximum time to live of a value in a store, in milliseconds: one year. */
const MAX_TTL_MS = 31_536_000_000;
/** Additional milliseconds for which a mark is stored, because an instance's clock may be set back. */
const SKEW_MS = 3_600_000;

/** Returns the milliseconds for which the mark of an id is stored. The id expires after `ms` milliseconds. */
export function toMarkTtl(ms: number): number {
  return Math.min(Math.ceil(ms) + SKEW_MS, MAX_TTL_MS);
}
