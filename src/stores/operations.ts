/**
 * Runs the operations of a store on its engine. Connects on first use, checks arguments and limits, sets a timeout for
 * each operation, and reads topics.
 *
 * Each operation has a user: a client, or the process itself. Clients share slots, and wait for each other. Operations
 * of the process never wait for clients: some of the operations in progress are reserved for the process, and failures
 * of clients' operations do not stop its operations.
 */
import type { Account, Pot } from "../server/capacity/account.ts";
import type { Bounds } from "../server/capacity/limits.ts";
import { Slots } from "../server/capacity/slots.ts";
import { type Clock, systemClock } from "../core/timers.ts";
import { show } from "../core/known_options.ts";
import { readSyncVerdict } from "../server/call/verdict.ts";
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
  StoredEntry,
  StoredValue,
  StoreEngine,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
import { deadline, delay } from "../core/kit/deadline.ts";
import { startResponseTimer } from "../core/kit/timer.ts";
import { toBusy } from "../core/protocol/errors.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import { isWithin } from "../core/protocol/weight.ts";
import { type Connect, EngineConnection, type Side } from "./engine_connection.ts";
import { getAll } from "./get_all.ts";
import { Subscription } from "./subscription.ts";
import { Topics } from "./topics.ts";

/** The options of the operations. `StoreOptions` documents them. */
export interface OperationOptions {
  readonly timeoutMs: number;
  /** 0 for the default. */
  readonly pollMs: number;
  readonly valueBytes: number;
  readonly logEntries: number;
  readonly pending: number;
  readonly subscriptions: number;
}

/**
 * What the process uses the store for:
 *
 * - `lease`: the lease of the process. One operation at a time. It is never refused, because other processes would
 *   assume that this process has ended.
 * - `server`: state that servers share without a client's request, such as change notifications.
 * - `topics`: reads of topics, whose number `Topics` limits. Their failures count like those of clients.
 * - `author`: the public methods of the store, which the server's author calls. Clients' calls may run this code, so
 *   these operations are limited like those of clients.
 */
export type OwnUse = "lease" | "server" | "topics" | "author";

/** The user of an operation. */
export interface StoreUser {
  /** The client whose request or work needs the operation. `undefined` if the process itself needs the operation. */
  readonly account?: Account;
  /** The limits of the client's server. Set if there is a client. */
  readonly limits?: Bounds;
  /** The use by the process. Set if there is no client. */
  readonly own?: OwnUse;
  /**
   * Whether an operation of this user has begun. From then on, the user's operations wait for a slot, but are not
   * refused, so that no request fails halfway.
   */
  hasBegun: boolean;
}

/** A client of a server with `limits`, or the process itself. */
export class User implements StoreUser {
  readonly account?: Account;
  readonly limits?: Bounds;
  readonly own?: OwnUse;
  hasBegun: boolean;

  constructor(by: Account | OwnUse, limits?: Bounds) {
    this.limits = limits;
    if (typeof by === "string") this.own = by;
    else this.account = by;
    this.hasBegun = typeof by === "string";
  }
}

const LEASE = new User("lease");
const SERVER = new User("server");
const TOPICS = new User("topics");

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

/** The parts of a store that its operations need. */
export interface OperationHost {
  /** The clock of the store, for the engine. Operations use the system clock, because the engine does not wait. */
  readonly clock: Clock;
  readonly connect: Connect;
  /** Whether the store can replace the engine by connecting again. */
  readonly isReplaceable: boolean;
  /** Returns whether the process needs the store for itself, such as for a server's state. */
  isNeeded(): boolean;
  /** Called when the engine's listener is lost, and when a listener works again. */
  onListening(state: "lost" | "back", error?: unknown): void;
  /** Called when the engine has failed in an operation, or has not responded in time. */
  onFailure(operation: string, error: unknown): void;
  /** Called when the engine has responded to an operation after a failure. */
  onRecovery(operation: string): void;
}

