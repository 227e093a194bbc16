/**
 * Makes a store from an engine: connects on first use, checks limits, gives each operation a deadline, and reads topics.
 *
 * @module
 */
import { INTERNALS } from "../core/call/internals.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  LogPage,
  ReadOptions,
  SetOptions,
  SharedState,
  SharingHost,
  Store,
  StoredValue,
  StoreEngine,
  StoreInternals,
  SubscribeOptions,
  TopicListener,
} from "../core/store.ts";
import { systemClock } from "../core/capacity/timers.ts";
import { readSyncVerdict } from "../core/call/verdict.ts";
import { isWithin } from "../protocol/weight.ts";
import { InstanceState } from "./instance_state.ts";
import { SessionRecord } from "./session_record.ts";
import { Subscription } from "./subscription.ts";

/** Options of a store. All have defaults. */
export interface StoreOptions {
  /** Milliseconds that one operation may take. Defaults to 1000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds between two reads of a topic, in case `listen` missed an entry. Defaults to 1000, or to 50 without
   * `listen`.
   */
  readonly pollMs?: number;
  /** Maximum bytes of one value or entry, in UTF-8. Defaults to 1 MiB. */
  readonly valueBytes?: number;
  /** Maximum number of entries of a log. Defaults to 10,000. */
  readonly logEntries?: number;
  /** Maximum number of operations that wait for the engine. Defaults to 1000. */
  readonly pending?: number;
  /** Maximum number of subscriptions. Defaults to 10,000. */
  readonly subscriptions?: number;
}

const OPTIONS: KnownOptions<keyof StoreOptions> = {
  names: { timeoutMs: true, pollMs: true, valueBytes: true, logEntries: true, pending: true, subscriptions: true },
};

/**
 * Makes a store from an engine, or from a function that connects to one. The function is called on first use, and again
 * after a failure. The server closes the store with `server.close()`.
 *
 * @throws {TypeError} if an option is not a number above 0.
 */
export function customStore(
  engine: StoreEngine | (() => Awaitable<StoreEngine>),
  options: StoreOptions = {},
): Store {
  checkOptions("make a store", options, OPTIONS);
  if (typeof engine !== "function" && typeof engine?.get !== "function") {
    throw new TypeError(
      "Cannot make a store: its engine has no get(); pass an engine, or a function that connects to one",
    );
  }
  return new CustomStore(typeof engine === "function" ? engine : () => engine, options);
}

const DEFAULTS = {
  timeoutMs: 1000,
  pollMs: 0,
  valueBytes: 1024 * 1024,
  logEntries: 10_000,
  pending: 1000,
  subscriptions: 10_000,
};

/** Maximum characters of a key. */
const KEY_CHARACTERS = 256;

/** Maximum entries of one page. */
const PAGE_ENTRIES = 1000;

/** Longest time to live, in milliseconds: a year. */
const MAX_TTL_MS = 31_536_000_000;

/** Entries that a topic keeps, and milliseconds for which it keeps them. */
const TOPIC = { max: 1000, ttlMs: 3_600_000 };

/** Operations in a row without an answer after which the store counts as lost, and milliseconds until the next attempt. */
const LOST_AFTER = 3;
const RETRY_MS = 1000;

/** Milliseconds before each repetition of a failed operation. */
const REPEAT_MS = [5, 10, 20, 40];

/** Milliseconds between two reads of a topic, with and without `listen`. */
const LISTEN_POLL_MS = 1000;
const POLL_MS = 50;

/** A store on top of an engine. A synchronous engine is answered synchronously. */
export class CustomStore implements Store {
  readonly [INTERNALS]: StoreInternals;
  readonly #connect: () => Awaitable<StoreEngine>;
  readonly #options: Required<StoreOptions>;
  /** Whether each server needs a `secret`. */
  readonly #isShared: boolean;
  readonly #subscriptions = new Map<string, Set<Subscription>>();
  readonly #pending = new Set<(error: Error) => void>();
  #engine?: StoreEngine;
  #connecting?: Promise<StoreEngine>;
  #listening?: Awaitable<void>;
  #stopListening?: () => void;
  #stopPolling?: () => void;
  /** Milliseconds between two reads of all topics. Set once the store listens. */
  #pollMs = 0;
  #subscribed = 0;
  #failures = 0;
  #retryAt = 0;
  #isClosed = false;
  #closed?: Promise<void>;
  /** Number of servers that use the store. */
  #users = 0;

