/**
 * What clients make the server hold, per client and in total.
 *
 * @module
 */
import type { Limits } from "./limits.ts";

/** Starts a call that waited for a slot. */
export type Start = () => void;

/** What one client holds: a principal, else a peer address, else a connection. */
export class Account {
  /** What is the client's own, such as its principal; `undefined` for a connection of a client that is not known. */
  readonly key?: string;
  readonly #all: Accounts;
  readonly #waiting: Set<Start> = new Set();
  #running = 0;
  #bytes = 0;
  #streams = 0;
  #room?: PromiseWithResolvers<void>;
  /** The account that counts, if another one of the same client had begun to hold something before this one did. */
  #successor?: Account;

  /** The account of a client that is known by `key`, or of one connection. */
  constructor(all: Accounts, key?: string) {
    this.#all = all;
    this.key = key;
  }

  /** Calls that wait for a slot of this client, the oldest first. */
  get waiting(): Set<Start> {
    return this.#counting().#waiting;
  }

  /** Whether all slots of this client are taken. */
  get isFull(): boolean {
    return this.#counting().#running >= this.#all.limits.calls.runningPerClient;
  }

  /** Takes a slot. */
  start(): void {
    this.#enter().#running++;
  }

  /** Gives a slot back. */
  finish(): void {
    this.#counting().#running--;
    this.settle();
  }

  /** Holds bytes, unless that is more than this client or all together may hold. */
  hold(bytes: number): boolean {
    const { memory } = this.#all.limits;
    if (this.#counting().#bytes + bytes > memory.bytesPerClient || this.#all.bytes + bytes > memory.bytes) return false;
    this.charge(bytes);
    return true;
  }

  /** Holds bytes that are held already. */
  charge(bytes: number): void {
    this.#enter().#bytes += bytes;
    this.#all.bytes += bytes;
  }

  /** Frees bytes that were held. */
  free(bytes: number): void {
    this.#counting().#bytes -= bytes;
    this.#all.bytes -= bytes;
    this.settle();
  }

  /** Opens a stream, socket or subscription, unless there are too many. */
  openStream(): boolean {
    const { streams } = this.#all.limits;
    if (this.#counting().#streams >= streams.openPerClient || this.#all.streams >= streams.open) return false;
    this.#enter().#streams++;
    this.#all.streams++;
    return true;
  }

  /** Closes a stream that was opened. */
  closeStream(): void {
    this.#counting().#streams--;
    this.#all.streams--;
    this.settle();
  }

  /** Settles once fewer calls of this client wait. */
  untilRoom(): Promise<void> {
    return (this.#counting().#room ??= Promise.withResolvers<void>()).promise;
  }

  /** To be called when something of this client has ended. */
  settle(): void {
    const { key } = this;
    const account = this.#counting();
    account.#room?.resolve();
    account.#room = undefined;
    const isIdle = !account.#running && !account.#waiting.size && !account.#streams && !account.#bytes;
    if (isIdle && key !== undefined) this.#all.forget(key, account);
  }

  #counting(): Account {
    return this.#successor ? this.#successor.#counting() : this;
  }

  #enter(): Account {
    if (this.#successor) return this.#successor.#enter();
    const known = this.key === undefined ? this : this.#all.remember(this.key, this);
    if (known !== this) this.#successor = known;
    return known;
  }
}

/** All accounts of a server. */
export class Accounts {
  readonly limits: Limits;
  /** Bytes held for all clients. */
  bytes = 0;
  /** Streams, sockets and subscriptions of all clients. */
  streams = 0;
  readonly #known = new Map<string, Account>();

  /** No accounts yet. */
  constructor(limits: Limits) {
    this.limits = limits;
  }

  /**
   * The account of a client, by a key that is its own, or a new one for a connection without a key. An account that
   * holds nothing is not kept: look it up again each time something is to be held.
   */
  find(key?: string): Account {
    return key === undefined ? new Account(this) : this.#known.get(key) ?? new Account(this, key);
  }

  /** Keeps the account of a client that holds something. Returns the one that is kept already, if there is one. */
  remember(key: string, account: Account): Account {
    const known = this.#known.get(key);
    if (known) return known;
    this.#known.set(key, account);
    return account;
  }

  /** Forgets a client that holds nothing. */
  forget(key: string, account: Account): void {
    if (this.#known.get(key) === account) this.#known.delete(key);
  }
}
