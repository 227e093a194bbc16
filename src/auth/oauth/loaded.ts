/**
 * Loads values from the network, and shares each value among many requests.
 */
import { deadline } from "../../core/kit/deadline.ts";

/** Minimum time between the starts of two attempts to load a value, in milliseconds. */
const COOL_DOWN_MS = 30_000;
/** Age from which a value is loaded again on its next use, in milliseconds. */
const FRESH_MS = 600_000;
/** Maximum age of a value that is still used while attempts to load it again fail, in milliseconds. */
const STALE_MS = 3_600_000;

/**
 * Maximum time in milliseconds for which requests wait until a value is loaded again, if there is a value from the last
 * hour. Without this limit, a slow authorization server would delay callers whose keys the server knows.
 */
const RENEW_MS = 1000;

export class Unavailable extends Error {
  #isTaken = false;

  /**
   * Returns this error on the first call, if the error has a cause. Otherwise returns `undefined`, so that only one of
   * the waiting requests reports the error.
   */
  readCauseOnce(): unknown {
    if (this.#isTaken || this.cause === undefined) return;
    this.#isTaken = true;
    return this;
  }
}

/**
 * A value that is loaded when a request first needs it. Concurrent requests share one load. A load starts at most once
 * every 30 seconds, even after a failed load. Otherwise, callers whose tokens name unknown keys could make the server
 * flood an authorization server with requests.
 */
export class Loaded<T> {
  readonly #name: string;
  readonly #load: (now: number) => Promise<T>;
  #value?: T;
  #loading?: Promise<T>;
  #loadedAt = -Infinity;
  #triedAt = -Infinity;

  /** `name` describes the value in errors, such as "the keys of the issuer https://login.example.com". */
  constructor(name: string, load: (now: number) => Promise<T>) {
    this.#name = name;
    this.#load = load;
  }

  /**
   * Whether the latest value can be used without {@linkcode get}, because the value is fresh, or because another request
   * is loading it again or has just failed to do so. Without the latter, each request would wait for an authorization
   * server that does not respond.
   */
  isCurrent(now: number): boolean {
    const age = Math.abs(now - this.#loadedAt);
    if (age < FRESH_MS) return true;
    return age < STALE_MS && (this.#loading !== undefined || Math.abs(now - this.#triedAt) < COOL_DOWN_MS);
  }

  /** @throws {Unavailable} if the value cannot be loaded and there is no value from the last hour. */
  async get(now: number): Promise<T> {
    const age = Math.abs(now - this.#loadedAt);
    if (this.#value !== undefined && age < FRESH_MS) return this.#value;
    const ms = age < STALE_MS ? RENEW_MS : Infinity;
    try {
      const value = await deadline(this.renew(now), { ms, onTimeout: () => undefined });
      if (value !== undefined) return value;
    } catch (error) {
      if (age >= STALE_MS) throw error;
    }
    if (this.#value !== undefined && age < STALE_MS) return this.#value;
    throw new Unavailable(`${this.#name} could not be loaded`);
  }

  /** Resolves to `undefined` if the last attempt started less than 30 seconds ago. */
  renew(now: number): Promise<T | undefined> {
    if (this.#loading) return this.#loading;
    // Use the absolute difference, because the system clock may have been set back since the last attempt.
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
