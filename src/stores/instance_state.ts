/**
 * Connects an instance of a server to a store. Hashes keys, seals values, and exchanges notifications with other
 * instances over a topic.
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { sha256 } from "../core/kit/sha256.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import type { Account } from "../server/capacity/account.ts";
import { type Charge, type ChargeOptions, keep } from "../server/capacity/charges.ts";
import type { Change, ExtensionNews } from "../server/visibility/changes.ts";
import { type Mark, type Marking, toSetName } from "../server/engine/marked_ids.ts";
import { findStored, type MarkPlace, markStored, readSince } from "../server/engine/marking.ts";
import type {
  MarkUsedOptions,
  Ruled,
  SharedChange,
  SharedSession,
  SharedSessionInfo,
  SharedState,
  SharingHost,
  StoreInternals,
  StorePart,
} from "../server/engine/store.ts";
import type { SharedRules } from "../server/visibility/visibility.ts";
import { openVersioned, sealVersioned, VERSION } from "../server/call/versioned_seal.ts";
import type { Clock } from "../core/timers.ts";
import { isMcpError } from "../core/protocol/errors.ts";
import { LogCharge, type LogChargeParts } from "./log_charge.ts";
import type { OutageReport } from "./outage_report.ts";
import { OwnChanges } from "./own_changes.ts";
import { UnwrittenEnds } from "./unwritten_ends.ts";
import type { OwnUse } from "./operations.ts";
import { PartView } from "./part_view.ts";
import { Repeated } from "./repeated.ts";
import { type Seal, SealedStore, type Sealing } from "./sealed_store.ts";
import { type StoreParts, UserView } from "./user_view.ts";

/** A notification from one instance to all other instances. */
type News =
  | { readonly changes: readonly SharedChange[] }
  /**
   * A notification about a session. `isEnded`: the session has ended. `claim`: another instance now writes to the
   * client. `relay`: the client has sent a message for another instance. Without these three fields: the state of the
   * session has changed.
   */
  | {
    readonly session: string;
    readonly isEnded?: boolean;
    readonly claim?: string | null;
    readonly relay?: Relayed;
  }
  /** The rules of `enable` and `disable` have changed. */
  | { readonly rules: true };

/** The place of a message that an instance has forwarded. */
export interface Relayed {
  /** The period in which the message was forwarded. Each period has its own log. */
  readonly period: number;
  /** The id of the entry in the log. */
  readonly id: number;
}

const RELAY_MS = 10_000;

/** The facts with which a session's record is created. */
export interface SessionRecordInfo extends SharedSessionInfo {
  /** Hash of the session id. */
  readonly key: string;
  /** The key of the mark with which an instance records that it uses the session. */
  readonly usedKey: string;
  /** The store, with the operations of the request that opens the session and of the session's own work. */
  readonly store: SealedStore;
}

/** A session's record, to which other instances send notifications. */
export interface InformedSession extends SharedSession {
  /** Reads the record. If the store does not respond, `isEnded` does not change. */
  refresh(): Promise<void>;
  /** Handles the fields of a {@linkcode News} about the session, whose types are not checked yet. */
  inform(news: Readonly<Record<string, unknown>>): void;
  /**
   * Handles a message that another instance has received from the client. Without `relayed`, handles all messages that
   * this process has not received.
   */
  receiveLocal(relayed?: Relayed): Promise<void>;
}

/** The rules of `enable` and `disable`, which other instances can change. */
export interface InformedRules extends SharedRules {
  /** Reads the rules again, because another instance may have changed them. */
  refresh(): void;
  /**
   * Tries once more to write the pending changes of this process. Returns the number of changes that could not be
   * written.
   */
  close(): Promise<number>;
}

