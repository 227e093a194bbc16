/**
 * The interface of a store: state that several instances of a server share.
 *
 * @module
 */
import type { Account, Accounts, Limit } from "./capacity/account.ts";
import type { Change, Changes, ExtensionNews } from "./visibility/changes.ts";
import type { Registry } from "./visibility/registry.ts";
import type { INTERNALS } from "./call/internals.ts";
import type { Notification, Response } from "../protocol/jsonrpc.ts";
import type { Bounds } from "./capacity/limits.ts";
import type { Mark, Marking } from "./marked_ids.ts";
import type { Observer } from "./call/observer.ts";
import type { SharedLogs } from "./call/shared_values.ts";
import type { Sealer } from "./call/sealer.ts";
import type { SharedRules, Visibility } from "./visibility/visibility.ts";

/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;

/** A value in a store. */
export interface StoredValue {
  /** The string that was written. */
  readonly value: string;
  /** Random text that changes with every write. Compare versions only for equality; they have no order. */
  readonly version: string;
}

/** A value in a store, with its key. */
export interface StoredEntry extends StoredValue {
  /** The key of the value. */
  readonly key: string;
}

/** Options of a write. */
export interface SetOptions {
  /** Milliseconds after which the value expires. A fraction is rounded up. */
  readonly ttlMs: number;
  /**
   * The version that the value must have: the value is written only if no other process has changed it since. `null`
   * requires that there is no value. If omitted, the value is written unconditionally.
   */
  readonly version?: string | null;
  /**
   * The new version: 1 to 256 letters, digits, `-` and `_`. If the value already has this version, the write succeeds
   * without a change, because it is a repetition. Defaults to random text.
   */
  readonly token?: string;
}

/** Options of a removal. */
export interface DeleteOptions {
  /** The version that the value must have. If omitted, the value is removed unconditionally. */
  readonly version?: string;
}

/** Options of `append`. */
export interface AppendOptions {
  /**
   * Milliseconds after which the whole log expires, unless another entry is appended in the meantime. A fraction is
   * rounded up.
   */
  readonly ttlMs: number;
  /** Number of entries that the log keeps. Older entries are dropped. */
  readonly max: number;
  /**
   * Name of the entry: 1 to 256 letters, digits, `-` and `_`. If the log already has an entry with this token, nothing
   * is appended, and the id of that entry is returned. Defaults to random text.
   */
  readonly token?: string;
}

/** Options of a read from a log. */
export interface ReadOptions {
  /** Id of the last entry that the caller already has. Defaults to 0, which is before all entries. */
  readonly after?: number;
  /** Maximum number of entries to return. With 0, only the state of the log is returned. */
  readonly limit: number;
}

/** Options of a list of values. */
export interface ListOptions {
  /** The last key that the caller already has. Defaults to an empty string, which is before all keys. */
  readonly after?: string;
  /** Maximum number of values to return, from 1 to 1000. */
  readonly limit: number;
}

/** The state of a log. */
export interface LogHead {
  /** Id of the oldest entry that the log keeps, or `last + 1` if the log keeps no entries. */
  readonly first: number;
  /** Id of the newest entry that was appended, or 0 if the log does not exist or has expired. */
  readonly last: number;
  /**
   * Random text that is created with the log, or an empty string if the log does not exist. If the text has changed,
   * the log was lost or has expired and has begun again, so its ids refer to other entries.
   */
  readonly epoch: string;
}

/** Part of a log. */
export interface LogPage extends LogHead {
  /** The entries in order. */
  readonly entries: readonly {
    /** Position in the log. The first entry has the id 1, and each further entry the next number. */
    readonly id: number;
    /** The string that was appended. */
    readonly value: string;
  }[];
}

/** Options of every operation of an engine. */
export interface EngineOptions {
  /**
   * Aborts when the operation has timed out or the store was closed, so that no caller waits for the result any more.
   */
  readonly signal: AbortSignal;
}

/** Options of every write of an engine. */
export interface EngineWriteOptions extends EngineOptions {
  /** Distinguishes a repetition of a write from a second write. */
  readonly token: string;
}

