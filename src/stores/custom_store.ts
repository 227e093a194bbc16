/**
 * Creates a store from an engine.
 */
import { INTERNALS } from "../core/internals.ts";
import { isStartingWorker } from "../core/runtime.ts";
import { checkOptions, type KnownOptions, show } from "../core/known_options.ts";
import type {
  Awaitable,
  EngineConnectOptions,
  SharedState,
  SharingHost,
  Store,
  StoreEngine,
  StoreInternals,
} from "../server/engine/store.ts";
import type { Observer } from "../server/call/observer.ts";
import { OutageReport } from "./outage_report.ts";
import { InstanceState } from "./instance_state.ts";
import { RuleRecord } from "./rule_record.ts";
import { StoreClock } from "./store_clock.ts";
import { SessionRecord } from "./session_record.ts";
import type { Connect } from "./engine_connection.ts";
import { Operations } from "./operations.ts";
import { ProcessLease, RELEASED } from "./process_lease.ts";
import { type StoreParts, UserView } from "./user_view.ts";

/** Options of a store, each of which is optional. */
export interface StoreOptions {
  /**
   * Timeout of an operation, in milliseconds. The timeout of an attempt to connect is five times as long. If the process
   * was blocked when the timeout expired, it waits up to this time once more. Defaults to 1000.
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
  /**
   * Maximum number of concurrent operations. Further operations fail. A quarter of them, and at most 64, are reserved
   * for the process itself, such as for change notifications. The renewal of the lease is never refused. Defaults to
   * 1000.
   */
  readonly pending?: number;
  /**
   * Maximum number of subscriptions to topics. A quarter of them, and at most 64, are reserved for the process itself.
   * Defaults to 10,000.
   */
  readonly subscriptions?: number;
  /**
   * Milliseconds after which other processes assume that this process has ended if it stops renewing its lease in the
   * store. The process renews the lease three times per `leaseMs` while it runs calls for which other processes may
   * wait. Defaults to 5000.
   */
  readonly leaseMs?: number;
}

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
  engine: StoreEngine | ((options: EngineConnectOptions) => Awaitable<StoreEngine>),
  options: StoreOptions = {},
): Store {
  checkOptions("create a store", options, STORE_OPTIONS);
  if (typeof engine !== "function" && typeof engine?.get !== "function") {
    throw new TypeError(
      "Cannot create a store: the first argument has no get(); pass an engine, or a function that connects to an engine",
    );
  }
  const clock = new StoreClock();
  if (typeof engine === "function") {
    return new CustomStore(engine, options, { isShared: true, isReplaceable: true, clock });
  }
  return new CustomStore(() => engine, options, { isShared: true, isReplaceable: false, clock });
}

/** @throws {TypeError} if the value is not a function. The message contains its name, and `example`, a correct call. */
export function requireConnect(named: Readonly<Record<string, unknown>>, example: string): void {
  const [[name, connect]] = Object.entries(named);
  if (typeof connect === "function") return;
  throw new TypeError(`Cannot create a store: ${name} is not a function; write ${example}`);
}

/**
 * Connects a second time, for the messages of other processes.
 *
 * @throws {TypeError} if `connect` returns the first client again.
 */
export async function openOther<T>(
  connect: () => Awaitable<T>,
  first: T,
  { database, kind }: Readonly<Record<"database" | "kind", string>>,
): Promise<T> {
  const other = await connect();
  if (other !== first) return other;
  throw new TypeError(
    `Cannot listen to ${database}: connect returned the same ${kind} twice; return a new ${kind} on each call`,
  );
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

export interface EngineInfo {
  /** Whether other processes can use the same engine. Each server then needs a `secret`. */
  readonly isShared: boolean;
  /** Whether the store can replace the engine by connecting again. */
  readonly isReplaceable: boolean;
  readonly clock: StoreClock;
}

/**
 * A store that uses an engine. Its public methods are for the server's author. Servers get their operations from
 * `share`, which tells the operations of clients apart from those of the process.
 */
export class CustomStore extends UserView implements Store {
  readonly [INTERNALS]: StoreInternals;
  readonly #parts: StoreParts;
  readonly #isShared: boolean;
  #closed?: Promise<void>;
  readonly #users: Set<InstanceState>;
  readonly #outages = new WeakMap<Observer, OutageReport>();

  constructor(connect: Connect, options: StoreOptions, info: EngineInfo) {
    const { isShared, isReplaceable, clock } = info;
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    for (const [name, value] of given) {
      if (typeof value === "number" && value > 0) continue;
      throw new TypeError(`Cannot create a store: ${name} is ${show(value)}; use a number above 0`);
    }
    const all: Required<StoreOptions> = { ...DEFAULTS, ...Object.fromEntries(given) };
    const users = new Set<InstanceState>();
    const operations = new Operations(all, {
      connect,
      clock,
      isReplaceable,
      isNeeded: () => users.size > 0 || lease.isUsed,
      onListening: (state, error) => listOutages(users).forEach((outage) => outage.listen(state, error)),
      onFailure: (operation, error) => listOutages(users).forEach((outage) => outage.failEngine(operation, error)),
      onRecovery: (operation) => listOutages(users).forEach((outage) => outage.recoverEngine(operation)),
    });
    const parts: StoreParts = {
      operations,
      get lease(): ProcessLease {
        return lease;
      },
    };
    const lease = new ProcessLease(new UserView(parts, "lease"), { ms: all.leaseMs, clock });
    super(parts, "author");
    this.#parts = parts;
    this.#users = users;
    this.#isShared = isShared;
    const never = new AbortController().signal;
    this[INTERNALS] = {
      connect: (options = { signal: never, clock }) => connect(options),
      isShared,
      timeoutMs: all.timeoutMs,
      valueBytes: all.valueBytes,
      reopen: (changed = {}) => new CustomStore(connect, { ...options, ...changed }, info),
      requireOpen: (action) => {
        if (!this.#closed) return;
        throw new TypeError(
          `Cannot ${action}: its store is closed; create a new store for each server that starts later`,
        );
      },
      share: (host) => {
        clock.use(host.ticker.clock);
        return this.#share(host);
      },
    };
  }

  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  #close(): Promise<void> {
    const { operations, lease } = this.#parts;
    const wasHeld = lease.close();
    // Release the lease. Otherwise other processes would notice the end of this process only when the lease expires.
    const released = { ttlMs: Math.ceil(lease.ms), token: crypto.randomUUID() };
    return operations.close((engine, options) =>
      wasHeld && engine.set(lease.id, RELEASED, { ...released, ...options })
    );
  }

  #share(host: SharingHost): SharedState {
    if (this.#isShared && isStartingWorker()) {
      throw new TypeError(
        "Cannot create a server: its store needs a connection, which the requests to a plain Worker cannot share; create " +
          "the server in the constructor of a Durable Object",
      );
    }
    const outage = this.#outages.get(host.observer) ?? new OutageReport(host.observer);
    this.#outages.set(host.observer, outage);
    const state: InstanceState = new InstanceState(host, {
      ...this.#parts,
      outage,
      limits: host.limits,
      store: this[INTERNALS],
      createSession: (state, info) => new SessionRecord(state, info),
      createRules: (state, ruled, trunk) => new RuleRecord(state, ruled, trunk),
      closeStore: async () => {
        this.#users.delete(state);
        if (!this.#users.size) await this.close();
      },
    });
    this.#users.add(state);
    return state;
  }
}

function listOutages(users: Iterable<InstanceState>): Set<OutageReport> {
  return new Set(Array.from(users, ({ outage }) => outage));
}