/** The parts that {@linkcode InstanceState} needs. */
export interface StateParts extends StoreParts {
  /** The internal functions of the store. */
  readonly store: StoreInternals;
  /** Creates the record of a session. */
  readonly createSession: (state: InstanceState, info: SessionRecordInfo) => InformedSession;
  /** Creates the record of the `enable` and `disable` rules. */
  readonly createRules: (state: InstanceState, ruled: Ruled, trunk?: SharedRules) => InformedRules;
  /** The report of the store to the server's observer. */
  readonly outage: OutageReport;
  /** Closes the store, unless another server in this process uses the store. */
  readonly closeStore: () => Promise<void>;
}

/** The state that a server shares with its other instances through a store. */
// Bound: `connections.sessions` for sessions, and `store.operations` for operations and reads.
export class InstanceState implements SharedState, Sealing {
  /** The store, with the operations that this instance makes for itself. */
  readonly own: SealedStore;
  readonly #host: SharingHost;
  readonly #parts: StateParts;
  #instance?: string;
  /** The realm of the server whose path has parameters, or of a server without parameters in its path. */
  readonly #trunkRealm: string;
  /**
   * The records of sessions in this process, and of sessions that this process is opening. The limits on store
   * operations limit their number.
   */
  readonly #sessions = new Map<string, Set<InformedSession>>();
  /** For each session or key, the last operation in progress. */
  readonly #pending = new Map<string, Promise<unknown>>();
  /** Ends of sessions that the store has not confirmed yet. */
  readonly ends: UnwrittenEnds;
  /** Changes about which other instances have not been notified yet. Equal changes are sent only once. */
  readonly #changes = new BoundedMap<string, SharedChange>({ full: "refuse", max: MAX_CHANGES });
  /** Changes by this instance whose notifications the store has not returned yet. */
  readonly #own = new OwnChanges();
  /** The time since which the store records used ids. `undefined` until it is read. */
  #since?: number;
  /** Time since which the store records used ids by key, in milliseconds since 1970. */
  #keyedSince?: number;
  #isSending = false;
  #isClosed = false;
  /** Reads until the store responds, because a server that only writes would not notice that reads work again. */
  readonly #connection: Repeated;
  #connecting?: Promise<boolean>;
  readonly #listener: Repeated;
  #topic?: Promise<string>;
  /** Stops listening to other instances. Set while this instance listens. */
  #stop?: () => void;
  /** Whether an attempt to listen has failed, so that notifications may have been missed. */
  #wasLost = false;
  #rules?: InformedRules;

