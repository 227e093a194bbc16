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
  /** Calls that wait for a slot of this client, the oldest first. */
  readonly waiting: Set<Start> = new Set();
  /** What is the client's own, such as its principal; `undefined` for a connection of a client that is not known. */
  readonly key?: string;
  readonly #all: Accounts;
  #running = 0;
  #bytes = 0;
  #streams = 0;
  #room?: PromiseWithResolvers<void>;

  /** The account of a client that is known by `key`, or of one connection. */
  constructor(all: Accounts, key?: string) {
    this.#all = all;
    this.key = key;
  }

  /** Whether all slots of this client are taken. */
  get isFull(): boolean {
    return this.#running >= this.#all.limits.calls.runningPerClient;
  }

  /** Takes a slot. */
  start(): void {
    this.#running++;
    this.#enter();
  }

  /** Gives a slot back. */
  finish(): void {
    this.#running--;
    this.settle();
  }

  /** Holds bytes, unless that is more than this client or all together may hold. */
  hold(bytes: number): boolean {
    const { memory } = this.#all.limits;
    if (this.#bytes + bytes > memory.bytesPerClient || this.#all.bytes + bytes > memory.bytes) return false;
    this.#bytes += bytes;
    this.#all.bytes += bytes;
    this.#enter();
    return true;
  }

  /** Frees bytes that were held. */
  free(bytes: number): void {
    this.#bytes -= bytes;
    this.#all.bytes -= bytes;
    this.settle();
  }

  /** Opens a stream, socket or subscription, unless there are too many. */
  openStream(): boolean {
    const { open, openPerClient } = this.#all.limits.streams;
    if (this.#streams >= openPerClient || this.#all.streams >= open) return false;
    this.#streams++;
    this.#all.streams++;
    this.#enter();
    return true;
  }

  /** Closes a stream that was opened. */
  closeStream(): void {
    this.#streams--;
    this.#all.streams--;
    this.settle();
  }

  /** Settles once fewer calls of this client wait. */
  untilRoom(): Promise<void> {
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** To be called when something of this client has ended. */
  settle(): void {
    this.#room?.resolve();
    this.#room = undefined;
    const isIdle = !this.#running && !this.waiting.size && !this.#streams && !this.#bytes;
    if (isIdle && this.key !== undefined) this.#all.forget(this.key, this);
  }

  #enter(): void {
    if (this.key !== undefined) this.#all.remember(this.key, this);
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

  /** Keeps the account of a client that holds something. */
  remember(key: string, account: Account): void {
    this.#known.set(key, account);
  }

  /** Forgets a client that holds nothing. */
  forget(key: string, account: Account): void {
    if (this.#known.get(key) === account) this.#known.delete(key);
  }
}
