/** A part of the library that is loaded when it is first needed. */
export class LazyModule<T> {
  readonly #load: () => Promise<T>;
  #loading?: Promise<T>;
  #loaded?: T;

  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  get loaded(): T | undefined {
    return this.#loaded;
  }

  /** Returns the loaded part, and loads it if necessary. If loading fails, the next call loads the part again. */
  load(): Promise<T> {
    if (this.#loading) return this.#loading;
    const loading = this.#loading = this.#load();
    // Register this handler first, so that `loaded` is set before any caller that awaits the promise continues.
    // Otherwise a later caller that reads `loaded` could overtake the waiting callers.
    loading.then((loaded) => this.#loaded = loaded, () => this.#loading = undefined);
    return loading;
  }
}