  constructor(host: SharingHost, parts: StateParts) {
    this.#host = host;
    this.#parts = parts;
    // The first path with a state is the path with parameters, because its server creates the servers of concrete paths.
    this.#trunkRealm = host.state.slot(InstanceState, () => host.sealer).realm;
    this.ends = new UnwrittenEnds(host);
    this.own = new SealedStore(new UserView(parts, "server"), this);
    this.#connection = new Repeated(this.clock, () => this.succeeds("get", () => this.check()));
    this.#listener = new Repeated(this.clock, () => this.#follow());
    host.changes.publish = (change) => this.#queueChange(change);
    host.changes.connect = () => {
      const loading = this.#rules?.load();
      return loading || (this.#stop ? undefined : this.listen());
    };
  }

  /** The clock of the server. */
  get clock(): Clock {
    return this.#host.ticker.clock;
  }

  get rules(): SharedRules | undefined {
    return this.#rules;
  }

  shareRules(ruled: Ruled, trunk?: SharedRules): void {
    this.#rules = this.#parts.createRules(this, ruled, trunk);
  }

  /** A random id of this instance. */
  get instance(): string {
    // Create the id when it is first needed, because Workers do not allow random values while a module loads.
    return this.#instance ??= crypto.randomUUID();
  }

  /** Milliseconds after which other instances notice that this process has ended. */
  get leaseMs(): number {
    return this.#parts.lease.ms;
  }

  /** The report of the store to the server's observer. */
  get outage(): OutageReport {
    return this.#parts.outage;
  }

  get store(): StoreInternals {
    return this.#parts.store;
  }

  get limits(): SharingHost["limits"] {
    return this.#host.limits;
  }

  by(account: Account, { mustWait = false }: { readonly mustWait?: boolean } = {}): SealedStore {
    const view = new UserView(this.#parts, account);
    view.hasBegun = mustWait;
    return new SealedStore(view, this);
  }

  connect(): void {
    this.#connecting ??= this.#connection.run();
  }

  async check(): Promise<void> {
    await this.own.get(UNUSED_KEY);
  }

  async openPart(name: string): Promise<StorePart> {
    // The start of the hash suffices, because a server has few parts.
    const prefix = (await this.hash("extension", name)).slice(0, 16);
    const seal = this.store.isShared ? this : PLAIN;
    const open = (by: Account | OwnUse) =>
      new PartView(new SealedStore(new UserView(this.#parts, by), this, seal), prefix);
    return { own: open("server"), by: open };
  }

  /** Waits for pending operations on the session, and then opens its record. */
  async openSession(info: SharedSessionInfo): Promise<SharedSession> {
    const { id, account } = info;
    await this.#pending.get(id);
    // Start listening before reading the state. Otherwise a change between the two steps would be missed.
    const [key, usedKey] = await Promise.all([
      this.hash("session", id),
      this.hash("used", id),
      this.listen(),
      this.#rules?.load(),
    ]);
    const record = this.#parts.createSession(this, { ...info, key, usedKey, store: this.by(account) });
    // Add the record before its first read. Otherwise the record would miss the notification of a change during the
    // read.
    this.#sessions.set(key, (this.#sessions.get(key) ?? new Set()).add(record));
    try {
      await record.refresh();
    } catch (error) {
      this.removeSession(key, record);
      throw error;
    }
    return record;
  }

  async findEnd(id: string): Promise<"ended" | "waiting" | undefined> {
    const key = await this.hash("session", id);
    const end = this.ends.find(key);
    return end === "waiting" && await this.ends.write(key) ? "ended" : end;
  }

  async markUsed(account: Account, mark: Mark, options: MarkUsedOptions): Promise<Marking | undefined> {
    const { ttlMs, isDated, former } = options;
    // Use a separate list for each version of the format, because an instance that cannot read a list would overwrite it.
    const key = await this.hash(`spent ${VERSION}`, toSetName(mark));
    const sinceKey = isDated ? await this.#toSinceKey() : undefined;
    const place = { store: this.by(account), key, ttlMs, date: this.clock.date(), sinceKey };
    // Run these operations one after another, so that a client that sends many answers has only one operation in
    // progress.
    return await this.queue(
      place.key,
      () =>
        this.attempt("set", async () => {
          const before = former && await this.#findFormer(former, place);
          return before?.found ? before : await markStored(mark, place);
        }),
    );
  }

  // Finds an id that an instance of an earlier version has marked. Its lists expire after `ttlMs`, so they need not be
  // read any more when the time of the first instance with a list of its own has been in the store for this long.
  async #findFormer(mark: Mark, place: MarkPlace): Promise<Marking | undefined> {
    const since = this.#keyedSince ??= await readSince(place, await this.hash(`spent since ${VERSION}`, "keys"));
    if (place.date > since + place.ttlMs) return;
    const key = await this.hash(`spent ${VERSION}`, toSetName(mark));
    return await findStored(mark, { ...place, key }, since);
  }

  async sinceSpent(account: Account): Promise<number | undefined> {
    if (this.#since !== undefined) return this.#since;
    const key = await this.#toSinceKey();
    const store = this.by(account);
    // Read the time once per process. If the store loses its data later, the time that it then records is newer.
    return this.#since = await this.attempt("set", () => readSince({ store, date: this.clock.date() }, key));
  }

  #toSinceKey(): Promise<string> {
    return this.hash(`spent since ${VERSION}`, "");
  }

  /**
   * Reserves room for the record that a session has ended, until the record is written to the store. Returns `false` if
   * too many such records are waiting.
   */
  reserveEnd(key: string, account: Account, write: () => Promise<boolean>): boolean {
    const pot = account.pot({ name: "sessions.ending", total: 1024, share: 64 });
    return this.ends.reserve(key, { account, pot, write });
  }

  /** Counts a message that is about to be forwarded. Returns `false` if the client has sent too many messages. */
  mayRelay(account: Account): boolean {
    const pot = account.pot({ name: "store.relays", total: 8192, share: 512 });
    return !!keep(this.#host, account, [[pot, 1]], { ttlMs: RELAY_MS });
  }

  /**
   * Counts a value that is about to be written for a client, until the value expires. End the returned charge when the
   * value is replaced. Returns `undefined` if the client's limit would be exceeded.
   */
  mayWrite(account: Account, value: unknown, ttlMs: number): Charge | undefined {
    return this.keep(account, toSealedBytes(value), { ttlMs });
  }

  /** Creates the charge for a log that only this process writes for a client. */
  chargeLog(account: Account, { ttlMs, max }: Pick<LogChargeParts, "ttlMs" | "max">): LogCharge {
    return new LogCharge({ clock: this.clock, ttlMs, max, keep: (bytes) => this.keep(account, bytes, { ttlMs }) });
  }

  keep(account: Account, bytes: number, options: ChargeOptions): Charge | undefined {
    const { bytes: share } = this.limits.replay;
    const pot = account.pot({ name: "store.bytes", total: 4 * share, share, limitName: "replay.bytes", small: SMALL });
    return keep(this.#host, account, [[pot, bytes]], options);
  }

  async close(): Promise<void> {
    this.#host.changes.publish = this.#host.changes.connect = undefined;
    while (this.#pending.size) await Promise.all(this.#pending.values());
    const lost = await this.ends.close();
    if (lost) this.#reportLost(`the ends of ${lost} sessions`);
    const rules = await this.#rules?.close();
    if (rules) this.#reportLost(`${rules} rules about disabled handlers`);
    this.#isClosed = true;
    this.#connection.close();
    this.#listener.close();
    this.#stop?.();
    await this.#parts.closeStore();
  }

  /**
   * Runs an operation on a session or a value after all earlier operations with the same id. `openSession` and `close`
   * wait for the operation.
   */
  async queue<T>(id: string, run: () => Promise<T>): Promise<T> {
    const before = this.#pending.get(id);
    const done = (async () => {
      await before;
      return await run();
    })();
    const settled = done.then(() => {}, () => {});
    this.#pending.set(id, settled);
    try {
      return await done;
    } finally {
      if (this.#pending.get(id) === settled) this.#pending.delete(id);
    }
  }

  /**
   * Announces recent changes of the resources `uris` again, because a session that subscribed to these resources on
   * another instance has missed them.
   */
  repeatChanges(uris: readonly string[]): void {
    for (const change of uris.flatMap((uri) => this.#own.of(uri))) this.#host.changes.emitLocal(change);
  }

  removeSession(key: string, record: InformedSession): void {
    const records = this.#sessions.get(key);
    if (records?.delete(record) && !records.size) this.#sessions.delete(key);
  }

  /** Returns a key with the hash of a name, so that the store does not reveal the name. */
  async hash(kind: string, name: string): Promise<string> {
    return await toKeyOf(this.#host.sealer.realm, kind, name);
  }

  /** Returns a key as `hash`, but the same key on all paths of the server. */
  async hashForAllPaths(kind: string, name: string): Promise<string> {
    return await toKeyOf(this.#trunkRealm, kind, name);
  }

  /**
   * Runs store operations. If a store operation fails, reports the error to the observer under the name `operation`,
   * and returns `undefined`. Rejects with the error for the client if the client has used up its share of the store,
   * because the store may work, and a client must not be able to cause the behavior of a failed store.
   */
  async attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await run();
      this.outage.recover(operation);
      return result;
    } catch (error) {
      if (isMcpError(error)) throw error;
      if (this.#isClosed) return;
      // Do not report the store as degraded, because only this value is too large.
      if (error instanceof RangeError) return this.#reportRefused(operation, error);
      this.outage.fail(operation, error);
    }
  }

  /** Runs store operations as `attempt`. Resolves to whether they have succeeded. */
  async succeeds(operation: string, run: () => Promise<unknown>): Promise<boolean> {
    return await this.attempt(operation, async () => [await run()]) !== undefined;
  }

  #reportLost(things: string): void {
    const error = new Error(`Cannot write ${things}: the store does not respond`);
    this.#host.observer.store?.({ state: "degraded", operation: "set", error });
  }

  // Report each kind of operation only once. Otherwise a client that sends large values could flood the log.
  #reportRefused(operation: string, error: RangeError): undefined {
    if (this.#refused.has(operation)) return;
    this.#refused.add(operation);
    this.#host.observer.store?.({ state: "refused", operation, error });
  }

  readonly #refused = new Set<string>();

  /**
   * Sends a notification to the other instances. Resolves to `false` if the store fails; the notification is then lost.
   */
  async publish(store: SealedStore, news: News): Promise<boolean> {
    return await this.succeeds("publish", () => this.publishOrThrow(store, news));
  }

  /** Sends a notification to the other instances. Rejects if the store fails. */
  async publishOrThrow(store: SealedStore, news: News): Promise<void> {
    await store.publish(await this.#toTopic(), { from: this.instance, ...news });
  }

  /** Seals a value, so that only instances of this server can open the value, and only with the same key. */
  seal(key: string, value: unknown): Promise<string> {
    return sealVersioned(this.#host.sealer, `store ${key}`, value);
  }

  /**
   * Opens a sealed value. Returns `undefined` if the value was changed, was sealed with another key or secret, or has
   * the format of another library version.
   */
  open(key: string, text: string): Promise<unknown> {
    return openVersioned(this.#host.sealer, `store ${key}`, text);
  }

  #toTopic(): Promise<string> {
    return this.#topic ??= this.hash("topic", "news");
  }

  /**
   * Starts listening to other instances. If the store fails, resolves to `false`, and retries in the background until
   * the store works.
   */
  async listen(): Promise<boolean> {
    return !!this.#stop || !this.#listener.isWaiting && await this.#listener.run();
  }

  async #follow(): Promise<boolean> {
    this.#stop = await this.attempt("subscribe", async () => {
      const topic = await this.#toTopic();
      return await this.own.follow(topic, (value) => this.#receive(value), { onGap: () => this.#refreshAll() });
    });
    if (this.#stop && this.#isClosed) this.#stop();
    if (this.#stop && this.#wasLost) this.#refreshAll();
    this.#wasLost = !this.#stop;
    return !this.#wasLost;
  }

  #refreshAll(): void {
    this.#own.clear();
    this.#rules?.refresh();
    this.#host.changes.onMissed?.();
    for (const record of [...this.#sessions.values()].flatMap((records) => [...records])) {
      this.refreshSession(record);
      record.receiveLocal();
    }
  }

  /** Reads a session's record again. Later change notifications from other instances wait for this read. */
  refreshSession(record: InformedSession): void {
    const done = record.refreshLocal().finally(() => this.#refreshes.delete(done));
    this.#refreshes.add(done);
  }

  /** The reads of {@linkcode refreshSession} that are in progress. */
  readonly #refreshes = new Set<Promise<void>>();

  #receive(news: unknown): void | Promise<void> {
    if (!isObject(news) || this.#isClosed) return;
    const isOwn = news.from === this.instance;
    if (Array.isArray(news.changes)) {
      const changes = news.changes.filter(isChange);
      const take = () => isOwn ? this.#own.remove(changes) : changes.forEach((change) => this.#announce(change));
      // Wait for the reads of session records, because they may add a subscription that is older than the change, so
      // that its client must be notified.
      return this.#refreshes.size ? Promise.all(this.#refreshes).then(take) : take();
    }
    if (isOwn) return;
    if (news.rules === true) return this.#rules?.refresh();
    if (typeof news.session !== "string") return;
    for (const record of this.#sessions.get(news.session) ?? []) record.inform(news);
  }

  #announce(change: SharedChange): void {
    if (change.kind === "extension") return this.#host.changes.onNews?.(change);
    for (const listener of [...this.#host.changes.listeners]) listener(change);
  }

  // Sends a change to other instances, except for a change of this process's handlers, because the handlers of other
  // instances are not affected.
  #queueChange(change: Change | ExtensionNews): void {
    if (change.kind === "close" || change.kind === "log" || change.kind === "list" && change.handlers) return;
    // Limit the number of changes that wait while the store does not respond, because the changes take memory.
    // Subscribers on other instances miss changes above the limit.
    const key = toKey(change);
    const isNew = !this.#changes.has(key);
    if (this.#changes.set(key, change) && isNew && this.#stop) this.#own.add(change);
    if (this.#isSending) return;
    this.#isSending = true;
    // The queue waits for a microtask, so that changes in quick succession are sent in one notification, without
    // duplicates.
    void this.queue("changes", () => this.#sendQueued());
  }

  #nextBatch(): readonly SharedChange[] {
    const batch: SharedChange[] = [];
    let characters = 0;
    for (const [key, change] of this.#changes) {
      characters += JSON.stringify(change).length;
      if (batch.length && characters > BATCH_CHARACTERS || batch.length === BATCH_CHANGES) break;
      this.#changes.delete(key);
      batch.push(change);
    }
    return batch;
  }

  async #sendQueued(): Promise<void> {
    while (this.#changes.size) {
      await this.#sendChanges(this.#nextBatch());
    }
    this.#isSending = false;
  }

  // If the store refuses a notification for its size, sends each of its changes alone. Otherwise one change, such as of a
  // resource with a long URI, would suppress other changes.
  async #sendChanges(changes: readonly SharedChange[]): Promise<void> {
    let isRefused = false;
    const send = async () => {
      try {
        await this.publishOrThrow(this.own, { changes });
      } catch (error) {
        isRefused = error instanceof RangeError;
        throw error;
      }
    };
    if (await this.succeeds("publish", send)) return;
    if (!isRefused || changes.length === 1) return this.#own.remove(changes);
    for (const change of changes) await this.#sendChanges([change]);
  }
}

/** A key without a value. Reading it shows whether the store responds. */
const UNUSED_KEY = "health";

/** Does not seal the values of parts in the memory of this process, because no other process can read them. */
const PLAIN: Seal = {
  seal: (_key, value) => Promise.resolve(String(value)),
  open: (_key, text) => Promise.resolve(text),
};

/**
 * Maximum total length in characters of the changes in one entry. A longer change gets its own entry.
 */
const BATCH_CHARACTERS = 65_536;
/** Maximum number of changes that wait for the store. */
const MAX_CHANGES = 10_000;
/** Maximum number of changes in one entry of the topic. */
const BATCH_CHANGES = 100;

async function toKeyOf(realm: string, kind: string, name: string): Promise<string> {
  return await sha256(JSON.stringify([realm, kind, name]));
}

// Returns a key under which a newer change replaces an older change. An extension's notification replaces older
// notifications with the same method and topic.
function toKey(change: SharedChange): string {
  if (change.kind !== "extension") return JSON.stringify(change);
  const { extension, key, published: { topic, method } } = change;
  return JSON.stringify([extension, key, topic, method]);
}

function isChange(change: unknown): change is SharedChange {
  if (!isObject(change)) return false;
  if (change.kind === "extension") return typeof change.extension === "string" && isObject(change.published);
  return change.kind === "resource" && typeof change.uri === "string" ||
    change.kind === "list" && typeof change.feature === "string";
}

/** Number of bytes that each client may take from the reserve for stored data, which is enough for a few sessions. */
const SMALL = 65_536;

/** Estimated number of bytes that the store keeps in addition to a value, for its key, version and seal. */
const OVERHEAD = 256;

/**
 * Estimates the bytes that a sealed value takes in a store. Sealing converts three bytes to four characters. The factor 2
 * is for characters that take two bytes.
 */
export function toSealedBytes(value: unknown): number {
  return OVERHEAD + Math.ceil(new TextEncoder().encode(JSON.stringify(value)).length / 3) * 4 * 2;
}
