/**
 * The parts of the library that are loaded when they are first needed.
 *
 * @module
 */

/** A part of the library that is loaded when it is first needed. Nothing else has a state before it is loaded. */
export class Room<T> {
  readonly #load: () => Promise<T>;
  #loading?: Promise<T>;
  #loaded?: T;

  /** Creates a room that `load` loads. */
  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  /** What was loaded. `undefined` until then. */
  get loaded(): T | undefined {
    return this.#loaded;
  }

  /** Returns what was loaded, and loads it if necessary. If that fails, the next call tries again. */
  open(): Promise<T> {
    if (this.#loading) return this.#loading;
    const loading = this.#loading = this.#load();
    // Nothing runs between this and those who wait, so that nobody who finds it loaded overtakes them.
    loading.then((loaded) => this.#loaded = loaded, () => this.#loading = undefined);
    return loading;
  }
}
