/**
 * The operations of a store for one user: a client, or the process itself.
 */
import type { Account } from "../server/capacity/account.ts";
import type { Bounds } from "../server/capacity/limits.ts";
import type {
  AppendOptions,
  Awaitable,
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
import { isPromiseLike } from "../core/protocol/promises.ts";
import { type Operations, type OwnUse, type StoreUser, User } from "./operations.ts";
import type { ProcessLease } from "./process_lease.ts";

/** The parts of a store that all its users share. */
export interface StoreParts {
  readonly operations: Operations;
  readonly lease: ProcessLease;
  /** The limits of the server that uses the store. */
  readonly limits?: Bounds;
}

/** The operations of a store for one user, on keys, logs and topics whose names begin with a prefix. */
export class UserView extends User implements StoreView {
  readonly #parts: StoreParts;
  readonly #prefix: string;
  #lease?: Lease;

  constructor(parts: StoreParts, by: Account | OwnUse, prefix = "") {
    super(by, parts.limits);
    this.#parts = parts;
    this.#prefix = prefix;
  }

  /** The lease of the process. This user makes the operations of `isHeld`. */
  get lease(): Lease {
    return this.#lease ??= new UserLease(this.#parts, this);
  }

  get(key: string): Awaitable<StoredValue | undefined> {
    return this.#parts.operations.get(this, this.#prefix + key);
  }

  set(key: string, value: string, options: SetOptions): Awaitable<string | undefined> {
    return this.#parts.operations.set(this, this.#prefix + key, value, options);
  }

  delete(key: string, options?: DeleteOptions): Awaitable<boolean> {
    return this.#parts.operations.delete(this, this.#prefix + key, options);
  }

  list(prefix: string, { after, limit }: ListOptions): Awaitable<readonly StoredEntry[]> {
    const own = this.#prefix;
    const found = this.#parts.operations.list(this, own + prefix, { after: after && own + after, limit });
    if (!own) return found;
    const toOwn = (found: readonly StoredEntry[]) =>
      found.map(({ key, ...value }) => ({ key: key.slice(own.length), ...value }));
    return isPromiseLike(found) ? Promise.resolve(found).then(toOwn) : toOwn(found);
  }

  append(log: string, value: string, options: AppendOptions): Awaitable<number> {
    return this.#parts.operations.append(this, this.#prefix + log, value, options);
  }

  read(log: string, options: ReadOptions): Awaitable<LogPage> {
    return this.#parts.operations.read(this, this.#prefix + log, options);
  }

  trim(log: string, before: number): Awaitable<void> {
    return this.#parts.operations.trim(this, this.#prefix + log, before);
  }

  publish(topic: string, text: string): Awaitable<void> {
    return this.#parts.operations.publish(this, this.#prefix + topic, text);
  }

  subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Awaitable<() => void> {
    return this.#parts.operations.subscribe(this, this.#prefix + topic, listener, options);
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

  confirm(): Awaitable<number> {
    return this.#parts.lease.confirm();
  }

  isHeld(id: string): Awaitable<boolean> {
    const found = this.#parts.operations.get(this.#user, id);
    const judge = (found: StoredValue | undefined) => this.#parts.lease.isHeld(id, found);
    return isPromiseLike(found) ? Promise.resolve(found).then(judge) : judge(found);
  }
}
