/**
 * The sealed values and logs of a store for one user: a client, or the process itself. For the state of the library
 * itself, also hashes names.
 */
import type { SharedLogs, SharedValue } from "../server/call/shared_values.ts";
import type {
  AppendOptions,
  Lease,
  ListOptions,
  LogHead,
  ReadOptions,
  SetOptions,
  StoredValue,
  SubscribeOptions,
} from "../server/engine/store.ts";
import type { UserView } from "./user_view.ts";

/** A page of a log, with unsealed entries. The `value` of an entry is `undefined` if it cannot be opened. */
export interface OpenedPage extends LogHead {
  readonly entries: readonly { readonly id: number; readonly value: unknown }[];
}

export interface Seal {
  /** Seals a value, so that only instances of this server can open the value, and only with the same key. */
  seal(key: string, value: unknown): Promise<string>;
  /** Opens a sealed value. Returns `undefined` if the value cannot be opened. */
  open(key: string, text: string): Promise<unknown>;
}

export interface Sealing extends Seal, Pick<SharedLogs, "hash" | "hashForAllPaths" | "queue" | "attempt"> {}

export class SealedStore implements SharedLogs {
  readonly #view: UserView;
  readonly #sealing: Sealing;
  readonly #seal: Seal;

  /** `seal` replaces the seal of `sealing`. */
  constructor(view: UserView, sealing: Sealing, seal: Seal = sealing) {
    this.#view = view;
    this.#sealing = sealing;
    this.#seal = seal;
  }

  get lease(): Lease {
    return this.#view.lease;
  }

  async get(key: string): Promise<SharedValue | undefined> {
    return await this.#open(key, await this.#view.get(key));
  }

  async getAll(keys: readonly string[]): Promise<readonly (SharedValue | undefined)[]> {
    const found = await this.#view.getAll(keys);
    return await Promise.all(keys.map((key, i) => this.#open(key, found[i])));
  }

  async #open(key: string, found: StoredValue | undefined): Promise<SharedValue | undefined> {
    return found && { value: await this.#seal.open(key, found.value), version: found.version };
  }

  async set(key: string, value: unknown, options: SetOptions): Promise<string | undefined> {
    return await this.#view.set(key, await this.#seal.seal(key, value), options);
  }

  async delete(key: string, version?: string): Promise<boolean> {
    return await this.#view.delete(key, { version });
  }

  /** Returns the values whose keys begin with `prefix`, sorted by key. */
  async list(prefix: string, options: ListOptions): Promise<readonly (SharedValue & { readonly key: string })[]> {
    const found = await this.#view.list(prefix, options);
    return await Promise.all(
      found.map(async ({ key, value, version }) => ({ key, value: await this.#seal.open(key, value), version })),
    );
  }

  async append(log: string, value: unknown, options: AppendOptions): Promise<number> {
    return await this.#view.append(log, await this.#seal.seal(log, value), options);
  }

  /** Drops all entries of a log whose id is lower than `before`. */
  async trim(log: string, before: number): Promise<void> {
    await this.#view.trim(log, before);
  }

  async read(log: string, options: ReadOptions): Promise<OpenedPage> {
    const { entries, first, last, epoch } = await this.#view.read(log, options);
    const opened = entries.map(async ({ id, value }) => ({ id, value: await this.#seal.open(log, value) }));
    return { entries: await Promise.all(opened), first, last, epoch };
  }

  async publish(topic: string, value: unknown): Promise<void> {
    await this.#view.publish(topic, await this.#seal.seal(topic, value));
  }

  /**
   * Calls `listener` in order for each log entry after the entry `after` that can be opened. If the listener returns a
   * promise, the next entry waits until the promise has settled.
   */
  async follow(
    log: string,
    listener: (value: unknown, id: number) => void | Promise<unknown>,
    { onGap, ...options }: SubscribeOptions = {},
  ): Promise<() => void> {
    let isOver = false;
    let queue = Promise.resolve();
    const stop = await this.#view.subscribe(log, (text, id) => {
      queue = queue.then(async () => {
        const value = await this.#seal.open(log, text);
        if (!isOver && value !== undefined) await listener(value, id);
      }).catch(() => {});
    }, {
      ...options,
      // Report the gap in order, because earlier entries may not be opened yet.
      onGap: onGap && ((last) => {
        queue = queue.then(() => isOver ? undefined : onGap(last)).catch(() => {});
      }),
    });
    return () => {
      isOver = true;
      stop();
    };
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
}