  constructor(connect: () => Awaitable<StoreEngine>, options: StoreOptions, isShared = true) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    for (const [name, value] of given) {
      if (typeof value === "number" && value > 0) continue;
      throw new TypeError(`Cannot make a store: ${name} is ${value}; it must be a number above 0`);
    }
    this.#connect = connect;
    this.#options = { ...DEFAULTS, ...Object.fromEntries(given) };
    this.#isShared = isShared;
    this[INTERNALS] = { connect, share: (host) => this.#share(host) };
  }

  get(key: string): Awaitable<StoredValue | undefined> {
    checkKey("get", key);
    return then(
      this.#run("get", (engine) => engine.get(key)),
      readStored,
    );
  }

  set(key: string, value: string, { ttlMs, version }: SetOptions): Awaitable<string | undefined> {
    checkKey("set", key);
    checkTtl("set", ttlMs);
    this.#checkValue("set", value);
    // A repetition after a lost answer has the same token, and so does not conflict with itself.
    const token = toToken();
    const done = this.#run("set", (engine) => engine.set(key, value, { ttlMs, version, token }));
    // A result of a database, such as `{ changes: 0 }`, would count as true.
    return then(done, (isSet) => readSyncVerdict(isSet, "set() of the store's engine") ? token : undefined);
  }

  delete(key: string, { version }: DeleteOptions = {}): Awaitable<boolean> {
    checkKey("delete", key);
    const done = this.#run("delete", (engine) => engine.delete(key, { version }));
    return then(done, (isDeleted) => readSyncVerdict(isDeleted, "delete() of the store's engine"));
  }

  append(log: string, value: string, { ttlMs, max }: AppendOptions): Awaitable<number> {
    checkKey("append", log);
    checkTtl("append", ttlMs);
    this.#checkValue("append", value);
    const { logEntries } = this.#options;
    if (!(Number.isSafeInteger(max) && max > 0 && max <= logEntries)) {
      throw new RangeError(
        `Cannot append: max is ${max}; it must be a whole number from 1 to ${logEntries} (logEntries)`,
      );
    }
    const token = toToken();
    return this.#run("append", (engine) => engine.append(log, value, { ttlMs, max, token }));
  }

  read(log: string, { after = 0, limit }: ReadOptions): Awaitable<LogPage> {
    checkKey("read", log);
    checkId("read", after);
    if (!(Number.isSafeInteger(limit) && limit >= 0)) {
      throw new RangeError(`Cannot read: limit is ${limit}; it must be a whole number, 0 or more`);
    }
    const page = this.#run("read", (engine) => engine.read(log, { after, limit: Math.min(limit, PAGE_ENTRIES) }));
    return then(page, ({ entries, first, last }) => ({
      entries: entries.map(({ id, value }) => ({ id, value })),
      first,
      last,
    }));
  }

  trim(log: string, before: number): Awaitable<void> {
    checkKey("trim", log);
    checkId("trim", before);
    return this.#run("trim", (engine) => engine.trim(log, before));
  }

  publish(topic: string, text: string): Awaitable<void> {
    const max = Math.min(TOPIC.max, this.#options.logEntries);
    return then(this.append(topic, text, { ttlMs: TOPIC.ttlMs, max }), () => {});
  }

  subscribe(topic: string, listener: TopicListener, options: SubscribeOptions = {}): Awaitable<() => void> {
    checkKey("subscribe", topic);
    const { subscriptions } = this.#options;
    if (this.#subscribed >= subscriptions) {
      throw new Error(`Cannot subscribe: there are ${subscriptions} subscriptions (subscriptions)`);
    }
    const subscription = new Subscription(
      (after) => this.read(topic, { after, limit: PAGE_ENTRIES }),
      listener,
      options,
    );
    this.#subscribed++;
    let isOver = false;
    const stop = () => {
      if (isOver) return;
      isOver = true;
      this.#subscribed--;
      this.#remove(topic, subscription);
    };
    try {
      // Listen before the first read, so that no entry falls between the two.
      const started = then(this.#listen(), () => {
        if (!isOver) this.#add(topic, subscription);
        return then(options.after === undefined ? this.read(topic, { limit: 0 }) : undefined, (page) => {
          subscription.start(page?.last ?? options.after ?? 0);
          return stop;
        });
      });
      if (started instanceof Promise) started.catch(stop);
      return started;
    } catch (error) {
      stop();
      throw error;
    }
  }