/**
 * The operations of a storage engine, such as Redis or SQLite, on which a store is built. Keys, log names and tokens
 * are short strings of letters, digits, `-` and `_`. Values are opaque well-formed strings without U+0000. Times to
 * live are whole milliseconds.
 *
 * Each operation may be repeated with the same arguments, because a response may be lost. The `token` of a write
 * distinguishes a repetition from a second write. An operation that fails is repeated, unless it throws a `RangeError`
 * or a `TypeError`, which mean that it can never succeed.
 */
export interface StoreEngine {
  /** Maximum size of one value or entry, in bytes of UTF-8. Set it if it is less than the store's `valueBytes`. */
  readonly valueBytes?: number;
  /** Returns a value, or `undefined` if the key has no value or the value has expired. */
  get(key: string, options: EngineOptions): Awaitable<StoredValue | undefined>;
  /**
   * Writes a value, with `token` as its new version, in one atomic step. Returns `true` if the value has this version
   * afterwards, even if it had this version before. Returns `false` if `version` does not match.
   */
  set(key: string, value: string, options: SetOptions & EngineWriteOptions): Awaitable<boolean>;
  /**
   * Removes a value. Returns `false` if its version differs from `version`. Returns `true` if it was removed, or if the
   * key has no value.
   */
  delete(key: string, options: DeleteOptions & EngineOptions): Awaitable<boolean>;
  /** Returns the values whose keys begin with `prefix` and come after `after`, sorted by key. */
  list(prefix: string, options: ListOptions & EngineOptions): Awaitable<readonly StoredEntry[]>;
  /**
   * In one atomic step, appends an entry to a log, drops the oldest entries beyond `max`, and notifies the listeners of
   * all processes. Returns the id of the entry. If the log already has an entry with the same `token`, returns the id
   * of that entry.
   */
  append(log: string, value: string, options: AppendOptions & EngineWriteOptions): Awaitable<number>;
  /** Reads entries in order. */
  read(log: string, options: ReadOptions & EngineOptions): Awaitable<LogPage>;
  /** Drops all entries with a lower id than `before`. Ids of later entries do not change. */
  trim(log: string, before: number, options: EngineOptions): Awaitable<void>;
  /**
   * Returns the states of logs, in the same order. If the engine has this method, the store checks all topics for new
   * entries in one round trip. Otherwise it reads each topic.
   */
  heads?(logs: readonly string[], options: EngineOptions): Awaitable<readonly LogHead[]>;
  /**
   * Calls `onRing` with the name of a log when any process has appended an entry. Single notifications may be late,
   * repeated or lost. Calls `onLost` when no more notifications can arrive; the store then calls `listen` again. If the
   * engine lacks this method, the store polls its topics. Returns a function that stops listening.
   */
  listen?(onRing: (log: string) => void, onLost: (error?: unknown) => void): Awaitable<() => void>;
  /** Closes the connections. */
  close?(): Awaitable<void>;
}

/**
 * State that several instances of a server share: values, logs and topics. Created by `memoryStore` and `customStore`
 * of `@x/mcp/stores`, and by the functions of `@x/mcp/stores/redis`, `/sqlite` and `/deno-kv`.
 *
 * A method throws or rejects if the store does not respond in time, is full or is closed, or if an argument exceeds a
 * limit. A write that failed may still take effect, because the response may have been lost. To make sure that it took
 * effect, repeat the write with the same `token`.
 */
export interface Store {
  /** Returns a value, or `undefined` if the key has no value or the value has expired. */
  get(key: string): Awaitable<StoredValue | undefined>;
  /** Writes a value. Returns its new version, or `undefined` if the version did not match. */
  set(key: string, value: string, options: SetOptions): Awaitable<string | undefined>;
  /** Removes a value. Returns `false` if the version did not match. */
  delete(key: string, options?: DeleteOptions): Awaitable<boolean>;
  /**
   * Returns the values whose keys begin with `prefix`, sorted by key. Pass the last key as `after` to continue. Values
   * that are written while you list may be missing.
   */
  list(prefix: string, options: ListOptions): Awaitable<readonly StoredEntry[]>;
  /** Appends an entry to a log. Returns its id. */
  append(log: string, value: string, options: AppendOptions): Awaitable<number>;
  /** Reads entries of a log in order. */
  read(log: string, options: ReadOptions): Awaitable<LogPage>;
  /** Drops all entries of a log with a lower id than `before`. */
  trim(log: string, before: number): Awaitable<void>;
  /** Sends a string to all subscribers of a topic, in every process. */
  publish(topic: string, text: string): Awaitable<void>;
  /**
   * Calls `listener` for each string that is published from now on. A topic is a log whose readers are notified. With
   * `after`, the listener first gets the entries after this id. Returns a function that ends the subscription.
   */
  subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Awaitable<() => void>;
  /** The lease by which other processes see that this process is running. */
  readonly lease: Lease;
  /** Closes the store. Pending operations are rejected. */
  close(): Awaitable<void>;
  /**
   * Internals for servers and the test kit.
   *
   * @ignore
   */
  readonly [INTERNALS]: StoreInternals;
}

