/**
 * Creates a store from an engine. The store connects to the engine on first use, checks limits, sets a timeout for each
 * operation, and reads topics.
 *
 * @module
 */
import { INTERNALS } from "../core/call/internals.ts";
import { checkOptions, type KnownOptions, show } from "../core/call/known_options.ts";
import type {
  AppendOptions,
  Awaitable,
  DeleteOptions,
  EngineOptions,
  ListOptions,
  LogHead,
  LogPage,
  ReadOptions,
  SetOptions,
  SharedState,
  SharingHost,
  Store,
  StoredEntry,
  StoredValue,
  StoreEngine,
  StoreInternals,
  SubscribeOptions,
  TopicListener,
} from "../core/store.ts";
import { systemClock } from "../core/capacity/timers.ts";
import { readSyncVerdict } from "../core/call/verdict.ts";
import { isPromiseLike } from "../protocol/promises.ts";
import { isWithin } from "../protocol/weight.ts";
import { InstanceState } from "./instance_state.ts";
import { RuleRecord } from "./rule_record.ts";
import { SessionRecord } from "./session_record.ts";
import { type Connect, EngineConnection } from "./engine_connection.ts";
import { ProcessLease } from "./process_lease.ts";
import { Subscription } from "./subscription.ts";
import { Topics } from "./topics.ts";

/** Options of a store, each of which is optional. */
export interface StoreOptions {
  /**
   * Timeout of an operation, in milliseconds. The timeout of an attempt to connect is five times as long. Defaults to
   * 1000.
   */
  readonly timeoutMs?: number;
  /**
   * Milliseconds between two reads of a topic. The store reads topics regularly, because the engine's `listen` may not
   * report an entry. Defaults to 1000, or to 50 for an engine without `listen`.
   */
  readonly pollMs?: number;
  /** Maximum size of a value or entry, in bytes of UTF-8. Defaults to 1 MiB. An engine can set a lower limit. */
  readonly valueBytes?: number;
  /** Maximum number of entries per log. Defaults to 10,000. */
  readonly logEntries?: number;
  /** Maximum number of concurrent operations. Further operations fail. Defaults to 1000. */
  readonly pending?: number;
  /** Maximum number of subscriptions to topics. Defaults to 10,000. */
  readonly subscriptions?: number;
  /**
   * Milliseconds after which other processes assume that this process has ended if it stops renewing its lease in the
   * store. The process renews the lease three times per `leaseMs` while it runs calls for which other processes may
   * wait. Defaults to 5000.
   */
  readonly leaseMs?: number;
}

/** The names of all store options. */
export const STORE_OPTIONS: KnownOptions<keyof StoreOptions> = {
  names: {
    timeoutMs: true,
    pollMs: true,
    valueBytes: true,
    logEntries: true,
    pending: true,
    subscriptions: true,
    leaseMs: true,
  },
};

/**
 * Creates a store from an engine, or from a function that connects to an engine. The store calls the function on first
 * use, and calls it again after a failure. If three consecutive operations fail or time out, the store closes the
 * engine and calls the function again. `server.close()` closes the store.
 *
 * @throws {TypeError} if an option is not a number above 0.
 */
export function customStore(
  engine: StoreEngine | ((options: EngineOptions) => Awaitable<StoreEngine>),
  options: StoreOptions = {},
): Store {
  checkOptions("create a store", options, STORE_OPTIONS);
  if (typeof engine !== "function" && typeof engine?.get !== "function") {
    throw new TypeError(
      "Cannot create a store: the first argument has no get(); pass an engine, or a function that connects to an engine",
    );
  }
  if (typeof engine === "function") return new CustomStore(engine, options, { isShared: true, isReplaceable: true });
  return new CustomStore(() => engine, options, { isShared: true, isReplaceable: false });
}

const DEFAULTS = {
  timeoutMs: 1000,
  pollMs: 0,
  valueBytes: 1024 * 1024,
  logEntries: 10_000,
  pending: 1000,
  subscriptions: 10_000,
  leaseMs: 5000,
};

/** Maximum length of a key in characters. */
const KEY_CHARACTERS = 256;

/** Maximum number of entries per read. */
const PAGE_ENTRIES = 1000;

/** Maximum time to live: a year, in milliseconds. */
const MAX_TTL_MS = 31_536_000_000;

/** Maximum number of entries in a topic, and the time to live of an entry in milliseconds. */
const TOPIC = { max: 1000, ttlMs: 3_600_000 };

/** Average milliseconds before the first, second, third and fourth retry of a failed operation. */
const REPEAT_MS = [5, 10, 20, 40];

