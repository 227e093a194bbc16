/**
 * Runs the operations of a store on its engine. Connects on first use, checks limits, sets a timeout for each operation,
 * and reads topics.
 *
 * Each operation has a user: a client, or the process itself. Clients share slots, and wait for each other. Operations
 * of the process never wait for clients: some of the operations in progress are reserved for the process, and failures
 * of clients' operations do not stop its operations.
 */
import type { Account, Pot } from "../server/capacity/account.ts";
import type { Bounds } from "../server/capacity/limits.ts";
import { Slots } from "../server/capacity/slots.ts";
import { type Clock, systemClock } from "../core/timers.ts";
import type {
  Awaitable,
  EngineOptions,
  LogHead,
  LogPage,
  ReadOptions,
  StoreEngine,
  SubscribeOptions,
  TopicListener,
} from "../server/engine/store.ts";
import { deadline, delay } from "../core/kit/deadline.ts";
import { toBusy } from "../core/protocol/errors.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";
import { type Connect, EngineConnection, type Side } from "./engine_connection.ts";
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

/** The user of an operation: a client of a server with `limits`, or the process itself. */
export class User {
  /** The client whose request or work needs the operation. `undefined` if the process itself needs the operation. */
  readonly account?: Account;
  /** The limits of the client's server. Set if there is a client. */
  readonly limits?: Bounds;
  /** The use by the process. Set if there is no client. */
  readonly own?: OwnUse;
  /** Whether an operation has begun. Later operations are not refused but wait, so that no request fails halfway. */
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

/** Average milliseconds before the first, second, third and fourth retry of a failed operation. */
const REPEAT_MS = [5, 10, 20, 40];

/** Timeout of an attempt to connect, as a multiple of `timeoutMs`. */
const CONNECT_TIMES = 5;

export interface OperationHost {
  /** The clock of the store, for the engine. Operations use the system clock, because the engine does not wait. */
  readonly clock: Clock;
  readonly connect: Connect;
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

/** An operation on an engine, and the check of what the engine's method returns. */
export interface Operation<T, R> {
  readonly run: (engine: StoreEngine, options: EngineOptions) => Awaitable<T>;
  readonly read: (result: T) => R;
}

interface Started<R> {
  readonly user: User;
  readonly operation: string;
  readonly controller: AbortController;
  /** The first attempt. Set if the engine was already connected when the operation started. */
  readonly first?: Promise<R>;
  readonly attempt: (engine: StoreEngine) => Promise<R>;
}

/** The operations of a store. Each has a timeout of `timeoutMs`, unless the engine's method returns synchronously. */
export class Operations {
  readonly options: OperationOptions;
  readonly #host: OperationHost;
  readonly #connection: EngineConnection;
  readonly #topics: Topics;
  /** The slots for the clients of each server that uses the store. */
  readonly #slots = new WeakMap<Pot, Slots>();
  // Bound: the option `pending`, and `store.operations`.
  readonly #running = new Set<AbortController>();
  /** Number of operations in progress that count towards the limit `pending`. */
  #pending = 0;
  /** The part of `pending` that is not reserved for the process. */
  readonly #shared: number;
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
    this.options = options;
    this.#shared = options.pending - toReserved(options.pending);
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

  async #heads(topics: readonly string[]): Promise<readonly LogHead[] | undefined> {
    const { engine } = this.#connection;
    // Without this check, an engine without `heads` would seem to have responded.
    if (engine && !engine.heads) return;
    return await this.run(TOPICS, "read", {
      run: (engine, options) => engine.heads?.(topics, options),
      read: (heads) => heads && readHeads(heads, topics),
    });
  }

