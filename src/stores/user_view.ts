/**
 * The operations of a store for one user: a client, or the process itself.
 */
import type { Account } from "../server/capacity/account.ts";
import type { Bounds } from "../server/capacity/limits.ts";
import type {
  AppendOptions,
  DeleteOptions,
  Lease,
  ListOptions,
  LogPage,
  ReadOptions,
  SetOptions,
  StoredEntry,
  StoredValue,
  StoreView,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
import { type Operations, type OwnUse, type StoreUser, User } from "./operations.ts";
import type { ProcessLease } from "./process_lease.ts";

/** The parts of a store that all its users share. */
export interface StoreParts {
  readonly operations: Operations;
  readonly lease: ProcessLease;
  /** The limits of the server that uses the store. */
  readonly limits?: Bounds;
}

/** The operations of a store for one user. */
export class UserView extends User implements StoreView {
  readonly #parts: StoreParts;
  #lease?: Lease;

  constructor(parts: StoreParts, by: Account | OwnUse) {
    super(by, parts.limits);
    this.#parts = parts;
  }

  /** The lease of the process. This user makes the operations of `isHeld`. */
  get lease(): Lease {
    return this.#lease ??= new UserLease(this.#parts, this);
  }

  get(key: string): Promise<StoredValue | undefined> {
    return this.#parts.operations.get(this, key);
  }

  set(key: string, value: string, options: SetOptions): Promise<string | undefined> {
    return this.#parts.operations.set(this, key, value, options);
  }

  delete(key: string, options?: DeleteOptions): Promise<boolean> {
    return this.#parts.operations.delete(this, key, options);
  }

  list(prefix: string, options: ListOptions): Promise<readonly StoredEntry[]> {
    return this.#parts.operations.list(this, prefix, options);
  }

  append(log: string, value: string, options: AppendOptions): Promise<number> {
    return this.#parts.operations.append(this, log, value, options);
  }

  read(log: string, options: ReadOptions): Promise<LogPage> {
    return this.#parts.operations.read(this, log, options);
  }

  trim(log: string, before: number): Promise<void> {
    return this.#parts.operations.trim(this, log, before);
  }

  publish(topic: string, text: string): Promise<void> {
    return this.#parts.operations.publish(this, topic, text);
  }

  subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Promise<() => void> {
    return this.#parts.operations.subscribe(this, topic, listener, options);
  }
}

/** The lease of the process, as one user sees it. */
export class UserLease implements Lease {
  readonly #parts: StoreParts;
  readonly #user: StoreUser;

  constructor(parts: StoreParts, user: StoreUser) {
    this.#parts = parts;
    this.#user = user;
  }

  get id(): string {
    return this.#parts.lease.id;
  }

  get ms(): number {
    return this.#parts.lease.ms;
  }

  get heldUntil(): number {
    return this.#parts.lease.heldUntil;
  }

  hold(): Promise<() => void> {
    return this.#parts.lease.hold();
  }

  confirm(): Promise<number> {
    return this.#parts.lease.confirm();
  }

  async isHeld(id: string): Promise<boolean> {
    return this.#parts.lease.isHeld(id, await this.#parts.operations.get(this.#user, id));
  }
}