/** Timeout of an attempt to connect, as a multiple of `timeoutMs`. */
const CONNECT_TIMES = 5;

/** Maximum number of values that one call of `list` returns. */
const LIST_VALUES = 1000;

/** Facts about a store's engine. */
export interface EngineFacts {
  /** Whether other processes can use the same engine. Each server then needs a `secret`. */
  readonly isShared: boolean;
  /** Whether the store can replace the engine by connecting again. */
  readonly isReplaceable: boolean;
}

type Operation<T> = (engine: StoreEngine, options: EngineOptions) => Awaitable<T>;

/** A store that uses an engine. An operation returns synchronously if the engine's method returns synchronously. */
export class CustomStore implements Store {
  readonly [INTERNALS]: StoreInternals;
  readonly lease: ProcessLease;
  readonly #options: Required<StoreOptions>;
  readonly #isShared: boolean;
  readonly #connection: EngineConnection;
  readonly #topics: Topics;
  /** For each operation in progress, a function that ends it with an error. */
  readonly #running = new Set<(error: Error) => void>();
  /** Number of operations in progress that count towards the limit `pending`. */
  #pending = 0;
  #subscribed = 0;
  #isClosed = false;
  #closed?: Promise<void>;
  /** The state of each server that uses the store. */
  readonly #users = new Set<InstanceState>();

