/**
 * Connects one instance of a server to a store: hashes keys, seals values, and exchanges notifications with other
 * instances over a topic.
 *
 * @module
 */
import { toBase64Url } from "../kit/base64.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { Account, Accounts, Limit, Pot } from "../core/capacity/account.ts";
import type { Change, ExtensionNews } from "../core/visibility/changes.ts";
import type { Bounds } from "../core/capacity/limits.ts";
import { type Mark, type Marking, toSetName } from "../core/marked_ids.ts";
import { type MarkPlace, markStored, toMarkTtl } from "../core/marking.ts";
import type {
  AppendOptions,
  Lease,
  ReadOptions,
  Ruled,
  SetOptions,
  SharedChange,
  SharedSession,
  SharedSessionFacts,
  SharedState,
  SharingHost,
  Store,
} from "../core/store.ts";
import type { SharedRules } from "../core/visibility/visibility.ts";
import { openVersioned, sealVersioned, VERSION } from "../core/call/versioned_seal.ts";
import { systemClock } from "../core/capacity/timers.ts";
import { OwnChanges } from "./own_changes.ts";
import { PendingEnds } from "./pending_ends.ts";
import { TenantSums } from "./tenant_sums.ts";
import { WrittenBytes } from "./written_bytes.ts";

/** A JSON value with its version. */
export interface OpenedValue {
  readonly value: unknown;
  readonly version: string;
}

/** A page of a log with opened entries. */
export interface OpenedPage {
  readonly entries: readonly { readonly id: number; readonly value: unknown }[];
  readonly first: number;
  readonly last: number;
  readonly epoch: string;
}

/** A message from one instance to all other instances. */
type News =
  | { readonly changes: readonly SharedChange[] }
  /**
   * A notification about one session, for one of three reasons: the session has changed, another instance now writes to
   * the client, or the client has sent a message to pass on.
   */
  | {
    readonly session: string;
    readonly isEnded?: boolean;
    readonly claim?: string | null;
    readonly relay?: number;
  }
  /** The rules of `enable` and `disable` have changed. */
  | { readonly rules: true };

/** The pots that limit how much clients make the instance use the store. */
interface Pots {
  /** Operations on sessions that are in progress. Each uses the store for at most three operations at a time. */
  readonly operations: Pot;
  /** Messages that were passed on to other instances within {@linkcode RELAY_MS}. */
  readonly relays: Pot;
  /** Ends of sessions that are not yet written to the store. */
  readonly ends: Pot;
  /** All other data that was written to the store for clients. */
  readonly written: WrittenBytes;
}

function findPots(accounts: Accounts, limits: Bounds): Pots {
  return {
    operations: accounts.pot({ name: "store.operations", total: 256, share: 32 }),
    relays: accounts.pot({ name: "store.relays", total: 8192, share: 512 }),
    ends: accounts.pot({ name: "sessions.ending", total: 1024, share: 64 }),
    written: new WrittenBytes(accounts, limits),
  };
}

const RELAY_MS = 10_000;

/** The facts about a session from which its record is created. */
export interface SessionFacts {
  /** Hash of the session id. */
  readonly key: string;
  readonly id: string;
  /** Milliseconds until the session expires. */
  readonly ms: number;
  /** The mark that is stored when the session ends. */
  readonly mark: Mark;
  /** Account of the client. */
  readonly account: Account;
}

/** A session that receives notifications from other instances. */
export interface InformedSession extends SharedSession {
  /** Hash of the session id. */
  readonly key: string;
  /** Reads the record. If the store does not respond, it remains unknown whether the session has ended. */
  refresh(): Promise<void>;
  /** Ends the session of this process, because another instance has ended it. */
  endLocal(): void;
  /** Closes the connection of a stream, because another instance has taken it over. */
  yieldLocal(stream: string | undefined): void;
  /** Handles a message that another instance has received. `id` is its id in the log of such messages. */
  receiveLocal(id: number): Promise<void>;
}

/** Rules of `enable` and `disable` that other instances may change. */
export interface InformedRules extends SharedRules {
  /** Reads the rules again, because another instance may have changed them. */
  refresh(): void;
  /** Tries once more to write the changes of this process. Returns the number of rules that could not be written. */
  close(): Promise<number>;
}