  close(): Awaitable<void> {
    if (this.#isClosed) return this.#closed;
    this.#isClosed = true;
    this.#stopPolling?.();
    for (const subscriptions of this.#subscriptions.values()) for (const each of subscriptions) each.stop();
    this.#subscriptions.clear();
    for (const reject of this.#pending) reject(new Error("Cannot finish the operation: the store was closed"));
    this.#pending.clear();
    return this.#closed = this.#closeEngine();
  }

  async #closeEngine(): Promise<void> {
    const close = async () => {
      // A function that is still connecting hands over its engine later.
      const engine = this.#engine ?? await this.#connecting?.catch(() => undefined);
      await this.#stopListening?.();
      await engine?.close?.();
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = systemClock.start(resolve, this.#options.timeoutMs);
    // An engine that fails to close is lost already.
    await Promise.race([close().catch(() => {}), promise]);
    stop();
  }

  #share(host: SharingHost): SharedState {
    if (this.#isShared && !host.sealer.isShared) {
      throw new TypeError(
        "Cannot create a server: its store is shared by several processes, but it has no secret; set the same `secret` " +
          "in all of them",
      );
    }
    this.#users++;
    return new InstanceState(host, {
      store: this,
      createSession: (state, facts) => new SessionRecord(state, facts),
      closeStore: async () => {
        if (--this.#users === 0) await this.close();
      },
    });
  }

  #run<T>(operation: string, run: (engine: StoreEngine) => Awaitable<T>): Awaitable<T> {
    if (this.#isClosed) throw new Error(`Cannot ${operation}: the store is closed`);
    if (this.#retryAt && systemClock.now() < this.#retryAt) {
      throw new Error(`Cannot ${operation}: the store has not answered ${LOST_AFTER} times in a row`);
    }
    if (this.#pending.size >= this.#options.pending) {
      throw new Error(`Cannot ${operation}: ${this.#pending.size} operations are pending (pending)`);
    }
    const engine = this.#engine ?? this.#open();
    if (engine instanceof Promise) return this.#withDeadline(operation, (isPending) => this.#repeat(run, isPending));
    const result = run(engine);
    if (!(result instanceof Promise)) return result;
    return this.#withDeadline(operation, (isPending) => this.#repeat(run, isPending, result));
  }

  // Another attempt is safe until the caller learns of the failure. A later write would undo what the caller has written
  // since.
  async #repeat<T>(
    run: (engine: StoreEngine) => Awaitable<T>,
    isPending: () => boolean,
    first?: Promise<T>,
  ): Promise<T> {
    const attempt = async () => {
      const engine = await (this.#engine ?? this.#open());
      if (!isPending()) throw new Error("the deadline has passed");
      return await run(engine);
    };
    let result = first ?? attempt();
    for (const ms of REPEAT_MS) {
      try {
        return await result;
      } catch {
        await new Promise<void>((resolve) => systemClock.start(resolve, ms * (0.5 + Math.random())));
        if (!isPending()) break;
        result = attempt();
      }
    }
    return await result;
  }

  #withDeadline<T>(operation: string, run: (isPending: () => boolean) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const late = () => {
      this.#pending.delete(reject);
      this.#fail();
      reject(new Error(`Cannot ${operation}: the store has not answered within ${timeoutMs} ms (timeoutMs)`));
    };
    const stop = systemClock.start(late, timeoutMs);
    this.#pending.add(reject);
    const settle = (end: () => void) => {
      stop();
      if (this.#pending.delete(reject)) end();
    };
    run(() => this.#pending.has(reject)).then(
      (value) =>
        settle(() => {
          this.#failures = this.#retryAt = 0;
          resolve(value);
        }),
      (cause) =>
        settle(() => {
          this.#fail();
          reject(new Error(`Cannot ${operation}: the store has failed`, { cause }));
        }),
    );
    return promise.finally(stop);
  }

  // Without this, each call would wait for the whole deadline while the store is lost.
  #fail(): void {
    if (++this.#failures >= LOST_AFTER) this.#retryAt = systemClock.now() + RETRY_MS;
  }

  #open(): Awaitable<StoreEngine> {
    if (this.#connecting) return this.#connecting;
    const engine = this.#connect();
    if (!(engine instanceof Promise)) return this.#engine = engine;
    this.#connecting = engine.then((engine) => this.#engine = engine);
    // A later operation connects again.
    this.#connecting.catch(() => this.#connecting = undefined);
    return this.#connecting;
  }

  // One listener serves all topics. Notifications get lost, so all topics are read at an interval too.
  #listen(): Awaitable<void> {
    return this.#listening ??= this.#startListening();
  }

  #startListening(): Awaitable<void> {
    const ring = (log: string) => {
      for (const subscription of this.#subscriptions.get(log) ?? []) subscription.pull();
    };
    let started: Awaitable<(() => void) | undefined>;
    const listening = this.#run("listen", (engine) => started = engine.listen?.(ring));
    if (!(listening instanceof Promise)) return this.#setListening(listening);
    return listening.then((stop) => this.#setListening(stop), (error) => {
      this.#listening = undefined;
      // A listener that starts too late would run as long as the engine lives.
      Promise.resolve(started).then((stop) => stop?.()).catch(() => {});
      throw error;
    });
  }

  #setListening(stop: (() => void) | undefined): void {
    this.#stopListening = stop;
    this.#pollMs = this.#options.pollMs || (stop ? LISTEN_POLL_MS : POLL_MS);
  }