  constructor(connect: Connect, options: StoreOptions, { isShared, isReplaceable }: EngineFacts) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    for (const [name, value] of given) {
      if (typeof value === "number" && value > 0) continue;
      throw new TypeError(`Cannot create a store: ${name} is ${show(value)}; use a number above 0`);
    }
    this.#options = { ...DEFAULTS, ...Object.fromEntries(given) };
    this.#isShared = isShared;
    this.lease = new ProcessLease(this, this.#options.leaseMs);
    this.#connection = new EngineConnection(connect, {
      connectMs: CONNECT_TIMES * this.#options.timeoutMs,
      isReplaceable,
      onReplace: () => this.#topics.restart(),
    });
    this.#topics = new Topics({
      read: (topic, after) => this.#read(topic, { after, limit: PAGE_ENTRIES }, UNCOUNTED),
      heads: (topics) =>
        this.#run(
          "read",
          (engine, options) => engine.heads && then(engine.heads(topics, options), (heads) => readHeads(heads, topics)),
          UNCOUNTED,
        ),
      listen: (onRing, onLost) => this.#listen(onRing, onLost),
      isLost: () => this.#connection.isLost,
      onListening: (state, error) => {
        for (const user of this.#users) user.reportListening(state, error);
      },
    }, this.#options.pollMs);
    const never = new AbortController().signal;
    this[INTERNALS] = {
      connect: (options = { signal: never }) => connect(options),
      isShared,
      timeoutMs: this.#options.timeoutMs,
      valueBytes: this.#options.valueBytes,
      reopen: (changed = {}) => new CustomStore(connect, { ...options, ...changed }, { isShared, isReplaceable }),
      share: (host) => this.#share(host),
    };
  }

  get(key: string): Awaitable<StoredValue | undefined> {
    checkKey("get", key);
    return this.#run("get", (engine, options) => then(engine.get(key, options), readStored));
  }

  set(key: string, value: string, { ttlMs, version, token = toToken() }: SetOptions): Awaitable<string | undefined> {
    checkKey("set", key);
    checkToken("set", token);
    this.#checkValue("set", value);
    // If the response is lost, the store retries the operation with the same token, so that the retry does not conflict
    // with the first attempt.
    const write = { ttlMs: toWholeTtl("set", ttlMs), version, token };
    return this.#run("set", (engine, options) => {
      checkSize("set", value, engine);
      // Require a boolean, because a result object from a database, such as `{ changes: 0 }`, would count as true.
      return then(
        engine.set(key, value, { ...write, ...options }),
        (isSet) => readSyncVerdict(isSet, "set() of the store's engine") ? token : undefined,
      );
    });
  }

  delete(key: string, { version }: DeleteOptions = {}): Awaitable<boolean> {
    checkKey("delete", key);
    return this.#run("delete", (engine, options) =>
      then(
        engine.delete(key, { version, ...options }),
        (isDeleted) => readSyncVerdict(isDeleted, "delete() of the store's engine"),
      ));
  }

  list(prefix: string, { after = "", limit }: ListOptions): Awaitable<readonly StoredEntry[]> {
    if (prefix !== "") checkKey("list", prefix);
    if (after !== "") checkKey("list", after);
    if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= LIST_VALUES)) {
      throw new RangeError(`Cannot list: limit is ${show(limit)}; use an integer from 1 to ${LIST_VALUES}`);
    }
    return this.#run("list", (engine, options) => then(engine.list(prefix, { after, limit, ...options }), readList));
  }

  append(log: string, value: string, { ttlMs, max, token = toToken() }: AppendOptions): Awaitable<number> {
    checkKey("append", log);
    checkToken("append", token);
    this.#checkValue("append", value);
    const { logEntries } = this.#options;
    if (!(Number.isSafeInteger(max) && max > 0 && max <= logEntries)) {
      throw new RangeError(
        `Cannot append: max is ${show(max)}; use an integer from 1 to ${logEntries} (logEntries)`,
      );
    }
    const write = { ttlMs: toWholeTtl("append", ttlMs), max, token };
    return this.#run("append", (engine, options) => {
      checkSize("append", value, engine);
      return then(engine.append(log, value, { ...write, ...options }), readId);
    });
  }

  read(log: string, { after = 0, limit }: ReadOptions): Awaitable<LogPage> {
    checkKey("read", log);
    checkId("read", after);
    if (!(Number.isSafeInteger(limit) && limit >= 0)) {
      throw new RangeError(`Cannot read: limit is ${show(limit)}; use an integer of at least 0`);
    }
    return this.#read(log, { after, limit: Math.min(limit, PAGE_ENTRIES) });
  }

  trim(log: string, before: number): Awaitable<void> {
    checkKey("trim", log);
    checkId("trim", before);
    return this.#run("trim", (engine, options) => then(engine.trim(log, before, options), () => {}));
  }

  publish(topic: string, text: string): Awaitable<void> {
    const max = Math.min(TOPIC.max, this.#options.logEntries);
    return then(this.append(topic, text, { ttlMs: TOPIC.ttlMs, max }), () => {});
  }

  subscribe(topic: string, listener: TopicListener, options: SubscribeOptions = {}): Awaitable<() => void> {
    checkKey("subscribe", topic);
    const { after, epoch } = options;
    if (after !== undefined) checkId("subscribe", after);
    const { subscriptions } = this.#options;
    if (this.#subscribed >= subscriptions) {
      throw new Error(
        `Cannot subscribe: the store already has ${subscriptions} subscriptions, the maximum (subscriptions)`,
      );
    }
    const subscription = new Subscription(
      (after) => this.#read(topic, { after, limit: PAGE_ENTRIES }, UNCOUNTED),
      listener,
      options,
    );
    this.#subscribed++;
    let isOver = false;
    const stop = () => {
      if (isOver) return;
      isOver = true;
      this.#subscribed--;
      this.#topics.remove(topic, subscription);
    };
    try {
      // Start listening before the first read. Otherwise the store could miss an entry that is written between the two
      // steps.
      const started = then(this.#topics.listen(), () => {
        if (!isOver) this.#topics.add(topic, subscription);
        return then(after === undefined ? this.read(topic, { limit: 0 }) : { last: after, epoch }, (place) => {
          subscription.start(place);
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
    for (const end of [...this.#running]) end(new Error("Cannot finish the operation: the store was closed"));
    return this.#closed = this.#close();
  }

  async #close(): Promise<void> {
    const controller = new AbortController();
    const close = async () => {
      await this.#giveLeaseBack(controller).catch(() => {});
      await this.#topics.close();
      await this.#connection.close();
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = systemClock.start(resolve, this.#options.timeoutMs);
    await Promise.race([close(), promise]);
    stop();
    controller.abort();
  }

  // Deletes the lease. Otherwise other processes would notice the end of this process only when the lease expires.
  async #giveLeaseBack({ signal }: AbortController): Promise<void> {
    const { engine, isLost } = this.#connection;
    if (this.lease.close() && engine && !isLost) await engine.delete(this.lease.id, { signal });
  }

  #share(host: SharingHost): SharedState {
    if (this.#isShared && !host.sealer.isShared) {
      throw new TypeError(
        "Cannot create a server: other processes can use its store, but the server has no secret; set the same `secret` " +
          "in all processes",
      );
    }
    const { running, bytes, shared } = host.limits.perTenant;
    if (shared && Math.min(running, bytes) === Infinity) {
      throw new TypeError(
        "Cannot set limits.perTenant.shared: the limits per tenant are Infinity; set limits.perTenant.running or limits.perTenant.bytes too",
      );
    }
    const state: InstanceState = new InstanceState(host, {
      store: this,
      createSession: (state, facts) => new SessionRecord(state, facts),
      createRules: (state, ruled, trunk) => new RuleRecord(state, ruled, trunk),
      closeStore: async () => {
        this.#users.delete(state);
        if (!this.#users.size) await this.close();
      },
    });
    this.#users.add(state);
    return state;
  }

  #read(log: string, read: ReadOptions, count?: Count): Awaitable<LogPage> {
    return this.#run("read", (engine, options) => then(engine.read(log, { ...read, ...options }), readPage), count);
  }

  #listen(
    onRing: (log: string) => void,
    onLost: (error?: unknown) => void,
  ): Awaitable<(() => void) | undefined> {
    let started: Awaitable<(() => void) | undefined>;
    const listening = this.#run("listen", (engine) => started = engine.listen?.(onRing, onLost));
    if (!(listening instanceof Promise)) return listening;
    return listening.catch((error) => {
      // Stop a listener that starts only after the timeout, because no other code would stop it.
      Promise.resolve(started).then((stop) => stop?.()).catch(() => {});
      throw error;
    });
  }

  /**
   * Runs an operation. If the engine returns synchronously, returns the result synchronously. Otherwise the operation
   * has a timeout of `timeoutMs`.
   */
  #run<T>(operation: string, run: Operation<T>, { isCounted }: Count = COUNTED): Awaitable<T> {
    if (this.#isClosed) throw new Error(`Cannot ${operation}: the store is closed`);
    if (isCounted && this.#pending >= this.#options.pending) {
      throw new Error(`Cannot ${operation}: ${this.#pending} operations are already pending (pending)`);
    }
    this.#connection.admit(operation);
    const controller = new AbortController();
    let first: Promise<T> | undefined;
    try {
      const engine = this.#connection.open();
      if (!(engine instanceof Promise)) {
        const result = run(engine, { signal: controller.signal });
        if (!isPromiseLike(result)) {
          this.#connection.succeed(engine);
          return result;
        }
        first = Promise.resolve(result);
      }
    } catch (error) {
      if (isFinal(error)) throw error;
      first = Promise.reject(error);
    }
    return this.#withDeadline(operation, { run, controller, first, isCounted });
  }

  #withDeadline<T>(operation: string, { run, controller, first, isCounted }: Run<T>): Promise<T> {
    const { timeoutMs } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    /** The engine of the current attempt. `undefined` until the attempt has connected. */
    let engine: StoreEngine | undefined = first && this.#connection.engine;
    let isPending = true;
    const settle = () => {
      isPending = false;
      stop();
      this.#running.delete(end);
      if (isCounted) this.#pending--;
    };
    const end = (error: Error) => {
      settle();
      controller.abort(error);
      reject(error);
    };
    const late = () => {
      this.#connection.fail(engine);
      end(new Error(`Cannot ${operation}: the store did not respond within ${timeoutMs} ms (timeoutMs)`));
    };
    const stop = systemClock.start(late, timeoutMs);
    if (isCounted) this.#pending++;
    this.#running.add(end);
    const attempt = async () => {
      engine = undefined;
      engine = await this.#connection.open();
      if (!isPending) throw new Error("the operation has already ended");
      return await run(engine, { signal: controller.signal });
    };
    repeat(attempt, { first, isWanted: (error) => isPending && !isFinal(error) }).then(
      (value) => {
        if (!isPending) return;
        settle();
        this.#connection.succeed(engine);
        resolve(value);
      },
      (cause) => {
        if (!isPending) return;
        settle();
        // Do not count a final error as a failure of the connection, because the engine has responded: the operation
        // can never succeed.
        if (isFinal(cause)) return reject(cause);
        this.#connection.fail(engine);
        reject(new Error(`Cannot ${operation}: the store's engine has failed; see the cause`, { cause }));
      },
    );
    return promise;
  }

  #checkValue(operation: string, value: string): void {
    const { valueBytes } = this.#options;
    // Some engines truncate a text at U+0000.
    if (value.includes("\0")) throw new RangeError(`Cannot ${operation}: the value contains U+0000`);
    // UTF-8 cannot represent a lone surrogate, so most engines would change the value.
    if (!value.isWellFormed()) throw new RangeError(`Cannot ${operation}: the value contains a lone surrogate`);
    if (isWithin(value, valueBytes)) return;
    throw new RangeError(`Cannot ${operation}: the value has more than ${valueBytes} bytes (valueBytes)`);
  }
}

/** Whether an operation counts towards the limit `pending`. */
interface Count {
  readonly isCounted: boolean;
}

const COUNTED: Count = { isCounted: true };
/** Reads of topics are not counted, because the limit `subscriptions` already limits the number of reads. */
const UNCOUNTED: Count = { isCounted: false };

/** An operation whose result is not available synchronously. */
interface Run<T> extends Count {
  readonly run: Operation<T>;
  readonly controller: AbortController;
  /** The first attempt. Set if the engine was already connected when the operation started. */
  readonly first?: Promise<T>;
}

// Retries an operation until its caller has received an error. A later retry could undo the caller's next write.
async function repeat<T>(
  attempt: () => Promise<T>,
  { first, isWanted }: { readonly first?: Promise<T>; readonly isWanted: (error?: unknown) => boolean },
): Promise<T> {
  let result = first ?? attempt();
  for (const ms of REPEAT_MS) {
    try {
      return await result;
    } catch (error) {
      if (!isWanted(error)) break;
      await new Promise<void>((resolve) => systemClock.start(resolve, ms * (0.5 + Math.random())));
      if (!isWanted()) break;
      result = attempt();
    }
  }
  return await result;
}

// Tests whether a working engine has rejected the operation, so that a retry would fail too.
function isFinal(error: unknown): boolean {
  return error instanceof RangeError || error instanceof TypeError;
}

function then<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isPromiseLike(value) ? Promise.resolve(value).then(next) : next(value);
}

// Copies only the known properties, because a database row may have other properties. Requires a version, because
// without it the next write would be unconditional.
function readStored(found: StoredValue | null | undefined): StoredValue | undefined {
  if (found === undefined || found === null) return;
  const { value, version } = found;
  if (typeof value === "string" && typeof version === "string") return { value, version };
  throw new TypeError(
    "Cannot get a value: the result of get() of the store's engine is invalid; return { value, version } with two strings, or undefined",
  );
}

function readList(found: readonly StoredEntry[]): readonly StoredEntry[] {
  if (Array.isArray(found) && found.every((entry) => typeof entry?.key === "string" && readStored(entry))) {
    return found.map(({ key, value, version }) => ({ key, value, version }));
  }
  throw new TypeError(
    "Cannot list: the result of list() of the store's engine is invalid; return a list of { key, value, version } with three strings",
  );
}

function readId(id: number): number {
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(
    `Cannot append: append() of the store's engine returned ${
      show(id)
    }; return the entry's id, which is an integer above 0`,
  );
}

function readPage({ entries, ...head }: LogPage): LogPage {
  return { entries: entries.map(({ id, value }) => ({ id, value })), ...readHead(head) };
}

function readHeads(heads: readonly LogHead[], { length }: readonly string[]): readonly LogHead[] {
  if (Array.isArray(heads) && heads.length === length) return heads.map(readHead);
  throw new TypeError(
    "Cannot read: heads() of the store's engine did not return a list with one item per log; return { first, last, epoch } for each log",
  );
}

function readHead({ first, last, epoch }: LogHead): LogHead {
  if (Number.isSafeInteger(first) && Number.isSafeInteger(last) && typeof epoch === "string") {
    return { first, last, epoch };
  }
  throw new TypeError(
    "Cannot read: the store's engine returned an invalid log state; return first and last as integers, and epoch as a string",
  );
}

function toToken(): string {
  return crypto.randomUUID();
}

function checkKey(operation: string, key: string): void {
  if (key.length <= KEY_CHARACTERS && /^[\w-]+$/.test(key)) return;
  throw new RangeError(
    `Cannot ${operation}: the key ${show(key)} is not 1 to ${KEY_CHARACTERS} letters, digits, "-" and "_"`,
  );
}

function checkToken(operation: string, token: string): void {
  if (typeof token === "string" && token.length <= KEY_CHARACTERS && /^[\w-]+$/.test(token)) return;
  throw new RangeError(
    `Cannot ${operation}: the token ${show(token)} is not 1 to ${KEY_CHARACTERS} letters, digits, "-" and "_"`,
  );
}

function checkSize(operation: string, value: string, { valueBytes = Infinity }: StoreEngine): void {
  if (isWithin(value, valueBytes)) return;
  throw new RangeError(
    `Cannot ${operation}: the value has more than ${valueBytes} bytes, which is the limit of the engine (valueBytes)`,
  );
}

/**
 * Rounds a time to live up to whole milliseconds, because some engines reject or misread fractions. Throws if the time
 * to live is out of range.
 */
function toWholeTtl(operation: string, ttlMs: number): number {
  if (ttlMs > 0 && ttlMs <= MAX_TTL_MS) return Math.ceil(ttlMs);
  throw new RangeError(`Cannot ${operation}: ttlMs is ${show(ttlMs)}; use a number above 0, up to ${MAX_TTL_MS}`);
}

function checkId(operation: string, id: number): void {
  if (Number.isSafeInteger(id) && id >= 0) return;
  throw new RangeError(`Cannot ${operation}: ${show(id)} is not an entry id; use an integer of at least 0`);
}