type Operation<T> = (engine: StoreEngine, options: EngineOptions) => Awaitable<T>;

/** An operation that is about to start. */
interface Starting<T> {
  readonly user: StoreUser;
  readonly operation: string;
  readonly run: Operation<T>;
  /** The slots of which the operation takes one. `undefined` for an operation of the process. */
  readonly slots?: Slots;
  /** Whether the operation has already taken a slot. */
  readonly hasSlot?: boolean;
  /** Whether this is the first operation of a client's request, which is refused if there is no room. */
  readonly isFirst?: boolean;
}

/** An operation of a client that is about to start. */
type StartingInSlot<T> = Starting<T> & Required<Pick<Starting<T>, "slots" | "isFirst">>;

/** The operations of a store. An operation returns synchronously if the engine's method returns synchronously. */
export class Operations {
  readonly #options: OperationOptions;
  readonly #host: OperationHost;
  readonly #connection: EngineConnection;
  readonly #topics: Topics;
  /** The slots for the clients of each server that uses the store. */
  readonly #slots = new WeakMap<Pot, Slots>();
  /** For each operation in progress, a function that ends it with an error. */
  // Bound: the option `pending`, and `store.operations`.
  readonly #running = new Set<(error: Error) => void>();
  /** Number of operations in progress that count towards the limit `pending`. */
  #pending = 0;
  #subscribed = 0;
  /**
   * The kinds of operations that have failed since the engine last responded to such an operation. An engine that can
   * read but not write, such as a database whose disk is full, has not recovered when a read succeeds.
   */
  // Bound: two kinds.
  readonly #failing = new Set<"read" | "write">();
  #isClosed = false;

