/**
 * Creates a store from an engine: connects on first use, checks limits, sets a deadline for each operation, and reads
 * topics.
 *
 * @module
 */
import { INTERNALS } from "../core/call/internals.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
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

/** Options of a store. All have defaults. */
export interface StoreOptions {
  /** Timeout of one operation, in milliseconds. An attempt to connect may take five times as long. Defaults to 1000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds between two reads of a topic, in case the engine's `listen` missed an entry. Defaults to 1000, or to
   * 50 for an engine without `listen`.
   */
  readonly pollMs?: number;
  /** Maximum size of one value or entry, in bytes of UTF-8. Defaults to 1 MiB. An engine may have a lower limit. */
  readonly valueBytes?: number;
  /** Maximum number of entries of a log. Defaults to 10,000. */
  readonly logEntries?: number;
  /** Maximum number of operations that wait for the engine. Defaults to 1000. */
  readonly pending?: number;
  /** Maximum number of subscriptions. Defaults to 10,000. */
  readonly subscriptions?: number;
  /**
   * Milliseconds after which other processes notice that this process has ended. While this process runs calls that
   * other processes wait for, it renews a value in the store three times within this time. Defaults to 5000.
   */
  readonly leaseMs?: number;
}

/** Names of all options of a store. */
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
 * use, and again if it fails. If the engine has not answered three times in a row, the store closes it and calls the
 * function again. The server closes the store with `server.close()`.
 *
 * @throws {TypeError} if an option is not a number above 0.
 */
export function customStore(
  engine: StoreEngine | ((options: EngineOptions) => Awaitable<StoreEngine>),
  options: StoreOptions = {},
): Store {
  checkOptions("make a store", options, STORE_OPTIONS);
  if (typeof engine !== "function" && typeof engine?.get !== "function") {
    throw new TypeError(
      "Cannot make a store: its engine has no get(); pass an engine, or a function that connects to an engine",
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

/** Maximum number of entries in one read. */
const PAGE_ENTRIES = 1000;

/** Longest time to live, in milliseconds: a year. */
const MAX_TTL_MS = 31_536_000_000;

/** Maximum number of entries that a topic keeps, and milliseconds for which it keeps them. */
const TOPIC = { max: 1000, ttlMs: 3_600_000 };

/** Milliseconds before each repetition of a failed operation. */
const REPEAT_MS = [5, 10, 20, 40];

/** Timeout of an attempt to connect, as a multiple of the timeout of an operation. */
const CONNECT_TIMES = 5;

/** Maximum number of values in one list. */
const LIST_VALUES = 1000;

/** Properties of the engine of a store. */
export interface EngineFacts {
  /** Whether other processes can reach the engine. Each server then needs a `secret`. */
  readonly isShared: boolean;
  /** Whether the store can replace the engine by connecting again. */
  readonly isReplaceable: boolean;
}

/** An operation on an engine. */
type Operation<T> = (engine: StoreEngine, options: EngineOptions) => Awaitable<T>;

/** A store on top of an engine. If the engine responds synchronously, so does the store. */
export class CustomStore implements Store {
  readonly [INTERNALS]: StoreInternals;
  readonly lease: ProcessLease;
  readonly #options: Required<StoreOptions>;
  readonly #isShared: boolean;
  readonly #connection: EngineConnection;
  readonly #topics: Topics;
  /** Functions that end operations in progress. */
  readonly #running = new Set<(error: Error) => void>();
  /** Number of operations in progress that count for the limit. */
  #pending = 0;
  #subscribed = 0;
  #isClosed = false;
  #closed?: Promise<void>;
  /** The servers that use the store. */
  readonly #users = new Set<InstanceState>();

  constructor(connect: Connect, options: StoreOptions, { isShared, isReplaceable }: EngineFacts) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    for (const [name, value] of given) {
      if (typeof value === "number" && value > 0) continue;
      throw new TypeError(`Cannot make a store: ${name} is ${value}; it must be a number above 0`);
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
    // If an answer is lost, the operation is repeated with the same token, so that it does not conflict with itself.
    const write = { ttlMs: toWholeTtl("set", ttlMs), version, token };
    return this.#run("set", (engine, options) => {
      checkSize("set", value, engine);
      // Require a boolean: a result object of a database, such as `{ changes: 0 }`, would count as true.
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
      throw new RangeError(`Cannot list: limit is ${limit}; it must be a whole number from 1 to ${LIST_VALUES}`);
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
        `Cannot append: max is ${max}; it must be a whole number from 1 to ${logEntries} (logEntries)`,
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
      throw new RangeError(`Cannot read: limit is ${limit}; it must be a whole number, 0 or more`);
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
      throw new Error(`Cannot subscribe: there are ${subscriptions} subscriptions (subscriptions)`);
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
      // Start to listen before the first read; otherwise an entry written between the two steps would be missed.
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

  // Removes the lease, because otherwise other processes would wait until it expires.
  async #giveLeaseBack({ signal }: AbortController): Promise<void> {
    const { engine, isLost } = this.#connection;
    if (this.lease.close() && engine && !isLost) await engine.delete(this.lease.id, { signal });
  }

  #share(host: SharingHost): SharedState {
    if (this.#isShared && !host.sealer.isShared) {
      throw new TypeError(
        "Cannot create a server: its store is shared by several processes, but it has no secret; set the same `secret` " +
          "in all of them",
      );
    }
    const { running, bytes, shared } = host.limits.perTenant;
    if (shared && Math.min(running, bytes) === Infinity) {
      throw new TypeError("Cannot set limits.perTenant.shared: no limit is set; set running or bytes too");
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
      // Stop a listener that starts after the deadline, because it would run as long as the engine exists.
      Promise.resolve(started).then((stop) => stop?.()).catch(() => {});
      throw error;
    });
  }

  /** Runs an operation: at once if the engine answers synchronously, otherwise within its deadline. */
  #run<T>(operation: string, run: Operation<T>, { isCounted }: Count = COUNTED): Awaitable<T> {
    if (this.#isClosed) throw new Error(`Cannot ${operation}: the store is closed`);
    if (isCounted && this.#pending >= this.#options.pending) {
      throw new Error(`Cannot ${operation}: ${this.#pending} operations are pending (pending)`);
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
    /** The engine that the current attempt uses. */
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
      end(new Error(`Cannot ${operation}: the store has not answered within ${timeoutMs} ms (timeoutMs)`));
    };
    const stop = systemClock.start(late, timeoutMs);
    if (isCounted) this.#pending++;
    this.#running.add(end);
    const attempt = async () => {
      engine = undefined;
      engine = await this.#connection.open();
      if (!isPending) throw new Error("the deadline has passed");
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
        // The engine answered that this operation can never succeed, so the connection works.
        if (isFinal(cause)) return reject(cause);
        this.#connection.fail(engine);
        reject(new Error(`Cannot ${operation}: the store has failed`, { cause }));
      },
    );
    return promise;
  }

  #checkValue(operation: string, value: string): void {
    const { valueBytes } = this.#options;
    // Some engines end a text at this character.
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
/** The store's own reads of topics do not count, because they have a separate limit. */
const UNCOUNTED: Count = { isCounted: false };

/** An operation that the engine answers asynchronously. */
interface Run<T> extends Count {
  readonly run: Operation<T>;
  readonly controller: AbortController;
  /** The first attempt. Set if the engine was already connected. */
  readonly first?: Promise<T>;
}

// Repeats an operation until it succeeds or its caller has received an error. After that, a repetition could undo a
// later write of the caller.
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

// Tests for an error with which another attempt would fail too, although the engine works.
function isFinal(error: unknown): boolean {
  return error instanceof RangeError || error instanceof TypeError;
}

function then<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isPromiseLike(value) ? Promise.resolve(value).then(next) : next(value);
}

