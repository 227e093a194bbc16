/**
 * A map with a maximum size, because the memory that clients can use must be limited.
 */

export interface BoundedMapOptions {
  /**
   * The way in which a full map treats a new key. `evict` drops the oldest entry, for caches and other state that can be
   * lost. `refuse` rejects the new key, and `set` returns `false`, for rights, places and other state that later entries
   * must not displace.
   */
  readonly full: "evict" | "refuse";
  readonly max: number;
}

/** The class `Map`, with a type that lets a subclass return a boolean from `set`. */
const Entries: new <K, V>() => Omit<Map<K, V>, "set"> & { set(key: K, value: V): unknown } = Map;

/**
 * A `Map` with a maximum number of entries. For a set of keys, use `void` as the type of the values.
 *
 * A map that evicts drops the entry whose last `set` is the oldest. To evict the least recently used entry instead, call
 * `set` again when an entry is used.
 */
export class BoundedMap<K, V> extends Entries<K, V> {
  readonly #options: BoundedMapOptions;

  constructor(options: BoundedMapOptions) {
    super();
    this.#options = options;
  }

  /**
   * Sets the value of a key. Returns `false` if the map does not keep the entry, because the map is full and refuses new
   * keys, or because its maximum is 0. If the map evicts, the entry becomes the newest entry; otherwise a known key keeps
   * its place.
   */
  override set(key: K, value: V): boolean {
    const { full, max } = this.#options;
    if (full === "evict") this.delete(key);
    else if (this.size >= max && !this.has(key)) return false;
    super.set(key, value);
    for (const oldest of this.keys()) {
      if (this.size <= max) return true;
      this.delete(oldest);
    }
    return false;
  }
}