/**
 * Shows other processes that use the store that this process is running: a value that expires soon after the process
 * has ended. If a process was blocked for longer than `ms`, other processes assume that the process has ended although
 * it is still running. Writes that two processes may make at the same time therefore still need a `version`.
 */
export interface Lease {
  /** Id of this process. */
  readonly id: string;
  /** Milliseconds after which other processes notice that this process has ended. */
  readonly ms: number;
  /** Renews the lease until the returned function is called. Settles when other processes can find the lease. */
  hold(): Promise<() => void>;
  /** Returns whether the process with this id holds its lease. */
  isHeld(id: string): Awaitable<boolean>;
}

/** Called for each entry of a topic. */
export type TopicListener = (text: string, id: number) => void;

/** Options of a subscription to a topic. */
export interface SubscribeOptions {
  /** Id of the last known entry. Defaults to the newest entry. */
  readonly after?: number;
  /**
   * The `epoch` of the log that contains the entry `after`. If omitted, the subscription does not notice that the log
   * was lost and has begun again.
   */
  readonly epoch?: string;
  /**
   * Called if entries are lost: they were dropped or have expired before they were read, or the topic was lost and has
   * begun again. `last` is the newest id, or 0 if the topic no longer exists.
   */
  readonly onGap?: (last: number) => void;
}

/**
 * Internals for servers and the test kit.
 *
 * @internal
 */
export interface StoreInternals {
  /** Opens the engine of the store. */
  connect(options?: EngineOptions): Awaitable<StoreEngine>;
  /** Whether other processes can read its data. */
  readonly isShared: boolean;
  /** Milliseconds that one operation may take. */
  readonly timeoutMs: number;
  /** Maximum size of one value, in bytes of UTF-8. The engine may have a lower limit. */
  readonly valueBytes: number;
  /**
   * Creates a store with its own engine, like the store of another process. It reads its topics every `pollMs`
   * milliseconds.
   */
  reopen(options?: { readonly pollMs?: number }): Store;
  /**
   * Connects a server to the store.
   *
   * @throws {TypeError} if the store is shared by several processes, and the server has no `secret`.
   */
  share(host: SharingHost): SharedState;
}

/** The parts of a server that a store needs. */
export interface SharingHost {
  readonly sealer: Sealer;
  readonly changes: Changes;
  readonly limits: Bounds;
  readonly observer: Observer;
}

/**
 * The state that all instances of a server share. If the store fails, the methods notify the observer and return as if
 * the store were empty. Only the methods of {@linkcode SharedLogs} reject.
 */
export interface SharedState extends SharedLogs {
  /**
   * Returns the function that limits tenants. `undefined` unless the limits of tenants apply to all instances together.
   */
  limitTenants(accounts: Accounts): Limit | undefined;
  /**
   * Opens the shared state of the session with this id. Returns `undefined` if the client has too many operations in
   * progress.
   */
  openSession(facts: SharedSessionFacts): Promise<SharedSession | undefined>;
  /**
   * Tries to record the end of a session, if it is not recorded in the store yet. Returns whether the end was recorded
   * or is still pending. Returns `undefined` if the session has no pending end.
   */
  findEnd(id: string): Promise<"written" | "waiting" | undefined>;
  /**
   * Spends an id that may be used only once, and returns the previous state of the id. Returns `undefined` if the store
   * did not respond, because it is then unknown whether the id was spent.
   */
  spend(mark: Mark, ttlMs: number): Promise<Marking | undefined>;
  /** The rules of `enable` and `disable` that apply to all instances. Set if the server shares them. */
  readonly rules?: SharedRules;
  /** Shares the rules of `enable` and `disable`. The rules of `trunk`, the server of all paths, apply in addition. */
  shareRules(ruled: Ruled, trunk?: SharedRules): void;
  /** Writes pending changes, and closes the store unless another server of this process uses it. */
  close(): Promise<void>;
}

