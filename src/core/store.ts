/**
 * The contract of a store: state that several instances of a server share.
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
  /** The text that was written. */
  readonly value: string;
  /** Random text that every write changes. Versions can be compared for equality, but have no order. */
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
   * The version that the value must have: the value is only written if nobody has changed it since. `null` requires that
   * there is no value. Without it, the value is written in any case.
   */
  readonly version?: string | null;
  /**
   * The new version: 1 to 256 letters, digits, `-` and `_`. A write whose `token` is the present version has succeeded
   * before, and changes nothing. Defaults to random text.
   */
  readonly token?: string;
}

/** Options of a removal. */
export interface DeleteOptions {
  /** The version that the value must have. Without it, the value is removed in any case. */
  readonly version?: string;
}

/** Options of an addition to a log. */
export interface AppendOptions {
  /** Milliseconds after which the whole log expires, unless something is appended before. A fraction is rounded up. */
  readonly ttlMs: number;
  /** Number of entries that the log keeps. It drops the oldest ones. */
  readonly max: number;
  /**
   * Name of the entry: 1 to 256 letters, digits, `-` and `_`. If the log has an entry with this token, nothing is
   * appended, and the id of that entry is returned. Defaults to random text.
   */
  readonly token?: string;
}

/** Options of a read from a log. */
export interface ReadOptions {
  /** Id of the last entry that is known already. Defaults to 0, which is before all entries. */
  readonly after?: number;
  /** Maximum number of entries to return. 0 returns no entries, but the state of the log. */
  readonly limit: number;
}

/** Options of a list of values. */
export interface ListOptions {
  /** The last key that is known already. Defaults to the empty text, which is before all keys. */
  readonly after?: string;
  /** Maximum number of values to return, from 1 to 1000. */
  readonly limit: number;
}

/** The state of a log. */
export interface LogHead {
  /** Id of the oldest entry that the log keeps, or `last + 1` if it keeps none. */
  readonly first: number;
  /** Id of the newest entry that was appended, or 0 if the log does not exist or has expired. */
  readonly last: number;
  /**
   * Random text that is made with the log, and the empty text if the log does not exist. Another text means that the log
   * was lost or has expired and has begun again, so its ids stand for other entries.
   */
  readonly epoch: string;
}

/** Part of a log. */
export interface LogPage extends LogHead {
  /** The entries in order. */
  readonly entries: readonly {
    /** Position in the log: 1 for the first entry, and one more for each that follows. */
    readonly id: number;
    /** The text that was appended. */
    readonly value: string;
  }[];
}

/** What each operation of an engine gets. */
export interface EngineOptions {
  /** Aborts when the operation has taken too long, or the store is closed: nobody waits for its result any more. */
  readonly signal: AbortSignal;
}

/** What each write of an engine gets. */
export interface EngineWriteOptions extends EngineOptions {
  /** Distinguishes a repetition from a second write. */
  readonly token: string;
}

/**
 * The operations of an engine, such as Redis or SQLite, that becomes a store. Keys, log names and tokens are short texts
 * of letters, digits, `-` and `_`. Values are opaque well-formed texts without U+0000. Times to live are whole
 * milliseconds.
 *
 * Each operation may be repeated with the same arguments, because an answer may be lost on its way. The `token` of a
 * write distinguishes a repetition from a second write. An operation that fails is repeated, unless it throws a
 * `RangeError` or a `TypeError`, which mean that it can never succeed.
 */
export interface StoreEngine {
  /** Maximum bytes of one value or entry, in UTF-8, if it is less than `valueBytes` of the store. */
  readonly valueBytes?: number;
  /** Returns a value, or `undefined` if there is none or it has expired. */
  get(key: string, options: EngineOptions): Awaitable<StoredValue | undefined>;
  /**
   * Writes a value, with `token` as its new version, in one atomic step. Returns `true` if the value has this version
   * afterwards, also if it had it before. Returns `false` if `version` does not match.
   */
  set(key: string, value: string, options: SetOptions & EngineWriteOptions): Awaitable<boolean>;
  /** Removes a value. Returns `false` if it has another version than `version`, and `true` if there is none. */
  delete(key: string, options: DeleteOptions & EngineOptions): Awaitable<boolean>;
  /** Returns the values whose keys begin with `prefix` and come after `after`, sorted by key. */
  list(prefix: string, options: ListOptions & EngineOptions): Awaitable<readonly StoredEntry[]>;
  /**
   * Appends an entry to a log, drops the oldest entries beyond `max`, and rings the bell of the log, in one atomic step.
   * Returns the id of the entry. Returns the id of the earlier entry if one with the same `token` is in the log.
   */
  append(log: string, value: string, options: AppendOptions & EngineWriteOptions): Awaitable<number>;
  /** Reads entries in order. */
  read(log: string, options: ReadOptions & EngineOptions): Awaitable<LogPage>;
  /** Drops all entries with a lower id than `before`. Ids of later entries do not change. */
  trim(log: string, before: number, options: EngineOptions): Awaitable<void>;
  /**
   * Returns the states of logs, in the same order. With it, all topics are checked for new entries in one round trip.
   * Without it, each is read.
   */
  heads?(logs: readonly string[], options: EngineOptions): Awaitable<readonly LogHead[]>;
  /**
   * Calls `onRing` with the name of a log that got an entry, from any process. Single rings may be late, repeated or lost.
   * Calls `onLost` if no ring will come any more; then `listen` is called again. An engine without this method is read at
   * an interval instead. Returns a function that stops it.
   */
  listen?(onRing: (log: string) => void, onLost: (error?: unknown) => void): Awaitable<() => void>;
  /** Closes the connections. */
  close?(): Awaitable<void>;
}

