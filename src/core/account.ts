/**
 * Counts what the server holds for its clients, per client and in total.
 *
 * @module
 */
import type { Limits } from "./limits.ts";
import type { Observing } from "./observer.ts";

/** Starts a call that waited for a slot. */
export type Start = () => void;

/** The slots, bytes and streams of one client. A client is a principal, else a peer address, else a connection. */
export class Account {
  /** Key of the client, such as its principal. `undefined` for a connection without a known client. */
  readonly key?: string;
  readonly #all: Accounts;
  readonly #waiting: Set<Start> = new Set();
  #running = 0;
  #bytes = 0;
  #streams = 0;
  #room?: PromiseWithResolvers<void>;

  /** Creates the account of the client with this key, or of one connection. */
  constructor(all: Accounts, key?: string) {
    this.#all = all;
    this.key = key;
  }

  /** Calls that wait for a slot of this client, oldest first. */
  get waiting(): Set<Start> {
    return this.#counting().#waiting;
  }

  /** Whether all slots of this client are in use. */
  get isFull(): boolean {
    return this.#counting().#running >= this.#all.limits.calls.runningPerClient;
  }

  /** Takes a slot. */
  start(): void {
    this.#enter().#running++;
  }

  /** Releases a slot. */
  finish(): void {
    this.#counting().#running--;
    this.settle();
  }

  /**
   * Charges bytes and returns `true`. Returns `false` if they would exceed `memory.bytesPerClient` or `memory.bytes`.
   */
  hold(bytes: number): boolean {
    const { memory } = this.#all.limits;
    if (this.#counting().#bytes + bytes > memory.bytesPerClient) return this.#reach("memory.bytesPerClient");
    if (this.#all.bytes + bytes > memory.bytes) return this.#reach("memory.bytes");
    this.charge(bytes);
    return true;
  }

  /** Charges bytes that are already in memory, without checking the limits. */
  charge(bytes: number): void {
    this.#enter().#bytes += bytes;
    this.#all.bytes += bytes;
  }

  /** Releases bytes that were charged. */
  free(bytes: number): void {
    this.#counting().#bytes -= bytes;
    this.#all.bytes -= bytes;
    this.settle();
  }

  /** Counts a new stream, socket or subscription and returns `true`. Returns `false` at the limit. */
  openStream(): boolean {
    const { streams } = this.#all.limits;
    if (this.#counting().#streams >= streams.openPerClient) return this.#reach("streams.openPerClient");
    if (this.#all.streams >= streams.open) return this.#reach("streams.open");
    this.#enter().#streams++;
    this.#all.streams++;
    return true;
  }

  /** Counts a closed stream, socket or subscription. */
  closeStream(): void {
    this.#counting().#streams--;
    this.#all.streams--;
    this.settle();
  }

  /** Returns a promise that settles once fewer calls of this client wait. */
  untilRoom(): Promise<void> {
    return (this.#counting().#room ??= Promise.withResolvers<void>()).promise;
  }

  /**
   * Wakes callers of {@linkcode untilRoom}, and forgets an idle client. Call it when something of this client has
   * ended.
   */
  settle(): void {
    const { key } = this;
    const account = this.#counting();
    account.#room?.resolve();
    account.#room = undefined;
    const isIdle = !account.#running && !account.#waiting.size && !account.#streams && !account.#bytes;
    if (isIdle && key !== undefined) this.#all.forget(key, account);
  }

  #reach(limit: string): false {
    this.#all.server.observing?.reach(limit, this.key);
    return false;
  }

  // Several accounts of a client that held nothing may exist: the one that is stored counts for all of them.
  #counting(): Account {
    return this.key === undefined ? this : this.#all.find(this.key, this);
  }

  #enter(): Account {
    return this.key === undefined ? this : this.#all.remember(this.key, this);
  }
}

/** The parts of a server that accounts use. */
export interface AccountHost {
  readonly limits: Limits;
  readonly observing?: Observing;
}

/** All accounts of a server. */
export class Accounts {
  readonly server: AccountHost;
  readonly limits: Limits;
  /** Bytes held for all clients. */
  bytes = 0;
  /** Streams, sockets and subscriptions of all clients. */
  streams = 0;
  readonly #known = new Map<string, Account>();

  /** Creates an empty set of accounts. */
  constructor(server: AccountHost) {
    this.server = server;
    this.limits = server.limits;
  }

  /**
   * Finds the account of a client by its key. Returns a new one for an unknown client or a connection without a key. An
   * account that holds nothing is not stored.
   */
  find(key?: string, unknown?: Account): Account {
    const known = key === undefined ? undefined : this.#known.get(key);
    return known ?? unknown ?? new Account(this, key);
  }

  /** Stores the account of a client that holds something. Returns the stored one if the client already has one. */
  remember(key: string, account: Account): Account {
    const known = this.#known.get(key);
    if (known) return known;
    this.#known.set(key, account);
    return account;
  }

  /** Removes the account of a client that holds nothing. */
  forget(key: string, account: Account): void {
    if (this.#known.get(key) === account) this.#known.delete(key);
  }
}
