/**
 * The interface of a store, which contains the state that several instances of a server share.
 */
import type { Account } from "../capacity/account.ts";
import type { Change, Changes, ExtensionNews } from "../visibility/changes.ts";
import type { Registry } from "../visibility/registry.ts";
import type { INTERNALS } from "../../core/internals.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import type { Notification, Response } from "../../core/protocol/jsonrpc.ts";
import type { Charge, ChargeOptions, Charging } from "../capacity/charges.ts";
import type { Clock } from "../../core/timers.ts";
import type { Bounds } from "../capacity/limits.ts";
import type { Mark, Marking } from "./marked_ids.ts";
import type { Observer } from "../call/observer.ts";
import type { SharedStore } from "../call/shared_values.ts";
import type { Sealer } from "../call/sealer.ts";
import type { SharedRules, Visibility } from "../visibility/visibility.ts";

/** A value, or a promise for the value. */
export type Awaitable<T> = T | Promise<T>;

/** A value that a store contains. */
export interface StoredValue {
  /** The string that `set` has written. */
  readonly value: string;
  /** Text that changes with every write. Compare versions only for equality, because versions have no order. */
  readonly version: string;
}

/** A value that a store contains, with its key. */
export interface StoredEntry extends StoredValue {
  /** The value's key. */
  readonly key: string;
}

/** Options of a write. */
export interface SetOptions {
  /** Milliseconds after which the value expires. Fractions are rounded up. */
  readonly ttlMs: number;
  /**
   * The expected version. The value is written only if the current value has this version, which means that no other
   * process has changed the value. `null` requires that the key has no value. If omitted, the value is written
   * unconditionally.
   */
  readonly version?: string | null;
  /**
   * The new version: 1 to 256 letters, digits, `-` and `_`. If the value already has this version, the write counts as
   * a retry, and succeeds without a change. Defaults to random text.
   */
  readonly token?: string;
}

/** Options of `delete`. */
export interface DeleteOptions {
  /** The expected version. If omitted, the value is removed unconditionally. */
  readonly version?: string;
}

/** Options of `append`. */
export interface AppendOptions {
  /** Milliseconds after the last `append` at which the whole log expires. Fractions are rounded up. */
  readonly ttlMs: number;
  /** Maximum number of entries in the log. The oldest entries are dropped. */
  readonly max: number;
  /**
   * Unique name of the entry: 1 to 256 letters, digits, `-` and `_`. If the log already contains an entry with this
   * token, the call counts as a retry: nothing is appended, and the existing entry's id is returned. Defaults to random
   * text.
   */
  readonly token?: string;
}

/** Options of `read`. */
export interface ReadOptions {
  /** Id of the last entry that the caller has. Only later entries are returned. Defaults to 0, before all entries. */
  readonly after?: number;
  /** Maximum number of entries to return. With 0, only `first`, `last` and `epoch` are returned. */
  readonly limit: number;
}

/** Options of `list`. */
export interface ListOptions {
  /** The last key that the caller has. Only later keys are returned. Defaults to an empty string, before all keys. */
  readonly after?: string;
  /** Maximum number of values to return, from 1 to 1000. */
  readonly limit: number;
}

/** The range of a log's entries. */
export interface LogHead {
  /** Id of the oldest entry in the log, or `last + 1` if the log has no entries. */
  readonly first: number;
  /** Id of the newest entry that was appended, or 0 if the log does not exist or has expired. */
  readonly last: number;
  /**
   * Random text that is created together with the log, or an empty string if the log does not exist. If the text has
   * changed, the old log was lost or has expired, and a new log has been created. Ids from the old log then refer to
   * different entries.
   */
  readonly epoch: string;
}

/** Some of a log's entries. */
export interface LogPage extends LogHead {
  /** The entries in ascending order of their ids. */
  readonly entries: readonly {
    /** Position in the log. The first entry has id 1, and each further entry has the next higher id. */
    readonly id: number;
    /** The string that `append` has written. */
    readonly value: string;
  }[];
}

/** Options that a store passes to every operation of an engine. */
export interface EngineOptions {
  /** Aborts when the operation has timed out or the store was closed. The result is then ignored. */
  readonly signal: AbortSignal;
}

/** Options that a store passes to the function that connects to its engine. */
export interface EngineConnectOptions extends EngineOptions {
  /** The clock of the store: the clock of the first server that uses it, or else the system clock. */
  readonly clock: Clock;
}

