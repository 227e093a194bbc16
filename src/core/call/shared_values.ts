/**
 * The interface of values that the instances of a server share. Implemented by `InstanceState` on top of a store.
 *
 * @module
 */

/** A JSON value with its version. */
export interface SharedValue {
  /** The value. `undefined` if this server cannot open it, because it was changed, or sealed with another secret. */
  readonly value: unknown;
  readonly version: string;
}

/** Values that the instances of a server share. Each method rejects if the store fails. */
export interface SharedValues {
  /** The lease by which other processes see that this process is running. */
  readonly lease: {
    readonly id: string;
    /** Renews the lease until the returned function is called. */
    hold(): Promise<() => void>;
    /** Returns whether the process with this id holds its lease. */
    isHeld(id: string): boolean | Promise<boolean>;
  };
  /** Returns the hash of a name as a key, which does not reveal the name. */
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
  /** Runs operations on a value, one call after another. Closing the server waits for these operations. */
  queue<T>(key: string, run: () => Promise<T>): Promise<T>;
  /** Runs operations. If an operation fails, informs the observer and returns `undefined`. */
  attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined>;
}

/** Values and logs that the instances of a server share. */
export interface SharedLogs extends SharedValues {
  /** Appends an entry to a log. Returns the number of the entry, which is 1 for the first entry of the log. */
  append(log: string, value: unknown, options: { readonly ttlMs: number; readonly max: number }): Promise<number>;
}
