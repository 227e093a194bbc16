/**
 * The interface of values that all instances of a server share. `InstanceState` implements the interface with a store.
 */
import type { Account } from "../capacity/account.ts";

export interface SharedValue {
  /** `undefined` if the stored text was changed, or was sealed with another secret. */
  readonly value: unknown;
  readonly version: string;
}

/** Values that all instances of a server share. Each method rejects if the store fails, except `attempt`. */
export interface SharedValues {
  /** The lease that shows other processes that this process is running. */
  readonly lease: {
    readonly id: string;
    /** Acquires the lease, and renews it until the returned function is called. */
    hold(): Promise<() => void>;
    /**
     * Returns the number of the lease's current term. Renews the lease first if it is about to expire. The number
     * changes if other processes may have found the lease expired. Rejects if the store fails.
     */
    confirm(): number | Promise<number>;
    /** Returns whether the process with this id may still be running. Call it repeatedly, as `Lease.isHeld`. */
    isHeld(id: string): boolean | Promise<boolean>;
  };
  /** Returns a key for a name. The key is a hash, so the store does not contain the name. */
  hash(kind: string, name: string): Promise<string>;
  /** Reads a value and its version. Resolves to `undefined` if the key has no value. */
  get(key: string): Promise<SharedValue | undefined>;
  /** Writes a value. Resolves to the new version, or to `undefined` if `version` does not match the stored version. */
  set(
    key: string,
    value: unknown,
    options: { readonly ttlMs: number; readonly version?: string | null },
  ): Promise<string | undefined>;
  /** Removes a value. Resolves to `false` if `version` does not match the stored version. */
  delete(key: string, version?: string): Promise<boolean>;
  /** Runs `run` after all earlier functions for the same key. The server waits for them before it closes. */
  queue<T>(key: string, run: () => Promise<T>): Promise<T>;
  /**
   * Runs `run`. If the store fails, reports the failure of `operation` to the observer, and resolves to `undefined`.
   * Rejects with the error for the client, code -31503, if the client has used up its share of the store.
   */
  attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined>;
}

/** Values and logs that all instances of a server share. */
export interface SharedLogs extends SharedValues {
  /** Returns a key for a name, as `hash`, but the same key on all paths of the server. */
  hashForAllPaths(kind: string, name: string): Promise<string>;
  /** Appends an entry to a log. Resolves to the number of the entry. The first entry has number 1. */
  append(log: string, value: unknown, options: { readonly ttlMs: number; readonly max: number }): Promise<number>;
}

/** The store of a server, as the parts of the server see it. */
export interface SharedStore {
  /**
   * Returns the values and logs for one request of a client, or for work that continues such a request. The operations
   * count towards the client's share, so a client that sends many requests delays and refuses only itself. Only the
   * first operation is refused: a request that has begun to use the store is not refused halfway. With `mustWait`, the
   * first operation is not refused either.
   */
  by(account: Account, options?: { readonly mustWait?: boolean }): SharedLogs;
}