/** Options that a store passes to every write of an engine. */
export interface EngineWriteOptions extends EngineOptions {
  /** Identifies the write. A retry has the same token. */
  readonly token: string;
}

/**
 * The operations of a storage engine, such as Redis or SQLite, on which a store is built. Keys, log names and tokens
 * are short strings of letters, digits, `-` and `_`. Values are arbitrary well-formed strings without U+0000. Each time
 * to live is an integer in milliseconds.
 *
 * The store retries an operation that fails, with the same arguments, because the response may have been lost. The
 * `token` distinguishes a retry from another write. An operation that can never succeed must throw a `RangeError` or a
 * `TypeError`. The store does not retry such an operation.
 */
export interface StoreEngine {
  /**
   * Maximum size of one value or entry in UTF-8, in bytes. Set this limit if it is lower than the store's `valueBytes`.
   */
  readonly valueBytes?: number;
  /** Returns a value, or `undefined` if the key has no value or the value has expired. */
  get(key: string, options: EngineOptions): Awaitable<StoredValue | undefined>;
  /**
   * Writes a value with `token` as the new version, in one atomic step. Returns `true` if the value was written, or if
   * the value already had the version `token`. Returns `false` if `version` does not match.
   */
  set(key: string, value: string, options: SetOptions & EngineWriteOptions): Awaitable<boolean>;
  /** Removes a value. Returns `true` also if the key has no value, and `false` if the version differs. */
  delete(key: string, options: DeleteOptions & EngineOptions): Awaitable<boolean>;
  /** Returns the values whose keys begin with `prefix` and are greater than `after`, sorted by key. */
  list(prefix: string, options: ListOptions & EngineOptions): Awaitable<readonly StoredEntry[]>;
  /**
   * In one atomic step, appends an entry to a log, drops the oldest entries beyond `max`, and notifies the listeners in
   * all processes. Returns the entry's id. If the log already contains an entry with the same `token`, returns the
   * existing entry's id.
   */
  append(log: string, value: string, options: AppendOptions & EngineWriteOptions): Awaitable<number>;
  /** Reads a log's entries in ascending order of their ids. */
  read(log: string, options: ReadOptions & EngineOptions): Awaitable<LogPage>;
  /** Drops all entries whose id is lower than `before`. The ids of the remaining entries do not change. */
  trim(log: string, before: number, options: EngineOptions): Awaitable<void>;
  /**
   * Returns the ranges of several logs, in the order of `logs`. With this method, the store checks all topics for new
   * entries in one round trip. Without this method, the store reads each topic separately.
   */
  heads?(logs: readonly string[], options: EngineOptions): Awaitable<readonly LogHead[]>;
  /**
   * Calls `onRing` with a log's name when any process has appended an entry to the log. Individual notifications may be
   * late, repeated or lost. Calls `onLost` when no more notifications can arrive. The store then calls `listen` again.
   * Returns a function that stops listening, or `undefined` if the database cannot notify this process. Without this
   * method or this function, the store polls its topics.
   */
  listen?(onRing: (log: string) => void, onLost: (error?: unknown) => void): Awaitable<(() => void) | undefined>;
  /** Closes the engine's connections. */
  close?(): Awaitable<void>;
}

/**
 * Values, logs and topics that several instances of a server share. Create a store with `memoryStore` or `customStore`
 * from `@x/mcp/stores`, or with a function from `@x/mcp/stores/redis`, `/sqlite` or `/deno-kv`.
 *
 * A method throws or rejects if the store does not respond in time, is full or is closed, or if an argument exceeds a
 * limit. A write that failed may still have taken effect, because only the response may have been lost. To complete
 * such a write, repeat the call with the same `token`.
 */