  constructor(options: OperationOptions, host: OperationHost) {
    const { connect, clock, isReplaceable, isNeeded, onListening } = host;
    this.#options = options;
    this.#host = host;
    this.#connection = new EngineConnection(connect, {
      clock,
      connectMs: CONNECT_TIMES * options.timeoutMs,
      isReplaceable,
      onReplace: () => this.#topics.restart(),
      test: () => isNeeded() ? this.#test() : undefined,
    });
    this.#topics = new Topics({
      heads: (topics) => this.#heads(topics),
      listen: (onRing, onLost) => this.#listen(onRing, onLost),
      isLost: () => this.#connection.isLost,
      onListening,
    }, options.pollMs);
  }

  get(user: StoreUser, key: string): Awaitable<StoredValue | undefined> {
    checkKey("get", key);
    return this.#run(user, "get", (engine, options) => then(engine.get(key, options), readStored));
  }

  /** Reads several values as one operation. Returns them in the order of the keys. */
  getAll(user: StoreUser, keys: readonly string[]): Awaitable<readonly (StoredValue | undefined)[]> {
    for (const key of keys) checkKey("get", key);
    return this.#run(
      user,
      "get",
      (engine, options) => then(getAll(engine, keys, options), (found) => found.map(readStored)),
    );
  }

  set(
    user: StoreUser,
    key: string,
    value: string,
    { ttlMs, version, token = toToken() }: SetOptions,
  ): Awaitable<string | undefined> {
    checkKey("set", key);
    checkToken("set", token);
    this.#checkValue("set", value);
    // If the response is lost, the store retries the operation with the same token, so that the retry does not conflict
    // with the first attempt.
    const write = { ttlMs: toWholeTtl("set", ttlMs), version, token };
    return this.#run(user, "set", (engine, options) => {
      checkSize("set", value, engine);
      // Require a boolean, because a result object from a database, such as `{ changes: 0 }`, would count as true.
      return then(
        engine.set(key, value, { ...write, ...options }),
        (isSet) => readSyncVerdict(isSet, "set() of the store's engine") ? token : undefined,
      );
    });
  }

  delete(user: StoreUser, key: string, { version }: DeleteOptions = {}): Awaitable<boolean> {
    checkKey("delete", key);
    return this.#run(user, "delete", (engine, options) =>
      then(
        engine.delete(key, { version, ...options }),
        (isDeleted) => readSyncVerdict(isDeleted, "delete() of the store's engine"),
      ));
  }

  list(user: StoreUser, prefix: string, { after = "", limit }: ListOptions): Awaitable<readonly StoredEntry[]> {
    if (prefix !== "") checkKey("list", prefix);
    if (after !== "") checkKey("list", after);
    if (!(Number.isSafeInteger(limit) && limit > 0 && limit <= LIST_VALUES)) {
      throw new RangeError(`Cannot list: limit is ${show(limit)}; use an integer from 1 to ${LIST_VALUES}`);
    }
    return this.#run(
      user,
      "list",
      (engine, options) => then(engine.list(prefix, { after, limit, ...options }), readList),
    );
  }

  append(
    user: StoreUser,
    log: string,
    value: string,
    { ttlMs, max, token = toToken() }: AppendOptions,
  ): Awaitable<number> {
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
    return this.#run(user, "append", (engine, options) => {
      checkSize("append", value, engine);
      return then(engine.append(log, value, { ...write, ...options }), readId);
    });
  }

  read(user: StoreUser, log: string, { after = 0, limit }: ReadOptions): Awaitable<LogPage> {
    checkKey("read", log);
    checkId("read", after);
    if (!(Number.isSafeInteger(limit) && limit >= 0)) {
      throw new RangeError(`Cannot read: limit is ${show(limit)}; use an integer of at least 0`);
    }
    return this.#read(user, log, { after, limit: Math.min(limit, PAGE_ENTRIES) });
  }

  trim(user: StoreUser, log: string, before: number): Awaitable<void> {
    checkKey("trim", log);
    checkId("trim", before);
    return this.#run(user, "trim", (engine, options) => then(engine.trim(log, before, options), () => {}));
  }

  #heads(topics: readonly string[]): Awaitable<readonly LogHead[] | undefined> {
    const { engine } = this.#connection;
    // Without this check, an engine without `heads` would seem to have responded.
    if (engine && !engine.heads) return;
    return this.#run(
      TOPICS,
      "read",
      (engine, options) => engine.heads && then(engine.heads(topics, options), (heads) => readHeads(heads, topics)),
    );
  }

  publish(user: StoreUser, topic: string, text: string): Awaitable<void> {
    const max = Math.min(TOPIC.max, this.#options.logEntries);
    return then(this.append(user, topic, text, { ttlMs: TOPIC.ttlMs, max }), () => {});
  }

  subscribe(
    user: StoreUser,
    topic: string,
    listener: TopicListener,
    options: SubscribeOptions = {},
  ): Awaitable<() => void> {
    checkKey("subscribe", topic);
    const { after, epoch } = options;
    if (after !== undefined) checkId("subscribe", after);
    const leave = this.#enterSubscriptions(user);
    const subscription = new Subscription(
      (options) => this.#read(TOPICS, topic, options),
      listener,
      options,
    );
    let isOver = false;
    const stop = () => {
      if (isOver) return;
      isOver = true;
      leave();
      this.#topics.remove(topic, subscription);
    };
    try {
      // Start listening before the first read. Otherwise the store could miss an entry that is written between the two
      // steps.
      const started = then(this.#topics.listen(), () => {
        if (!isOver) this.#topics.add(topic, subscription);
        return then(after === undefined ? this.read(user, topic, { limit: 0 }) : { last: after, epoch }, (place) => {
          subscription.start(place, { isCurrent: after === undefined });
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

  /** Closes the engine. `before` may use the engine for the last time. */
  async close(before: (engine: StoreEngine, options: EngineOptions) => Awaitable<unknown>): Promise<void> {
    this.#isClosed = true;
    for (const end of [...this.#running]) end(new Error("Cannot finish the operation: the store was closed"));
    const controller = new AbortController();
    const { engine, isLost } = this.#connection;
    const prepare = async () => void (engine && !isLost && await before(engine, { signal: controller.signal }));
    const close = async () => {
      await prepare().catch(() => {});
      await this.#topics.close();
      await this.#connection.close();
    };
    await deadline(close(), { ms: this.#options.timeoutMs, onTimeout: () => {}, clock: systemClock });
    controller.abort();
  }

  // Counts a subscription. Returns a function that ends the count.
  //
  // Only clients and the server's author can use up `subscriptions`, by resuming streams and by calling `subscribe`.
  // The process's own subscriptions, such as to the notifications of other instances, use the reserved ones.
  #enterSubscriptions(user: StoreUser): () => void {
    const { account, limits, own } = user;
    const { subscriptions } = this.#options;
    const max = own === "server" ? subscriptions : subscriptions - toReserved(subscriptions);
    if (this.#subscribed >= max) {
      throw new Error(`Cannot subscribe: the store already has ${max} subscriptions, the maximum (subscriptions)`);
    }
    const pot = account && limits && this.#toSubscriptionPot(account, limits);
    if (account && !pot?.charge(account)) {
      throw toBusy("subscribe: the client already follows too many topics", "connections.streamsPerClient");
    }
    this.#subscribed++;
    return () => {
      this.#subscribed--;
      if (account) pot?.give(account);
    };
  }

  // A client can only use up its own share, which does not matter to other clients.
  #toSubscriptionPot(account: Account, { connections }: Bounds): Pot {
    const { subscriptions } = this.#options;
    const total = subscriptions - toReserved(subscriptions);
    const share = Math.min(total, connections.streamsPerClient);
    return account.pot({ name: "store.subscriptions", total, share, shareName: "connections.streamsPerClient" });
  }

  #read(user: StoreUser, log: string, read: ReadOptions): Awaitable<LogPage> {
    return this.#run(user, "read", (engine, options) => then(engine.read(log, { ...read, ...options }), readPage));
  }

  #listen(
    onRing: (log: string) => void,
    onLost: (error?: unknown) => void,
  ): Awaitable<(() => void) | undefined> {
    let started: Awaitable<(() => void) | undefined>;
    const listening = this.#run(SERVER, "listen", (engine) => started = engine.listen?.(onRing, onLost));
    if (!(listening instanceof Promise)) return listening;
    return listening.catch((error) => {
      // Stop a listener that starts only after the timeout, because no other code would stop it.
      Promise.resolve(started).then((stop) => stop?.()).catch(() => {});
      throw error;
    });
  }

  /** Tests whether the engine responds to the process, after operations of clients have failed. */
  async #test(): Promise<boolean> {
    try {
      // Use the right of the lease, so that neither the limit nor the circuit of the process refuses the test.
      await this.#run(LEASE, "get", (engine, options) => then(engine.get(TEST_KEY, options), () => {}));
      return true;
    } catch {
      return false;
    }
  }

  // Runs an operation. If the engine returns synchronously, returns the result synchronously. Otherwise the operation
  // has a timeout of `timeoutMs`, which starts when the operation has a slot.
  #run<T>(user: StoreUser, operation: string, run: Operation<T>): Awaitable<T> {
    if (this.#isClosed) throw new Error(`Cannot ${operation}: the store is closed`);
    const { account, limits } = user;
    if (!account || !limits) return this.#start({ user, operation, run });
    const slots = this.#toSlots(account, limits);
    const isFirst = !user.hasBegun;
    user.hasBegun = true;
    const starting = { user, operation, run, slots, isFirst };
    return slots.isFree(account) ? this.#start(starting) : this.#runLater(account, starting);
  }

  // A client that has used up its share can only delay itself, and fills only its own queue. Six clients can use up all
  // slots but the reserve; then each client waits for one operation of each other waiting client.
  #runLater<T>(account: Account, starting: StartingInSlot<T>): Promise<T> {
    const { user, slots, isFirst } = starting;
    const turn = slots.wait(account, isFirst);
    if (turn) return this.#startLater(turn, account, starting);
    user.hasBegun = false;
    throw toBusy("use the store: the client has too many operations in progress", "store.operations");
  }

  async #startLater<T>(turn: Promise<void>, account: Account, starting: StartingInSlot<T>): Promise<T> {
    await turn;
    let result;
    try {
      if (this.#isClosed) throw new Error(`Cannot ${starting.operation}: the store is closed`);
      result = this.#start({ ...starting, hasSlot: true });
    } finally {
      // An operation that is still in progress releases its slot when it ends.
      if (!isPromiseLike(result)) starting.slots.give(account);
    }
    return await result;
  }

  #toSlots(account: Account, { store, calls }: Bounds): Slots {
    const { pending } = this.#options;
    const total = Math.min(store.operations, pending - toReserved(pending));
    const share = Math.ceil(total / 8);
    const slots = account.pot({ name: "store.operations", total, share });
    const known = this.#slots.get(slots);
    if (known) return known;
    const limitName = "store.operations";
    const waiting = account.pot({ name: "store.waiting", total: calls.waiting, share: 2 * share, limitName });
    const made = new Slots({ slots, waiting });
    this.#slots.set(slots, made);
    return made;
  }

  // Throws if too many operations are in progress. Several servers with one store, or the author's code in many calls,
  // can use up `pending`, except for the operations that are reserved for the process.
  #requireRoom({ user: { own }, operation, isFirst }: Starting<unknown>): void {
    if (own === "lease" || own === "topics") return;
    const { pending } = this.#options;
    const max = own === "server" ? pending : pending - toReserved(pending);
    if (this.#pending < max) return;
    const problem = `${operation}: ${this.#pending} operations are already pending (pending)`;
    // For a request that has begun to use the store, this is a failure of the store, like a timeout.
    throw isFirst ? toBusy(problem) : new Error(`Cannot ${problem}`);
  }

  #succeed(engine: StoreEngine | undefined, operation: string): void {
    this.#connection.succeed(engine);
    if (operation === "listen" || !this.#failing.delete(toKind(operation)) || this.#failing.size) return;
    this.#host.onRecovery(operation);
  }

  #fail(
    engine: StoreEngine | undefined,
    { user, operation }: Pick<Starting<unknown>, "user" | "operation">,
    error: Error,
  ): void {
    this.#connection.fail(engine, toSide(user));
    // `onListening` reports a listener that cannot start, because the store works without a listener.
    if (operation === "listen" || this.#isClosed) return;
    this.#failing.add(toKind(operation));
    this.#host.onFailure(operation, error);
  }

  #start<T>(starting: Starting<T>): Awaitable<T> {
    const { user, operation, run } = starting;
    this.#requireRoom(starting);
    if (user.own !== "lease") this.#connection.admit(operation, toSide(user));
    const controller = new AbortController();
    let first: Promise<T> | undefined;
    try {
      const engine = this.#connection.open();
      if (!(engine instanceof Promise)) {
        const result = run(engine, { signal: controller.signal });
        if (!isPromiseLike(result)) {
          this.#succeed(engine, operation);
          return result;
        }
        first = Promise.resolve(result);
      }
    } catch (error) {
      if (isFinal(error)) throw error;
      first = Promise.reject(error);
    }
    return this.#withDeadline(starting, { controller, first });
  }

  #withDeadline<T>(
    { user, operation, run, slots, hasSlot }: Starting<T>,
    { controller, first }: Started<T>,
  ): Promise<T> {
    const { timeoutMs } = this.#options;
    const { account, own } = user;
    const isCounted = own !== "topics";
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    /** The engine of the current attempt. `undefined` until the attempt has connected. */
    let engine: StoreEngine | undefined = first && this.#connection.engine;
    let isPending = true;
    const settle = () => {
      isPending = false;
      stop();
      this.#running.delete(end);
      if (isCounted) this.#pending--;
      if (account) slots?.give(account);
    };
    const end = (error: Error) => {
      settle();
      controller.abort(error);
      reject(error);
    };
    /** The error of the last attempt. Missing until an attempt has failed. */
    const failed: { cause?: unknown } = {};
    const fail = (end: (error: Error) => void) => {
      const problem = "cause" in failed
        ? "the store's engine has failed; see the cause"
        : `the store did not respond within ${timeoutMs} ms (timeoutMs)`;
      const error = new Error(`Cannot ${operation}: ${problem}`, failed);
      this.#fail(engine, { user, operation }, error);
      end(error);
    };
    const stop = startResponseTimer(timeoutMs, () => fail(end));
    if (isCounted) this.#pending++;
    if (account && !hasSlot) slots?.acquire(account);
    this.#running.add(end);
    const attempt = async () => {
      engine = undefined;
      engine = await this.#connection.open();
      if (!isPending) throw new Error("the operation has already ended");
      return await run(engine, { signal: controller.signal });
    };
    const onError = (cause: unknown) => void (failed.cause = cause);
    repeat(attempt, { first, onError, isWanted: (error) => isPending && !isFinal(error) }).then(
      (value) => {
        if (!isPending) return;
        settle();
        this.#succeed(engine, operation);
        resolve(value);
      },
      (cause) => {
        if (!isPending) return;
        settle();
        // Do not count a final error as a failure of the connection, because the engine has responded: the operation
        // can never succeed.
        if (isFinal(cause)) return reject(cause);
        failed.cause = cause;
        fail(reject);
      },
    );
    return promise;
  }

  #checkValue(operation: string, value: string): void {
    const { valueBytes } = this.#options;
    checkText(operation, value);
    if (isWithin(value, valueBytes)) return;
    throw new RangeError(
      `Cannot ${operation}: the value takes more than ${valueBytes} bytes in the store (valueBytes)`,
    );
  }
}

