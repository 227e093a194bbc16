/**
 * The contract of values that the instances of a server share. The state of a store implements it.
 *
 * @module
 */

/** A JSON value with its version. */
export interface SharedValue {
  /** `undefined` if this server cannot open it, because it was changed, or sealed with another secret. */
  readonly value: unknown;
  readonly version: string;
}

/** Values that the instances of a server share. Each method rejects if the store fails. */
export interface SharedValues {
  /** Proof that this process lives. */
  readonly lease: {
    readonly id: string;
    /** Renews the lease until the returned function is called. */
    hold(): Promise<() => void>;
    /** Whether the process with this id holds its lease. */
    isHeld(id: string): boolean | Promise<boolean>;
  };
  /** Returns a key that says nothing about what it stands for. */
  hash(kind: string, name: string): Promise<string>;
  /** Reads a value. */
  get(key: string): Promise<SharedValue | undefined>;
  /** Writes a value. Returns its version, or `undefined` if the version did not match. */
  set(
    key: string,
    value: unknown,
    options: { readonly ttlMs: number; readonly version?: string | null },
  ): Promise<string | undefined>;
  /** Removes a value. Returns `false` if the version did not match. */
  delete(key: string, version?: string): Promise<boolean>;
  /** Runs operations on a value, one call after another. Closing the server waits for them. */
  queue<T>(key: string, run: () => Promise<T>): Promise<T>;
  /** Runs operations. If one fails, informs the observer and returns `undefined`. */
  attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined>;
}

/** Values and logs that the instances of a server share. */
export interface SharedLogs extends SharedValues {
  /** Appends an entry to a log. Returns its number, from 1 for the first one of the log. */
  append(log: string, value: unknown, options: { readonly ttlMs: number; readonly max: number }): Promise<number>;
}