export interface Store {
  /** Returns a value, or `undefined` if the key has no value or the value has expired. */
  get(key: string): Awaitable<StoredValue | undefined>;
  /** Writes a value. Returns the new version, or `undefined` if `version` does not match. */
  set(key: string, value: string, options: SetOptions): Awaitable<string | undefined>;
  /**
   * Removes a value. Returns `false` if `version` does not match. Returns `true` if the value was removed, or if the key
   * has no value. Therefore several callers that remove the same version all get `true`. To let only one caller succeed,
   * write a value with `set` and `version`.
   */
  delete(key: string, options?: DeleteOptions): Awaitable<boolean>;
  /**
   * Returns the values whose keys begin with `prefix`, sorted by key. To read further values, pass the last key as
   * `after`. Values that are written between two calls may be missing.
   */
  list(prefix: string, options: ListOptions): Awaitable<readonly StoredEntry[]>;
  /** Appends an entry to a log. Returns the entry's id. */
  append(log: string, value: string, options: AppendOptions): Awaitable<number>;
  /** Reads a log's entries in ascending order of their ids. */
  read(log: string, options: ReadOptions): Awaitable<LogPage>;
  /** Drops all entries of a log whose id is lower than `before`. */
  trim(log: string, before: number): Awaitable<void>;
  /** Sends a string to all subscribers of a topic, in all processes. */
  publish(topic: string, text: string): Awaitable<void>;
  /**
   * Calls `listener` for each string that is published after the subscription has begun. A topic is a log whose
   * subscribers are notified of new entries. With `after`, the listener first receives all entries after this id.
   * Returns a function that ends the subscription.
   */
  subscribe(topic: string, listener: TopicListener, options?: SubscribeOptions): Awaitable<() => void>;
  /** The lease that shows other processes that this process is running. */
  readonly lease: Lease;
  /** Closes the store. Pending operations reject. */
  close(): Awaitable<void>;
  /**
   * Internal functions that servers and the test kit use.
   *
   * @ignore
   */
  readonly [INTERNALS]: StoreInternals;
}

/** The operations of a store, without the functions that control the store. */
export type StoreView = Omit<Store, "close" | typeof INTERNALS>;

/**
 * A value in the store that expires soon after this process has ended, so that other processes notice the end. If this
 * process is blocked for longer than `ms` milliseconds, other processes assume that this process has ended. Therefore
 * writes that two processes may make concurrently still need a `version`.
 */
export interface Lease {
  /** Id of this process. */
  readonly id: string;
  /** Milliseconds from the end of this process until other processes notice the end. */
  readonly ms: number;
  /**
   * Time until which other processes certainly see the lease, in milliseconds on the monotonic clock of this process
   * (`performance.now()`, or the `clock` of `memoryStore`). In the past if the lease is not held, or if the wall clock
   * says that it has expired. The time is measured from the beginning of the last renewal.
   */
  readonly heldUntil: number;
  /** Acquires the lease, and renews it until the returned function is called. Resolves when other processes see it. */
  hold(): Promise<() => void>;
  /**
   * Returns the number of the lease's current term, if other processes certainly see the lease for another tenth of
   * `ms`. Otherwise renews the lease first. The number changes if the lease may have expired in the meantime, so that
   * another process may have taken over the work of this process. Throws or rejects if the store does not respond.
   */
  confirm(): Awaitable<number>;
  /**
   * Returns whether the process with this id may still be running. Call it repeatedly: it returns `false` only if checks
   * over two fifths of `ms` have found no lease, because the lease of a running process may be missing until its next
   * renewal. It also returns `false` if the process has not renewed its lease for twice `ms`.
   */
  isHeld(id: string): Awaitable<boolean>;
}

/** Called with the text and the id of each entry in a topic. */
export type TopicListener = (text: string, id: number) => void;

/** Options of a subscription to a topic. */
export interface SubscribeOptions {
  /** Id of the last entry that the subscriber already has. Defaults to the newest entry's id. */
  readonly after?: number;
  /** The `epoch` of the log of `after`. If omitted, the subscription does not detect that the log was created again. */
  readonly epoch?: string;
  /**
   * Called if the subscription has missed entries, because entries were dropped or expired before they were read, or
   * because the topic was lost and created again. `last` is the newest entry's id, or 0 if the topic no longer exists.
   */
  readonly onGap?: (last: number) => void;
}

/**
 * Internal functions that servers and the test kit use.
 *
 * @internal
 */
