/**
 * Loads a part of the library when it is first needed.
 *
 * @module
 */

/** A part of the library that is loaded when it is first needed. Only this class has the state "not loaded yet". */
export class Room<T> {
  readonly #load: () => Promise<T>;
  #loading?: Promise<T>;
  #loaded?: T;

  /** Creates a room that `load` loads. */
  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  /** The loaded part. `undefined` until it is loaded. */
  get loaded(): T | undefined {
    return this.#loaded;
  }

  /** Returns the loaded part, and loads it if necessary. If loading fails, the next call tries again. */
  open(): Promise<T> {
    if (this.#loading) return this.#loading;
    const loading = this.#loading = this.#load();
    // This handler runs before the handlers of callers that await the promise. Therefore, a caller that finds `loaded`
    // set cannot run before callers that are already waiting.
    loading.then((loaded) => this.#loaded = loaded, () => this.#loading = undefined);
    return loading;
  }
}