/** The handlers of a server, and the rules of `enable` and `disable` for them. */
export interface Ruled {
  readonly registry: Registry;
  readonly visibility: Visibility;
}

/** The facts about a session from which its shared state is opened. */
export interface SharedSessionFacts {
  readonly id: string;
  /** Milliseconds until the session expires. */
  readonly ms: number;
  /** The mark that is stored when the session ends. */
  readonly mark: Mark;
  /** Account of the client that uses the session. */
  readonly account: Account;
  readonly accounts: Accounts;
}

/** The part of a session's state that the client can change. */
export interface SessionState {
  readonly level?: string;
  readonly uris?: readonly string[];
}

/** The state of a session that all instances share. */
export interface SharedSession {
  /** Whether the session has ended. `undefined` if the store did not respond. */
  readonly isEnded: boolean | undefined;
  /** Time at or before which all sessions of the client have ended, in milliseconds since 1970. */
  readonly cutoff: number;
  readonly state: SessionState;
  /** Connects the session of this process, which then receives changes. */
  join(local: LocalSession): void;
  /** Disconnects the session of this process. */
  leave(): void;
  /** Marks the session as used by this process. */
  touch(): Promise<void>;
  /**
   * Reserves a place for the pending end of this session, until the store confirms the end. Returns `false` if too many
   * ended sessions of this client, or of all clients, already have a place.
   */
  reserveEnd(): boolean;
  /**
   * Ends the session on all instances. Resolves to `false` if the store did not confirm the end. The end then stays
   * pending in the reserved place until the store confirms it.
   */
  end(): Promise<boolean>;
  /** Ends the session on all instances, unless another instance has used it later. */
  retire(): Promise<void>;
  /** Reads the changes of other instances, and applies them to the session of this process. */
  refreshLocal(): Promise<void>;
  /**
   * Changes the state on all instances. `change` is called with the last known state, and again with the new state if
   * another instance has written a new state in the meantime. `change` may throw to reject the change.
   */
  update(change: (state: SessionState) => SessionState): Promise<void>;
  /** Creates an id for a request to the client. */
  makeQuestionId(): Promise<string>;
  /**
   * Passes a message of the client on to the instance that runs the call to which the message belongs. A response is
   * passed on only if another instance created its id. Resolves to `false` if the client has sent too many messages.
   */
  relay(message: Response | Notification): Promise<boolean>;
  /** Writes the new events of a stream to its log. */
  write(stream: WrittenStream): void;
  /** Renews the log of a stream that has no new events. */
  renew(stream: WrittenStream): void;
  /**
   * Finds the events of another instance's stream after an event. Returns `undefined` if some of them are no longer
   * kept.
   */
  findStream(name: string, after: number): Promise<FoundStream | undefined>;
  /**
   * Notifies other instances that this instance writes to the client: to the stream with this name, or to the
   * standalone stream.
   */
  claim(stream?: string): void;
}

/** Functions that apply changes of other instances to a session of this process. */
export interface LocalSession {
  end(): void;
  apply(state: SessionState): void;
  /** Handles a message that another instance has received. */
  receive(message: unknown): void;
  /** Closes the connection of a stream, or of the standalone stream. */
  yield(stream: string | undefined): void;
}

/** A stream whose events are written to a log. */
export interface WrittenStream {
  readonly name: string;
  /** Whether this is the standalone stream, which carries notifications outside of any request. */
  readonly isOwn: boolean;
  /** The kept events. The first event in the list has the number `first`. */
  readonly events: readonly { readonly text: string }[];
  readonly first: number;
  readonly last: number;
  readonly isOver: boolean;
}

/** Events of another instance's stream. */
export interface FoundStream {
  readonly isOwn: boolean;
  readonly isOver: boolean;
  /** Texts of the events after the requested one, without gaps. */
  readonly texts: readonly string[];
  /**
   * Calls `onEvent` for each later event, and `onEnd` once when the stream ends. Returns a function that stops
   * following the stream.
   */
  follow(onEvent: (text: string, place: number) => void, onEnd: () => void): () => void;
}

/** A change that one instance sends to the other instances. */
export type SharedChange = Extract<Change, { readonly kind: "resource" | "list" }> | ExtensionNews;
