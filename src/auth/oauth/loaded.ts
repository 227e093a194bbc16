/**
 * Loads values from the network that many requests share.
 *
 * @module
 */

/** Minimum time between two attempts to load a value, in milliseconds. */
const COOL_DOWN_MS = 30_000;
/** Time after which a value is loaded again, in milliseconds. */
const FRESH_MS = 600_000;
/** Time for which a value is used if loading it again fails, in milliseconds. */
const STALE_MS = 3_600_000;

/** The error for a value that could not be loaded. */
export class Unavailable extends Error {
  #isTaken = false;

  /**
   * Returns this error on the first call if it has a cause, and `undefined` otherwise, so that only one of the waiting
   * requests reports it.
   */
  takeCause(): unknown {
    if (this.#isTaken || this.cause === undefined) return;
    this.#isTaken = true;
    return this;
  }
}

/**
 * A value that is loaded when it is first needed. All requests share one load. At most one load starts within 30
 * seconds, even if the load fails, because callers with unknown keys could otherwise make the server flood an
 * authorization server.
 */
export class Loaded<T> {
  readonly #name: string;
  readonly #load: (now: number) => Promise<T>;
  #value?: T;
  #loading?: Promise<T>;
  #loadedAt = -Infinity;
  #triedAt = -Infinity;

  /** Creates a value. `name` appears in errors. */
  constructor(name: string, load: (now: number) => Promise<T>) {
    this.#name = name;
    this.#load = load;
  }

  /** Returns the value. Throws {@linkcode Unavailable} if it cannot be loaded. */
  async get(now: number): Promise<T> {
    const age = Math.abs(now - this.#loadedAt);
    if (this.#value !== undefined && age < FRESH_MS) return this.#value;
    try {
      const value = await this.renew(now);
      if (value !== undefined) return value;
    } catch (error) {
      if (age >= STALE_MS) throw error;
    }
    if (this.#value !== undefined && age < STALE_MS) return this.#value;
    throw new Unavailable(`${this.#name} could not be loaded`);
  }

  /** Loads the value again. Returns `undefined` if the last attempt was within the last 30 seconds. */
  renew(now: number): Promise<T | undefined> {
    if (this.#loading) return this.#loading;
    // Use the absolute difference, because the clock may have been set back.
    if (Math.abs(now - this.#triedAt) < COOL_DOWN_MS) return Promise.resolve(undefined);
    this.#triedAt = now;
    return this.#loading = this.#start(now);
  }

  async #start(now: number): Promise<T> {
    try {
      const value = await this.#load(now);
      this.#loadedAt = now;
      return this.#value = value;
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      const state = error instanceof Error ? error.message : String(error);
      throw new Unavailable(`Cannot load ${this.#name}: ${state}`, { cause: error });
    } finally {
      this.#loading = undefined;
    }
  }
}