/**
 * State that several instances of a server share: values, logs and topics. `memoryStore` and `customStore` of
 * `@x/mcp/stores` make one, and so do `@x/mcp/stores/redis`, `/sqlite` and `/deno-kv`.
 *
 * A method throws or rejects if the store does not answer in time, is full or closed, or if an argument exceeds a limit.
 * A write that failed may still happen, because its answer may have been lost. Repeat it with the same `token` to find
 * out.
 */
export interface Store {
  /** Returns a value, or `undefined` if there is none or it has expired. */
  get(key: string): Awaitable<StoredValue | undefined>;
  /** Writes a value. Returns its new version, or `undefined` if the version did not match. */
  set(key: string, value: string, options: SetOptions): Awaitable<string | undefined>;
  /** Removes a value. Returns `false` if the version did not match. */
  delete(key: string, options?: DeleteOptions): Awaitable<boolean>;
  /**
   * Returns the values whose keys begin with `prefix`, sorted by key. Pass the last key as `after` to go on. Values that are
   * written during a list may be missing from it.
   */
  list(prefix: string, options: ListOptions): Awaitable<readonly StoredEntry[]>;
  /** Appends an entry to a log. Returns its id. */
  append(log: string, value: string, options: AppendOptions): Awaitable<number>;
  /** Reads entries of a log in order. */
  read(log: string, options: ReadOptions): Awaitable<LogPage>;
  /** Drops all entries of a log with a lower id than `before`. */
  trim(log: string, before: number): Awaitable<void>;
  /** Sends a text to all subscribers of a topic, in every process. */
  publish(topic: string, text: string): Awaitable<void>;
  /**
   * Calls `listener` for each text that is published from now on. A topic is a log with a bell: with `after`, the
   * listener first gets the entries after that id. Returns a function that ends the subscription.
   */
  subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Awaitable<() => void>;
  /** Proof that this process lives, for other processes. */
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
 * Proof that this process lives, for other processes that use the store: a value that expires soon after the process has
 * ended. A process that was blocked for longer than `ms` counts as dead though it goes on, so what two processes may write
 * still needs a `version`.
 */
export interface Lease {
  /** Id of this process. */
  readonly id: string;
  /** Milliseconds after which others know that this process has ended. */
  readonly ms: number;
  /** Renews the lease until the returned function is called. Settles once others can find it. */
  hold(): Promise<() => void>;
  /** Whether the process with this id holds its lease. */
  isHeld(id: string): Awaitable<boolean>;
}

/** Called for each entry of a topic. */
export type TopicListener = (text: string, id: number) => void;

/** Options of a subscription to a topic. */
export interface SubscribeOptions {
  /** Id of the last known entry. Defaults to the newest entry. */
  readonly after?: number;
  /** The `epoch` of the log whose entry is `after`. Without it, a log that has begun again since is not noticed. */
  readonly epoch?: string;
  /**
   * Called if entries are lost, because the topic has dropped or expired them before they were read, or was lost and has
   * begun again. `last` is the newest id, or 0 if the topic does not exist any more.
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
  /** Whether other processes can reach its data. */
  readonly isShared: boolean;
  /** Milliseconds that one operation may take. */
  readonly timeoutMs: number;
  /** Maximum bytes of one value, in UTF-8. The engine may state less. */
  readonly valueBytes: number;
  /** Makes a store with an engine of its own, as another process does. It reads its topics every `pollMs` milliseconds. */
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
 * State that the instances of a server share. If the store fails, the methods notify the observer and return as if it
 * were empty. Only those of single values reject.
 */
export interface SharedState extends SharedLogs {
  /** Returns the limit of each tenant. `undefined` unless tenants have limits that all instances share. */
  limitTenants(accounts: Accounts): Limit | undefined;
  /**
   * Opens what the instances know about a session with this id. Returns `undefined` if the client has too many operations
   * in progress.
   */
  openSession(facts: SharedSessionFacts): Promise<SharedSession | undefined>;
  /** Tries to write the end of a session if it waits. Returns whether it still does. `undefined` if it never waited. */
  findEnd(id: string): Promise<"written" | "waiting" | undefined>;
  /**
   * Spends an id that may be used once, and returns what was known of it before. `undefined` if the store did not answer:
   * then it is unknown whether the id was spent.
   */
  spend(mark: Mark, ttlMs: number): Promise<Marking | undefined>;
  /** The rules of `enable` and `disable` that hold on all instances, if the server shares them. */
  readonly rules?: SharedRules;
  /** Shares the rules of `enable` and `disable`. Those of `trunk`, the server of all paths, hold too. */
  shareRules(ruled: Ruled, trunk?: SharedRules): void;
  /** Sends what is pending, and closes the store unless another server of this process uses it. */
  close(): Promise<void>;
}

/** The handlers of a server, and the rules of `enable` and `disable` for them. */
export interface Ruled {
  readonly registry: Registry;
  readonly visibility: Visibility;
}

/** What the instances must know of a session to find what they share. */
export interface SharedSessionFacts {
  readonly id: string;
  /** Milliseconds until the session ends in any case. */
  readonly ms: number;
  /** The mark of its end. */
  readonly mark: Mark;
  /** Account of the client that uses it, and the accounts of the server. */
  readonly account: Account;
  readonly accounts: Accounts;
}

/** The part of a session's state that its client can change. */
export interface SessionState {
  readonly level?: string;
  readonly uris?: readonly string[];
}

/** A session as the instances know it together. */
export interface SharedSession {
  /** Whether the session has ended. `undefined` if the store did not answer. */
  readonly isEnded: boolean | undefined;
  /** Time at or before which all sessions of its client have ended, in milliseconds since 1970. */
  readonly cutoff: number;
  readonly state: SessionState;
  /** Connects the state of this process, which then receives changes. */
  join(local: LocalSession): void;
  /** Disconnects the state of this process. */
  leave(): void;
  /** Marks the session as used by this process. */
  touch(): Promise<void>;
  /** Takes a place among the ends that wait for the store. Returns `false` if there is none. */
  reserveEnd(): boolean;
  /**
   * Ends the session for all instances. Resolves to `false` if the store did not confirm it. The end then waits in the
   * reserved place until it does.
   */
  end(): Promise<boolean>;
  /** Ends the session for all instances unless another one has used it later. */
  retire(): Promise<void>;
  /** Reads what other instances have written, and changes the session of this process accordingly. */
  refreshLocal(): Promise<void>;
  /**
   * Changes the state for all instances. `change` may throw, to refuse it: it is called with the state that this process
   * knows, and with those that others have written meanwhile.
   */
  update(change: (state: SessionState) => SessionState): Promise<void>;
  /** Makes an id for a request to the client. */
  makeQuestionId(): Promise<string>;
  /**
   * Passes a message of the client to the other instances, one of which runs the call that it is about. A response is
   * only passed on if another instance made its id. Resolves to `false` if the client has sent too many.
   */
  relay(message: Response | Notification): Promise<boolean>;
  /** Writes the new events of a stream to its log. */
  write(stream: WrittenStream): void;
  /** Renews the log of a stream that has no new events. */
  renew(stream: WrittenStream): void;
  /** Finds the events of a stream of another instance after a place. Returns `undefined` if some are not kept. */
  findStream(name: string, after: number): Promise<FoundStream | undefined>;
  /** Tells other instances that this one writes to the client: a stream by its name, or the session's own. */
  claim(stream?: string): void;
}

/** Callbacks of a process for changes of its session by another one. */
export interface LocalSession {
  end(): void;
  apply(state: SessionState): void;
  /** Handles a message that another instance has received. */
  receive(message: unknown): void;
  /** Closes the connection of a stream, or of the session's own. */
  yield(stream: string | undefined): void;
}

/** A stream whose events are written to a log. */
export interface WrittenStream {
  readonly name: string;
  /** Whether it carries notifications outside of any request. */
  readonly isOwn: boolean;
  /** Kept events. The first has the number `first`. */
  readonly events: readonly { readonly text: string }[];
  readonly first: number;
  readonly last: number;
  readonly isOver: boolean;
}

/** Events of a stream of another instance. */
export interface FoundStream {
  readonly isOwn: boolean;
  readonly isOver: boolean;
  /** Texts of the events after the place, without gaps. */
  readonly texts: readonly string[];
  /** Calls `onEvent` for each later event, and `onEnd` once if the stream ends. Returns a function that stops it. */
  follow(onEvent: (text: string, place: number) => void, onEnd: () => void): () => void;
}

/** A change that instances tell each other. */
export type SharedChange = Extract<Change, { readonly kind: "resource" | "list" }> | ExtensionNews;