// Copies only the known properties, because rows of a database may have further properties. Requires a version, because
// the next write would be unconditional without a version.
function readStored(found: StoredValue | null | undefined): StoredValue | undefined {
  if (found === undefined || found === null) return;
  const { value, version } = found;
  if (typeof value === "string" && typeof version === "string") return { value, version };
  throw new TypeError(
    "Cannot get a value: get() of the store's engine must return a value and a version that are strings, or undefined",
  );
}

function readList(found: readonly StoredEntry[]): readonly StoredEntry[] {
  if (Array.isArray(found) && found.every((entry) => typeof entry?.key === "string" && readStored(entry))) {
    return found.map(({ key, value, version }) => ({ key, value, version }));
  }
  throw new TypeError(
    "Cannot list: list() of the store's engine must return a list of keys, values and versions that are strings",
  );
}

function readId(id: number): number {
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new TypeError(`Cannot append: append() of the store's engine returned ${id}; return the id of the entry`);
}

function readPage({ entries, ...head }: LogPage): LogPage {
  return { entries: entries.map(({ id, value }) => ({ id, value })), ...readHead(head) };
}

function readHeads(heads: readonly LogHead[], { length }: readonly string[]): readonly LogHead[] {
  if (Array.isArray(heads) && heads.length === length) return heads.map(readHead);
  throw new TypeError("Cannot read: heads() of the store's engine did not return the state of each log");
}

function readHead({ first, last, epoch }: LogHead): LogHead {
  if (Number.isSafeInteger(first) && Number.isSafeInteger(last) && typeof epoch === "string") {
    return { first, last, epoch };
  }
  throw new TypeError(
    "Cannot read: the store's engine must return first and last, which are ids, and epoch, which is a string",
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

function checkToken(operation: string, token: string): void {
  if (typeof token === "string" && token.length <= KEY_CHARACTERS && /^[\w-]+$/.test(token)) return;
  throw new RangeError(
    `Cannot ${operation}: the token must have 1 to ${KEY_CHARACTERS} letters, digits, "-" and "_"`,
  );
}

function checkSize(operation: string, value: string, { valueBytes = Infinity }: StoreEngine): void {
  if (isWithin(value, valueBytes)) return;
  throw new RangeError(
    `Cannot ${operation}: the value has more than the ${valueBytes} bytes of the engine (valueBytes)`,
  );
}

/** Returns a whole number of milliseconds, because some engines reject or misread fractions. */
function toWholeTtl(operation: string, ttlMs: number): number {
  if (ttlMs > 0 && ttlMs <= MAX_TTL_MS) return Math.ceil(ttlMs);
  throw new RangeError(`Cannot ${operation}: ttlMs is ${ttlMs}; it must be above 0 and at most ${MAX_TTL_MS}`);
}

function checkId(operation: string, id: number): void {
  if (Number.isSafeInteger(id) && id >= 0) return;
  throw new RangeError(`Cannot ${operation}: ${id} is not the id of an entry; ids are whole numbers`);
}