export interface StoreInternals {
  /** Opens the store's engine. */
  connect(options?: EngineConnectOptions): Awaitable<StoreEngine>;
  /** Whether other processes can read the store's data. */
  readonly isShared: boolean;
  /** Timeout of one operation, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum size of one value in UTF-8, in bytes. The engine may have a lower limit. */
  readonly valueBytes: number;
  /**
   * Creates another store with its own connection to the same data, as if the new store belonged to another process.
   * The new store polls its topics every `pollMs` milliseconds.
   */
  reopen(options?: { readonly pollMs?: number }): Store;
  /** Throws if the store was closed. `action` names for the error what needs the store, such as `create a server`. */
  requireOpen(action: string): void;
  /**
   * Connects a server to the store.
   *
   * @throws {TypeError} if several processes share the store, and the server has no `secret`.
   */
  share(host: SharingHost): SharedState;
}

/** The parts of the server that a store uses. */
export interface SharingHost extends Charging {
  readonly sealer: Sealer;
  readonly changes: Changes;
  readonly limits: Bounds;
  readonly observer: Observer;
}

/**
 * The state that all instances of a server share. If the store fails, the methods report the failure to the observer,
 * and return the same result as for an empty store. If a client has used up its share of the store, the methods reject
 * with the error for the client, code -31503, because such a refusal is no failure of the store.
 */
export interface SharedState extends SharedStore {
  /** The internals of the store without its operations, which the parts of a server use only through this object. */
  readonly store: StoreInternals;
  /**
   * Begins to connect to the store, so that the first operation need not wait for the connection. Does not wait, because
   * a server works without its store. If the store does not respond, tries again in the background. Does nothing if called
   * again.
   */
  connect(): void;
  /** Reads a value that does not exist, for the process itself. Rejects if the store does not respond. */
  check(): Promise<void>;
  /** Opens the part of the store that belongs to one part of the server, such as a layer or an extension. */
  openPart(name: string): Promise<StorePart>;
  /** Opens the shared state of a session. */
  openSession(info: SharedSessionInfo): Promise<SharedSession>;
  /**
   * If the end of a session is not recorded in the store yet, tries to record the end. Resolves to `ended` if the end
   * was recorded, to `waiting` if the end is still pending, and to `undefined` if the session has no pending end.
   */
  findEnd(id: string): Promise<"ended" | "waiting" | undefined>;
  /**
   * Marks an id as used for a client, and resolves to the id's state before the change. Resolves to `undefined` if the
   * store did not respond. In that case, it is unknown whether the id was used before.
   */
  markUsed(account: Account, mark: Mark, options: MarkUsedOptions): Promise<Marking | undefined>;
  /**
   * Resolves to the time since which the store records used ids, in milliseconds since 1970. Call it before an id is
   * created whose use is recorded with `isDated`. Resolves to `undefined` if the store did not respond.
   */
  sinceSpent(account: Account): Promise<number | undefined>;
  /** Charges a client for bytes in the store. Returns `undefined` if there is no room. */
  keep(account: Account, bytes: number, options: ChargeOptions): Charge | undefined;
  /** The rules that `enable` and `disable` have set for all instances. Set after `shareRules` was called. */
  readonly rules?: SharedRules;
  /** `trunk` contains the rules for all paths of the server, which apply in addition to the rules for this path. */
  shareRules(ruled: Ruled, trunk?: SharedRules): void;
  /** Writes pending changes, and closes the store unless another server in this process uses the store. */
  close(): Promise<void>;
}

/** Options of {@linkcode SharedState.markUsed}. */
export interface MarkUsedOptions {
  /** Milliseconds for which the list with the mark is stored. */
  readonly ttlMs: number;
  /**
   * Whether an id counts as used if it is older than the time of `sinceSpent`. The store may then have lost its use.
   * Without this option, an id of a store that has lost its data counts as unused.
   */
  readonly isDated?: boolean;
  /** The mark that earlier versions, which may run at the same time, have set for the same id in another list. */
  readonly former?: Mark;
}

/** The part of a store that contains only the keys, logs and topics of one part of one server. */
export interface StorePart {
  /** The operations that the part makes for the process. */
  readonly own: StoreView;
  /**
   * The operations that one request of a client causes, or that continue the work of such a request. They count towards
   * the client's share.
   */
  by(account: Account): StoreView;
}

/** A server's handlers, and the rules that `enable` and `disable` have set for the handlers. */
export interface Ruled {
  readonly registry: Registry;
  readonly visibility: Visibility;
}