  async subscribe(
    user: User,
    topic: string,
    listener: TopicListener,
    options: SubscribeOptions,
  ): Promise<() => void> {
    const { after, epoch } = options;
    const leave = this.#enterSubscriptions(user);
    const subscription = new Subscription(
      (options) => this.read(TOPICS, topic, options),
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
      // Start listening before the first read. Otherwise an entry between the two steps could be missed.
      await this.#topics.listen();
      this.#topics.add(topic, subscription);
      const place = after === undefined ? await this.read(user, topic, { after: 0, limit: 0 }) : { last: after, epoch };
      subscription.start(place, { isCurrent: after === undefined });
      return stop;
    } catch (error) {
      stop();
      throw error;
    }
  }

  /** Closes the engine. `before` may use the engine for the last time. */
  async close(before: (engine: StoreEngine, options: EngineOptions) => Awaitable<unknown>): Promise<void> {
    this.#isClosed = true;
    const error = new Error("Cannot finish the operation: the store was closed");
    for (const running of this.#running) running.abort(error);
    const controller = new AbortController();
    const { engine, isLost } = this.#connection;
    const prepare = async () => void (engine && !isLost && await before(engine, { signal: controller.signal }));
    const close = async () => {
      await prepare().catch(() => {});
      await this.#topics.close();
      await this.#connection.close();
    };
    await deadline(close(), { ms: this.options.timeoutMs, onTimeout: () => {}, clock: systemClock });
    controller.abort();
  }

  // Counts a subscription. Returns a function that ends the count.
  //
  // Only clients and the server's author can use up `subscriptions`, by resuming streams and by calling `subscribe`.
  // The process's own subscriptions, such as to the notifications of other instances, use the reserved ones.
  #enterSubscriptions(user: User): () => void {
    const { account, limits, own } = user;
    const { subscriptions } = this.options;
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
    const { subscriptions } = this.options;
    const total = subscriptions - toReserved(subscriptions);
    const share = Math.min(total, connections.streamsPerClient);
    return account.pot({ name: "store.subscriptions", total, share, shareName: "connections.streamsPerClient" });
  }

  read(user: User, log: string, read: ReadOptions): Promise<LogPage> {
    return this.run(user, "read", {
      run: (engine, options) => engine.read(log, { ...read, ...options }),
      read: readPage,
    });
  }