  /** Reads all topics after a while, and again as long as there are subscriptions. */
  #poll(): void {
    const poll = () => {
      this.#stopPolling = undefined;
      for (const subscriptions of this.#subscriptions.values()) for (const each of subscriptions) each.pull();
      if (this.#subscribed && !this.#isClosed) this.#poll();
    };
    this.#stopPolling ??= systemClock.start(poll, this.#pollMs, { background: true });
  }

  #add(topic: string, subscription: Subscription): void {
    if (this.#isClosed) return;
    let subscriptions = this.#subscriptions.get(topic);
    if (!subscriptions) this.#subscriptions.set(topic, subscriptions = new Set());
    subscriptions.add(subscription);
    this.#poll();
  }

  #remove(topic: string, subscription: Subscription): void {
    subscription.stop();
    const subscriptions = this.#subscriptions.get(topic);
    if (subscriptions?.delete(subscription) && !subscriptions.size) this.#subscriptions.delete(topic);
    if (this.#subscriptions.size) return;
    this.#stopPolling?.();
    this.#stopPolling = undefined;
  }

  #checkValue(operation: string, value: string): void {
    const { valueBytes } = this.#options;
    // Some engines end a text there.
    if (value.includes("\0")) throw new RangeError(`Cannot ${operation}: the value contains U+0000`);
    if (isWithin(value, valueBytes)) return;
    throw new RangeError(`Cannot ${operation}: the value has more than ${valueBytes} bytes (valueBytes)`);
  }
}

function then<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

// Rows of a database may have further properties. Without a version, the next write would be unconditional.
function readStored(found: StoredValue | null | undefined): StoredValue | undefined {
  if (found === undefined || found === null) return;
  const { value, version } = found;
  if (typeof value === "string" && typeof version === "string") return { value, version };
  throw new TypeError(
    "Cannot get a value: get() of the store's engine returned no value and version that are strings; return both, or undefined",
  );
}

function toToken(): string {
  return crypto.randomUUID();
}

function checkKey(operation: string, key: string): void {
  if (key.length <= KEY_CHARACTERS && /^[\w-]+$/.test(key)) return;
  throw new RangeError(
    `Cannot ${operation}: the key must have 1 to ${KEY_CHARACTERS} letters, digits, "-" and "_"`,
  );
}

function checkTtl(operation: string, ttlMs: number): void {
  if (ttlMs > 0 && ttlMs <= MAX_TTL_MS) return;
  throw new RangeError(`Cannot ${operation}: ttlMs is ${ttlMs}; it must be above 0 and at most ${MAX_TTL_MS}`);
}

function checkId(operation: string, id: number): void {
  if (Number.isSafeInteger(id) && id >= 0) return;
  throw new RangeError(`Cannot ${operation}: ${id} is no id of an entry; ids are whole numbers`);
}