/** The facts that are required to open a session's shared state. */
export interface SharedSessionInfo {
  readonly id: string;
  /** Milliseconds until the session expires. */
  readonly ms: number;
  /** Account of the client that uses the session. */
  readonly account: Account;
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
  readonly state: SessionState;
  /** Connects this process's session, so that changes on other instances are applied to the session. */
  join(local: LocalSession): void;
  /** Disconnects this process's session. */
  leave(): void;
  /** Records that this process has used the session now. */
  touch(): Promise<void>;
  /**
   * Reserves a place for the end of this session. The place is used until the store confirms the end. Returns `false`
   * if the client, or all clients together, already have the maximum number of unconfirmed ends.
   */
  reserveEnd(): boolean;
  /**
   * Ends the session on all instances. Resolves to `false` if the store did not confirm the end. In that case, the end
   * is pending in the reserved place until the store confirms the end.
   */
  end(): Promise<boolean>;
  /** Ends the session on all instances, unless another instance has used the session more recently. */
  retire(): Promise<void>;
  /** Reads changes from other instances, and applies the changes to this process's session. */
  refreshLocal(): Promise<void>;
  /**
   * Changes the state on all instances. `change` is called with the last known state. If another instance has written a
   * newer state, `change` is called again with the newer state. `change` may throw to reject the change.
   */
  update(change: (state: SessionState) => SessionState): Promise<void>;
  /** Creates an id for a request to the client. The id contains `call`, whose handler sends the request. */
  makeQuestionId(call: HandlerCall): Promise<string>;
  /**
   * Passes a client's message on to the instance that runs the call to which the message refers. A response is passed
   * on only if another instance created the response's id, and `mayAnswer` resolves to `true` for the call in the
   * id. Resolves to `false` if the client has sent too many messages. Rejects if the id has no room for the call, or if
   * `mayAnswer` rejects.
   */
  relay(message: Response | Notification, mayAnswer?: (call: HandlerCall) => Promise<boolean>): Promise<boolean>;
  /** The logs of the session's streams. */
  readonly streams: SharedStreams;
  /** Notifies other instances that this instance now writes this stream, or the standalone stream if omitted. */
  claim(stream?: string): void;
}

/** The logs of a session's streams, which all instances share. */
export interface SharedStreams {
  /** Appends a stream's new events to the stream's log. */
  write(stream: WrittenStream): void;
  /** Extends the lifetime of a stream's log. Called if the stream has no new events. */
  renew(stream: WrittenStream): void;
  /** Finds a stream's events after event `after`. Resolves to `undefined` if some of them are no longer stored. */
  find(name: string, after: number): Promise<FoundStream | undefined>;
}

/** Applies changes from other instances to a session in this process. */
export interface LocalSession {
  end(): void;
  apply(state: SessionState): void;
  /** Handles a client's message that another instance has received. */
  receive(message: unknown): void;
  /** Closes the connection of the stream with this name, or of the standalone stream if `stream` is `undefined`. */
  disconnectStream(stream: string | undefined): void;
}

/** A stream whose events are written to a log. */
export interface WrittenStream {
  readonly name: string;
  /** Whether this is the standalone stream, which contains notifications that do not belong to a request. */
  readonly isOwn: boolean;
  /** The calls whose replies the stream carries. They can grow. `undefined` for a standalone stream. */
  readonly calls?: readonly HandlerCall[];
  /** Identifies the only caller who may read the events. `undefined` if the rights to `calls` suffice. */
  readonly callerPrint?: string;
  /** The stored events. The first event in the list has the number `first`. */
  readonly events: readonly { readonly text: string }[];
  readonly first: number;
  readonly last: number;
  readonly isOver: boolean;
}

/** A stream that another instance has written. */
export interface FoundStream {
  readonly isOwn: boolean;
  /** The calls whose replies the stream carries. `undefined` if they are not stored. */
  readonly calls?: readonly HandlerCall[];
  /** SHA-256 hash of the stream's `callerPrint`. `undefined` if there is none, or it is not stored. */
  readonly callerHash?: string;
  readonly isOver: boolean;
  /** Texts of all stored events after the requested event. */
  readonly texts: readonly string[];
  /**
   * Calls `onEvent` for each event after `texts`, and `onEnd` once when the stream ends. Returns a function that stops
   * these calls.
   */
  follow(onEvent: (text: string, place: number) => void, onEnd: () => void): () => void;
}

/** A change that one instance sends to the other instances. */
export type SharedChange = Extract<Change, { readonly kind: "resource" | "list" }> | ExtensionNews;