  async #listen(
    onRing: (log: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<(() => void) | undefined> {
    let started: Awaitable<(() => void) | undefined>;
    try {
      return await this.run(SERVER, "listen", {
        run: (engine) => started = engine.listen?.(onRing, onLost),
        read: (stop) => stop,
      });
    } catch (error) {
      // Stop a listener that starts only after the timeout, because no other code would stop it.
      Promise.resolve(started).then((stop) => stop?.()).catch(() => {});
      throw error;
    }
  }

  async #test(): Promise<boolean> {
    try {
      // Use the right of the lease, so that neither the limit nor the circuit of the process refuses the test.
      await this.run(LEASE, "get", { run: (engine, options) => engine.get(TEST_KEY, options), read: () => {} });
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Runs an operation. A client that has used up its share can only delay itself, and fills only its own queue. Six
   * clients can use up all slots but the reserve; then each client waits for one operation of each other waiting client.
   */
  async run<T, R>(user: User, operation: string, { run, read }: Operation<T, R>): Promise<R> {
    this.#requireOpen(operation);
    const { account, limits, own } = user;
    const client = account && limits && { account, slots: this.#toSlots(account, limits) };
    const isFirst = !user.hasBegun;
    user.hasBegun = true;
    let hasSlot = false;
    if (client && !client.slots.isFree(client.account)) {
      const turn = client.slots.wait(client.account, isFirst);
      user.hasBegun = turn !== undefined;
      if (!turn) throw toBusy("use the store: the client has too many operations in progress", "store.operations");
      await turn;
      hasSlot = true;
    }
    try {
      this.#requireOpen(operation);
      this.#requireRoom(user, operation, isFirst);
      if (own !== "lease") this.#connection.admit(operation, toSide(user));
      const controller = new AbortController();
      const { signal } = controller;
      let first: Promise<R> | undefined;
      try {
        const engine = this.#connection.open();
        if (!(engine instanceof Promise)) {
          const result = run(engine, { signal });
          // Fast path: a synchronous result needs no slot and no timer.
          if (!isPromiseLike(result)) {
            const value = read(result);
            this.#succeed(engine, operation);
            return value;
          }
          first = Promise.resolve(result).then(read);
        }
      } catch (error) {
        if (isFinal(error)) throw error;
        first = Promise.reject(error);
      }
      if (!hasSlot) client?.slots.acquire(client.account);
      hasSlot = true;
      const attempt = async (engine: StoreEngine) => read(await run(engine, { signal }));
      return await this.#finish({ user, operation, controller, first, attempt });
    } finally {
      if (hasSlot) client?.slots.give(client.account);
    }
  }

  #requireOpen(operation: string): void {
    if (this.#isClosed) throw new Error(`Cannot ${operation}: the store is closed`);
  }

  #toSlots(account: Account, { store, calls }: Bounds): Slots {
    const total = Math.min(store.operations, this.#shared);
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
  #requireRoom({ own }: User, operation: string, isFirst: boolean): void {
    if (own === "lease" || own === "topics") return;
    const max = own === "server" ? this.options.pending : this.#shared;
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

  #fail(engine: StoreEngine | undefined, { user, operation }: Started<unknown>, error: Error): void {
    this.#connection.fail(engine, toSide(user));
    // `onListening` reports a listener that cannot start, because the store works without a listener.
    if (operation === "listen" || this.#isClosed) return;
    this.#failing.add(toKind(operation));
    this.#host.onFailure(operation, error);
  }

  // Repeats the operation until it succeeds or `timeoutMs` are over.
  async #finish<R>(started: Started<R>): Promise<R> {
    const { user, operation, controller, first } = started;
    const { signal } = controller;
    const { timeoutMs: ms } = this.options;
    const isCounted = user.own !== "topics";
    /** The engine of the current attempt. `undefined` until the attempt has connected. */
    let engine: StoreEngine | undefined = first && this.#connection.engine;
    /** The error of the last attempt. Missing until an attempt has failed. */
    const failed: { cause?: unknown } = {};
    const fail = () => {
      const problem = "cause" in failed
        ? "the store's engine has failed; see the cause"
        : `the store did not respond within ${ms} ms (timeoutMs)`;
      const error = new Error(`Cannot ${operation}: ${problem}`, failed);
      this.#fail(engine, started, error);
      return error;
    };
    const attempt = async () => {
      engine = undefined;
      engine = await this.#connection.open();
      signal.throwIfAborted();
      return await started.attempt(engine);
    };
    const onError = (cause: unknown) => void (failed.cause = cause);
    const isWanted = (error?: unknown) => !signal.aborted && !isFinal(error);
    if (isCounted) this.#pending++;
    this.#running.add(controller);
    try {
      const work = repeat(attempt, { first, onError, isWanted });
      const onTimeout = () => {
        controller.abort(fail());
        throw signal.reason;
      };
      const value = await deadline(work, { ms, onTimeout, signal });
      this.#succeed(engine, operation);
      return value;
    } catch (cause) {
      // Do not count a final error as a failure of the connection, because the engine has responded.
      if (!isWanted(cause)) throw cause;
      failed.cause = cause;
      throw fail();
    } finally {
      if (isCounted) this.#pending--;
      this.#running.delete(controller);
    }
  }
}

/** A key without a value. Reading it shows whether the engine responds. */
const TEST_KEY = "mcp-unused";

/** A quarter, and at most 64, because a process makes few operations for itself at the same time. */
function toReserved(max: number): number {
  return Math.min(64, Math.floor(max / 4));
}

// Failures of operations that clients may have caused are counted separately, because a client may cause many of them.
// Reads of topics are among them, because clients cause large entries.
function toSide({ own }: User): Side {
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

function toKind(operation: string): "read" | "write" {
  return ["set", "delete", "append", "trim"].includes(operation) ? "write" : "read";
}