/** The parts from which {@linkcode InstanceState} is created. */
export interface StateParts {
  readonly store: Store;
  /** Creates the record of a session. */
  readonly createSession: (state: InstanceState, facts: SessionFacts) => InformedSession;
  /** Creates the record of the rules of `enable` and `disable`. */
  readonly createRules: (state: InstanceState, ruled: Ruled, trunk?: SharedRules) => InformedRules;
  /** Closes the store, unless another server of this process uses it. */
  readonly closeStore: () => Promise<void>;
}

/** The state that one server shares through a store. */
export class InstanceState implements SharedState {
  readonly #store: Store;
  readonly #host: SharingHost;
  readonly #parts: StateParts;
  #instance?: string;
  readonly #sessions = new Map<string, InformedSession>();
  /** Records of sessions that this process is opening. The pot of operations limits their number. */
  readonly #opening = new Set<InformedSession>();
  /** Operations on sessions that are in progress, by id. */
  readonly #pending = new Map<string, Promise<unknown>>();
  /** Ends of sessions that are not yet written to the store. */
  readonly ends: PendingEnds = new PendingEnds();
  /** The pots, created with the first session. */
  #pots?: Pots;
  /** Counts the resources that tenants use, if instances share the limits of tenants. */
  #tenants?: TenantSums;
  /** Messages that were passed on, oldest first. */
  readonly #relayed: { readonly account: Account; readonly until: number }[] = [];
  /** Changes that other instances have not been notified of yet. Each change is sent once. */
  readonly #changes = new Map<string, SharedChange>();
  /** Changes of this instance whose notifications the store has not returned yet. */
  readonly #own = new OwnChanges();
  #isTelling = false;
  #isDegraded = false;
  #isClosed = false;
  #listening?: Promise<boolean>;
  #topic?: Promise<string>;
  #stop?: () => void;
  #isListening = false;
  #telling?: Promise<void>;
  #rules?: InformedRules;

  constructor(host: SharingHost, parts: StateParts) {
    this.#store = parts.store;
    this.#host = host;
    this.#parts = parts;
    host.changes.publish = (change) => this.#tell(change);
    host.changes.connect = () => {
      const loading = this.#rules?.load();
      const listening = this.#isListening ? undefined : this.listen();
      return loading || listening && listening.then(() => {});
    };
  }

  get rules(): SharedRules | undefined {
    return this.#rules;
  }

  shareRules(ruled: Ruled, trunk?: SharedRules): void {
    this.#rules = this.#parts.createRules(this, ruled, trunk);
  }

  /** Id of this instance. */
  get instance(): string {
    // Create the id on first use, because Workers forbid random values while a module loads.
    return this.#instance ??= crypto.randomUUID();
  }

  /** The lease that shows other instances that this process is running. */
  get lease(): Lease {
    return this.#store.lease;
  }

  /** Limits of the server. */
  get limits(): SharingHost["limits"] {
    return this.#host.limits;
  }