/** An operation whose result is not available synchronously. */
interface Started<T> {
  readonly controller: AbortController;
  /** The first attempt. Set if the engine was already connected when the operation started. */
  readonly first?: Promise<T>;
}

/** A key without a value. Reading it shows whether the engine responds. */
const TEST_KEY = "mcp-unused";

/**
 * Returns how many of `max` operations or subscriptions are reserved for the process: a quarter, and at most 64. A
 * process makes few operations for itself at the same time.
 */
function toReserved(max: number): number {
  return Math.min(64, Math.floor(max / 4));
}

// Failures of operations that clients may have caused are counted separately, because a client may cause many of them.
// Reads of topics are among them, because clients cause large entries.
function toSide({ own }: StoreUser): Side {
  return own === "lease" || own === "server" ? "own" : "clients";
}

// Retries an operation until its caller has received an error. A later retry could undo the caller's next write.
async function repeat<T>(
  attempt: () => Promise<T>,
  { first, onError, isWanted }: {
    readonly first?: Promise<T>;
    readonly onError: (error: unknown) => void;
    readonly isWanted: (error?: unknown) => boolean;
  },
): Promise<T> {
  let result = first ?? attempt();
  for (const ms of REPEAT_MS) {
    try {
      return await result;
    } catch (error) {
      onError(error);
      if (!isWanted(error)) break;
      await delay(ms * (0.5 + Math.random()), { clock: systemClock });
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

/** Throws if some engine would change or reject a text. */
export function checkText(operation: string, value: string): void {
  if (typeof value !== "string") throw new TypeError(`Cannot ${operation}: the value is ${show(value)}; use a string`);
  // Some engines truncate a text at U+0000.
  if (value.includes("\0")) throw new RangeError(`Cannot ${operation}: the value contains U+0000`);
  // UTF-8 cannot represent a lone surrogate, so most engines would change the value.
  if (!value.isWellFormed()) throw new RangeError(`Cannot ${operation}: the value contains a lone surrogate`);
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
    `Cannot ${operation}: the value takes more than ${valueBytes} bytes in the store, the limit of the engine (valueBytes)`,
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

function toKind(operation: string): "read" | "write" {
  return ["set", "delete", "append", "trim"].includes(operation) ? "write" : "read";
}
