/**
 * The sealed values and logs of a store for one user: a client, or the process itself.
 */
import type { Account } from "../server/capacity/account.ts";
import type { SharedLogs } from "../server/call/shared_values.ts";
import type { AppendOptions, Lease, ReadOptions, SetOptions } from "../server/engine/store.ts";
import { type OwnUse, User } from "./operations.ts";
import { type StoreParts, UserLease } from "./user_view.ts";

/** An unsealed JSON value from the store, and its version. */
export interface OpenedValue {
  readonly value: unknown;
  readonly version: string;
}

/** A page of a log, with unsealed entries. */
export interface OpenedPage {
  readonly entries: readonly { readonly id: number; readonly value: unknown }[];
  readonly first: number;
  readonly last: number;
  readonly epoch: string;
}

/** The functions of a server that {@linkcode SealedStore} needs. */
export interface Sealing extends Pick<SharedLogs, "hash" | "hashForAllPaths" | "queue" | "attempt"> {
  /** Seals a value, so that only instances of this server can open the value, and only with the same key. */
  seal(key: string, value: unknown): Promise<string>;
  /** Opens a sealed value. Returns `undefined` if the value cannot be opened. */
  open(key: string, text: string): Promise<unknown>;
}

/** The values and logs of a store for one user. */
export class SealedStore extends User implements SharedLogs {
  readonly #parts: StoreParts;
  readonly #sealing: Sealing;

  constructor(parts: StoreParts, sealing: Sealing, by: Account | OwnUse) {
    super(by, parts.limits);
    this.#parts = parts;
    this.#sealing = sealing;
  }

  get lease(): Lease {
    return new UserLease(this.#parts, this);
  }

  hash(kind: string, name: string): Promise<string> {
    return this.#sealing.hash(kind, name);
  }

  hashForAllPaths(kind: string, name: string): Promise<string> {
    return this.#sealing.hashForAllPaths(kind, name);
  }

  queue<T>(key: string, run: () => Promise<T>): Promise<T> {
    return this.#sealing.queue(key, run);
  }

  attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined> {
    return this.#sealing.attempt(operation, run);
  }

  /** Reads a value. Returns `undefined` if the key has no value. The `value` is `undefined` if it cannot be opened. */
  async get(key: string): Promise<OpenedValue | undefined> {
    const found = await this.#parts.operations.get(this, key);
    return found && { value: await this.#sealing.open(key, found.value), version: found.version };
  }

  /** Writes a value. Returns the version of the written value, or `undefined` if the required version did not match. */
  async set(key: string, value: unknown, options: SetOptions): Promise<string | undefined> {
    return await this.#parts.operations.set(this, key, await this.#sealing.seal(key, value), options);
  }

  /** Deletes a value. Returns `false` if the required version did not match. */
  async delete(key: string, version?: string): Promise<boolean> {
    return await this.#parts.operations.delete(this, key, { version });
  }

  /** Appends an entry to a log. Returns the id of the entry. */
  async append(log: string, value: unknown, options: AppendOptions): Promise<number> {
    return await this.#parts.operations.append(this, log, await this.#sealing.seal(log, value), options);
  }

  /** Drops all entries of a log whose id is lower than `before`. */
  async trim(log: string, before: number): Promise<void> {
    await this.#parts.operations.trim(this, log, before);
  }

  /** Reads a page of a log. */
  async read(log: string, options: ReadOptions): Promise<OpenedPage> {
    const { entries, first, last, epoch } = await this.#parts.operations.read(this, log, options);
    const opened = entries.map(async ({ id, value }) => ({ id, value: await this.#sealing.open(log, value) }));
    return { entries: await Promise.all(opened), first, last, epoch };
  }

  /** Sends a value to all subscribers of a topic. */
  async publish(topic: string, value: unknown): Promise<void> {
    await this.#parts.operations.publish(this, topic, await this.#sealing.seal(topic, value));
  }

  /**
   * Calls `listener` in order for each log entry after the entry `after`. If the listener returns a promise, the next
   * entry waits until the promise has settled.
   */
  async follow(
    log: string,
    listener: (value: unknown) => void | Promise<unknown>,
    options: { readonly after?: number; readonly epoch?: string; readonly onGap: (last: number) => void },
  ): Promise<() => void> {
    let isOver = false;
    let queue = Promise.resolve();
    const stop = await this.#parts.operations.subscribe(this, log, (text) => {
      queue = queue.then(async () => {
        const value = await this.#sealing.open(log, text);
        if (!isOver && value !== undefined) await listener(value);
      }).catch(() => {});
    }, options);
    return () => {
      isOver = true;
      stop();
    };
  }
}