  /** Opens a session after its pending operations have finished. */
  async openSession({ id, ms, mark, account, accounts }: SharedSessionFacts): Promise<SharedSession | undefined> {
    this.#pots ??= findPots(accounts, this.limits);
    return await this.share(account, async () => {
      await this.#pending.get(id);
      // Start to listen before the state is read; otherwise a change made between the two steps would be missed.
      const [key] = await Promise.all([this.hash("session", id), this.listen(), this.#rules?.load()]);
      const record = this.#parts.createSession(this, { key, id, ms, mark, account });
      // Add the record before its first read; otherwise it would miss the notification of a change made during the
      // read.
      this.#opening.add(record);
      try {
        await record.refresh();
      } catch (error) {
        this.#opening.delete(record);
        throw error;
      }
      return record;
    });
  }

  limitTenants(accounts: Accounts): Limit | undefined {
    if (!this.limits.perTenant.shared) return;
    this.#tenants = new TenantSums(this, accounts);
    return this.#tenants.limit;
  }

  async findEnd(id: string): Promise<"written" | "waiting" | undefined> {
    const key = await this.hash("session", id);
    const end = this.ends.find(key);
    return end === "waiting" && await this.ends.write(key) ? "written" : end;
  }

  async spend(mark: Mark, ttlMs: number): Promise<Marking | undefined> {
    const place = await this.#toPlace("spent", mark, ttlMs);
    // Run these operations one after another, so that a client has only one operation in progress, however many answers
    // it sends.
    return await this.queue(place.key, () => this.attempt("set", () => markStored(mark, place)));
  }

  /** Returns the place in the store where the ends of a client's sessions are marked. */
  toEndPlace(mark: Mark): Promise<MarkPlace> {
    return this.#toPlace("ended", mark, toMarkTtl(this.limits.sessions.lifeMs));
  }

  // Each version of the format has separate lists, because an instance that cannot read a list would replace it by an
  // empty list.
  async #toPlace(kind: string, mark: Mark, ttlMs: number): Promise<MarkPlace> {
    return {
      store: this,
      key: await this.hash(`${kind} ${VERSION}`, toSetName(mark)),
      ttlMs,
      date: systemClock.date(),
    };
  }

  /** Runs an operation for a client. Resolves to `undefined` if the client has too many operations in progress. */
  async share<T>(account: Account, run: () => Promise<T>): Promise<T | undefined> {
    if (this.#relayed.length) this.#forgetRelays();
    if (!this.#pots?.operations.take(account)) return;
    try {
      return await run();
    } finally {
      this.#pots.operations.give(account);
    }
  }

  /** Reserves a place for the end of a session. Returns `false` if there is no room. */
  reserveEnd(key: string, account: Account, write: () => Promise<boolean>): boolean {
    return !!this.#pots && this.ends.reserve(key, { account, pot: this.#pots.ends, write });
  }

  /** Counts a message that is passed on. Returns `false` if the client has sent too many messages. */
  mayRelay(account: Account): boolean {
    this.#forgetRelays();
    if (!this.#pots?.relays.take(account)) return false;
    this.#relayed.push({ account, until: systemClock.now() + RELAY_MS });
    return true;
  }

  /**
   * Counts a value that a client is about to write, until it expires. Returns a function to call when the value is
   * replaced, or `undefined` if the client has written too much.
   */
  mayWrite(account: Account, value: unknown, ttlMs: number): (() => void) | undefined {
    return this.#pots?.written.take(account, value, ttlMs);
  }

  #forgetRelays(): void {
    const now = systemClock.now();
    const current = this.#relayed.findIndex(({ until }) => until > now);
    const old = this.#relayed.splice(0, current < 0 ? this.#relayed.length : current);
    for (const { account } of old) this.#pots?.relays.give(account);
  }

  async close(): Promise<void> {
    this.#host.changes.publish = this.#host.changes.connect = undefined;
    while (this.#isTelling || this.#pending.size) {
      await Promise.all([this.#telling, ...this.#pending.values()]);
    }
    await this.#tenants?.close();
    const lost = await this.ends.close();
    if (lost) this.#reportLost(`the ends of ${lost} sessions`);
    const rules = await this.#rules?.close();
    if (rules) this.#reportLost(`${rules} rules of enable and disable`);
    this.#isClosed = true;
    this.#stop?.();
    await this.#parts.closeStore();
  }

  /**
   * Runs an operation on a session or a value. It waits for earlier operations with the same id. A request that opens
   * the session waits for the operation, and so does closing the server.
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

  /** Adds a session, which then receives notifications from other instances. */
  addSession(record: InformedSession): void {
    this.#opening.delete(record);
    this.#sessions.set(record.key, record);
  }

  /**
   * Announces to a session the changes of this instance that the session has missed, because it subscribed to `uris` on
   * another instance.
   */
  repeatChanges(uris: readonly string[]): void {
    for (const uri of uris) if (this.#own.has(uri)) this.#host.changes.emitLocal({ kind: "resource", uri });
  }

  /** Removes a session. */
  removeSession(record: InformedSession): void {
    this.#opening.delete(record);
    if (this.#sessions.get(record.key) === record) this.#sessions.delete(record.key);
  }

  /** Returns the hash of a name as a key, so that the store does not reveal the name. */
  async hash(kind: string, name: string): Promise<string> {
    const bytes = new TextEncoder().encode(JSON.stringify([this.#host.sealer.realm, kind, name]));
    return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
  }

  /** Reads a value. Returns `undefined` if the key has no value, or if the value was sealed with another secret. */
  async get(key: string): Promise<OpenedValue | undefined> {
    const found = await this.#store.get(key);
    return found && { value: await this.open(key, found.value), version: found.version };
  }

  /** Writes a value. Returns its version, or `undefined` if the version did not match. */
  async set(key: string, value: unknown, options: SetOptions): Promise<string | undefined> {
    return await this.#store.set(key, await this.seal(key, value), options);
  }

  /** Removes a value. Returns `false` if the version did not match. */
  async delete(key: string, version?: string): Promise<boolean> {
    return await this.#store.delete(key, { version });
  }

  /** Appends an entry to a log. Returns its id. */
  async append(log: string, value: unknown, options: AppendOptions): Promise<number> {
    return await this.#store.append(log, await this.seal(log, value), options);
  }

  /** Reads a log. */
  async read(log: string, options: ReadOptions): Promise<OpenedPage> {
    const { entries, first, last, epoch } = await this.#store.read(log, options);
    const opened = entries.map(async ({ id, value }) => ({ id, value: await this.open(log, value) }));
    return { entries: await Promise.all(opened), first, last, epoch };
  }

  /**
   * Calls `listener` for each entry of a log after the entry `after`, in order. If the listener returns a promise,
   * waits for it before the next entry.
   */
  async follow(
    log: string,
    listener: (value: unknown) => void | Promise<unknown>,
    options: { readonly after?: number; readonly epoch?: string; readonly onGap: (last: number) => void },
  ): Promise<() => void> {
    let isOver = false;
    let queue = Promise.resolve();
    const stop = await this.#store.subscribe(log, (text) => {
      queue = queue.then(async () => {
        const value = await this.open(log, text);
        if (!isOver && value !== undefined) await listener(value);
      }).catch(() => {});
    }, options);
    return () => {
      isOver = true;
      stop();
    };
  }

  /** Runs operations of the store. If an operation fails, reports it to the observer and returns `undefined`. */
  async attempt<T>(operation: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await run();
      if (this.#isDegraded) {
        this.#isDegraded = false;
        this.#host.observer.store?.({ state: "recovered", operation });
      }
      return result;
    } catch (error) {
      if (this.#isClosed) return;
      // The store works: only this value is too large for it.
      if (error instanceof RangeError) return this.#reportRefused(operation, error);
      if (this.#isDegraded) return;
      this.#isDegraded = true;
      this.#host.observer.store?.({ state: "degraded", operation, error });
    }
  }

  /**
   * Reports to the observer that the engine's listener was lost, or that it is back. While it is lost, topics are read
   * more often.
   */
  reportListening(state: "lost" | "back", error?: unknown): void {
    if (this.#isClosed) return;
    const event = { operation: "listen", error };
    this.#host.observer.store?.({ state: state === "lost" ? "degraded" : "recovered", ...event });
  }

  #reportLost(things: string): void {
    const error = new Error(`Cannot write ${things}: the store does not answer`);
    this.#host.observer.store?.({ state: "degraded", operation: "set", error });
  }

  // Report each kind of operation only once, because clients choose the values.
  #reportRefused(operation: string, error: RangeError): undefined {
    if (this.#refused.has(operation)) return;
    this.#refused.add(operation);
    this.#host.observer.store?.({ state: "refused", operation, error });
  }

  readonly #refused = new Set<string>();

  /**
   * Sends a notification to the other instances. Resolves to `false` if the store fails and the notification is lost.
   */
  async publish(news: News): Promise<boolean> {
    const publish = async () => {
      await this.tell(news);
      return true;
    };
    return await this.attempt("publish", publish) ?? false;
  }

  /** Sends a notification to the other instances. Rejects if the store fails. */
  async tell(news: News): Promise<void> {
    const topic = await this.#toTopic();
    await this.#store.publish(topic, await this.seal(topic, { from: this.instance, ...news }));
  }

  /** Seals a value, so that only instances of this server can open it, and only with the same key. */
  seal(key: string, value: unknown): Promise<string> {
    return sealVersioned(this.#host.sealer, `store ${key}`, value);
  }

  /**
   * Opens a sealed value. Returns `undefined` if the value was changed, was sealed with another key or secret, or has
   * the format of another version of the library.
   */
  open(key: string, text: string): Promise<unknown> {
    return openVersioned(this.#host.sealer, `store ${key}`, text);
  }

  #toTopic(): Promise<string> {
    return this.#topic ??= this.hash("topic", "news");
  }

  /**
   * Starts to listen to other instances. Resolves to `false` if the store fails, and then tries again until it
   * succeeds.
   */
  listen(): Promise<boolean> {
    return this.#listening ??= this.#startListening();
  }

  async #startListening(): Promise<boolean> {
    const stop = await this.attempt("subscribe", async () => {
      const topic = await this.#toTopic();
      return await this.follow(topic, (value) => this.#take(value), { onGap: () => this.#refreshAll() });
    });
    if (stop) {
      this.#stop = stop;
      this.#isListening = true;
      if (this.#isClosed) stop();
      return true;
    }
    systemClock.start(
      () => {
        this.#listening = undefined;
        if (!this.#isClosed) this.listen().then((isListening) => isListening && this.#refreshAll());
      },
      RETRY_MS,
      { background: true },
    );
    return false;
  }

  #refreshAll(): void {
    this.#own.clear();
    this.#rules?.refresh();
    for (const record of [...this.#sessions.values(), ...this.#opening]) this.refreshSession(record);
  }

  /** Reads a session again. Changes of other instances that arrive later wait for the read. */
  refreshSession(record: InformedSession): void {
    const done = record.refreshLocal().finally(() => this.#refreshes.delete(done));
    this.#refreshes.add(done);
  }

  /** The reads that sessions have started after changes on other instances. */
  readonly #refreshes = new Set<Promise<void>>();

  #take(news: unknown): void | Promise<void> {
    if (!isObject(news) || this.#isClosed) return;
    const isOwn = news.from === this.instance;
    if (Array.isArray(news.changes)) {
      const changes = news.changes.filter(isChange);
      const take = () => isOwn ? this.#own.remove(changes) : changes.forEach((change) => this.#announce(change));
      // Wait for these reads, because a client that subscribed before the change must be notified of it.
      return this.#refreshes.size ? Promise.all(this.#refreshes).then(take) : take();
    }
    if (isOwn) return;
    if (news.rules === true) return this.#rules?.refresh();
    if (typeof news.session !== "string") return;
    const record = this.#sessions.get(news.session);
    if (record) this.#inform(record, news);
    for (const record of this.#opening) if (record.key === news.session) this.#inform(record, news);
  }

  #inform(record: InformedSession, { isEnded, relay, claim }: Readonly<Record<string, unknown>>): void {
    if (isEnded === true) record.endLocal();
    else if (typeof relay === "number") record.receiveLocal(relay);
    else if (claim === undefined) this.refreshSession(record);
    else record.yieldLocal(typeof claim === "string" ? claim : undefined);
  }

  #announce(change: SharedChange): void {
    if (change.kind === "extension") return this.#host.changes.onNews?.(change);
    for (const listener of [...this.#host.changes.listeners]) listener(change);
  }

  // Sends a change to other instances, except a change of this process's handlers: the handlers of the other instances
  // did not change.
  #tell(change: Change | ExtensionNews): void {
    if (change.kind === "close" || change.kind === "log" || change.kind === "list" && change.handlers) return;
    // Limit the number of changes that wait while the store is lost. Subscribers miss changes above the limit, but the
    // memory of this process stays limited.
    if (this.#changes.size < MAX_CHANGES) {
      const key = toKey(change);
      if (this.#isListening && !this.#changes.has(key)) this.#own.add(change);
      this.#changes.set(key, change);
    }
    if (this.#isTelling) return;
    this.#isTelling = true;
    this.#telling = this.#tellAll();
  }

  #takeBatch(): readonly SharedChange[] {
    const batch: SharedChange[] = [];
    let characters = 0;
    for (const [key, change] of this.#changes) {
      if (change.kind === "extension") characters += JSON.stringify(change.published).length;
      if (batch.length && characters > BATCH_CHARACTERS || batch.length === BATCH_CHANGES) break;
      this.#changes.delete(key);
      batch.push(change);
    }
    return batch;
  }

  async #tellAll(): Promise<void> {
    // Wait for a microtask, so that changes in quick succession are sent together, each once.
    await undefined;
    while (this.#changes.size) {
      const changes = this.#takeBatch();
      if (!await this.publish({ changes })) this.#own.remove(changes);
    }
    this.#isTelling = false;
  }
}

const RETRY_MS = 1000;
/**
 * Maximum length, in characters, of the notifications of extensions in one entry. A longer notification gets an entry
 * of its own.
 */
const BATCH_CHARACTERS = 65_536;
/** Maximum number of changes that wait for the store, and maximum number of changes in one entry. */
const MAX_CHANGES = 10_000;
const BATCH_CHANGES = 100;

// Returns a key under which a newer change replaces an older one: of the notifications of an extension, only the newest
// per method and topic is needed.
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
