/**
 * Connects a store to its engine on first use. Sets a timeout for each attempt, and replaces an engine that does not
 * respond.
 *
 * Failures are counted separately for clients and for the process, because a client may cause many of them, such as
 * with values that the engine handles slowly. While the process needs the store for itself, failures of clients only
 * cause a test by the process. Only if the test fails too, clients' operations fail at once, and the engine is replaced.
 * Operations of the process fail at once only after failures of its own operations.
 */
import { show } from "../core/known_options.ts";
import { type Clock, systemClock } from "../core/timers.ts";
import type { Awaitable, EngineConnectOptions, StoreEngine } from "../server/engine/store.ts";
import { deadline } from "../core/kit/deadline.ts";
import { isPromiseLike } from "../core/protocol/promises.ts";

export type Connect = (options: EngineConnectOptions) => Awaitable<StoreEngine>;

export interface EngineConnectionOptions {
  /** The clock of the store, for the engine. The connection itself uses the system clock. */
  readonly clock: Clock;
  /** Timeout of an attempt to connect, in milliseconds. */
  readonly connectMs: number;
  /** Whether `connect` creates a new engine. `false` if the store received an engine instead of a function. */
  readonly isReplaceable: boolean;
  /** Called when an engine is closed because it does not respond. */
  readonly onReplace: () => void;
  /**
   * Tests whether the engine responds to the process, after operations of clients have failed. Returns `undefined` if
   * the process does not need the store for itself.
   */
  readonly test: () => Promise<boolean> | undefined;
}

/** The operations whose failures are counted together: those that clients may have caused, or those of the process. */
export type Side = "clients" | "own";

interface Circuit {
  failures: number;
  /** Monotonic time in milliseconds of the next attempt, if operations fail without reaching the engine, or else 0. */
  retryAt: number;
}

/** Number of consecutive failures after which the engine is replaced. */
export const LOST_AFTER = 3;
/** While the engine does not respond, milliseconds between two operations that test whether it responds again. */
const RETRY_MS = 1000;

export class EngineConnection {
  readonly #connect: Connect;
  readonly #options: EngineConnectionOptions;
  // Bound: one per replacement of the engine.
  readonly #closing = new Set<Promise<void>>();
  #engine?: StoreEngine;
  #connecting?: Promise<StoreEngine>;
  #giveUp?: (error: Error) => void;
  /** Settles when the latest attempt to connect has ended. An attempt that has timed out may end later. */
  #attempt?: Promise<void>;
  readonly #clients: Circuit = { failures: 0, retryAt: 0 };
  readonly #own: Circuit = { failures: 0, retryAt: 0 };
  #isTesting = false;
  /** Time at which the engine was last found lost, in milliseconds on the monotonic clock. */
  #lostAt = -Infinity;

  constructor(connect: Connect, options: EngineConnectionOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** The engine. `undefined` until the connection is established. */
  get engine(): StoreEngine | undefined {
    return this.#engine;
  }

  /** Whether operations of the process currently fail without reaching the engine. */
  get isLost(): boolean {
    return systemClock.now() < this.#own.retryAt;
  }

  /**
   * Throws if the engine does not respond. Admits one operation of each side per second, to test whether the engine
   * responds again. If all operations were admitted, each operation would fail only after its timeout.
   */
  admit(operation: string, side: Side): void {
    const circuit = side === "own" ? this.#own : this.#clients;
    if (!circuit.retryAt) return;
    const now = systemClock.now();
    if (now < circuit.retryAt) {
      throw new Error(
        `Cannot ${operation}: the store does not respond (the last ${LOST_AFTER} operations failed or timed out)`,
      );
    }
    circuit.retryAt = now + RETRY_MS;
  }

  open(): Awaitable<StoreEngine> {
    const open = this.#engine ?? this.#connecting;
    if (open) return open;
    const controller = new AbortController();
    const engine = this.#connect({ signal: controller.signal, clock: this.#options.clock });
    if (!isPromiseLike(engine)) return this.#use(engine);
    return this.#connecting = this.#await(Promise.resolve(engine), controller);
  }

  succeed(engine: StoreEngine | undefined): void {
    if (engine !== this.#engine) return;
    this.#clients.failures = this.#clients.retryAt = 0;
    this.#own.failures = this.#own.retryAt = 0;
  }

  /** Records that an operation has failed or timed out. `engine` is `undefined` if no engine was connected. */
  fail(engine: StoreEngine | undefined, side: Side): void {
    // Ignore failures of a replaced engine, because the current engine may work.
    if (engine && engine !== this.#engine) return;
    this.#clients.failures++;
    if (side === "own") this.#own.failures++;
    if (this.#own.failures >= LOST_AFTER) return this.#dropEngine(this.#clients, this.#own);
    if (side === "own" || this.#clients.failures < LOST_AFTER || this.#isTesting) return;
    const testing = this.#options.test();
    if (!testing) return this.#dropEngine(this.#clients, this.#own);
    this.#isTesting = true;
    testing.then((responds) => {
      this.#isTesting = false;
      if (!responds && engine === this.#engine) this.#dropEngine(this.#clients);
    });
  }

  /** Lets the operations that `circuits` count fail at once, and replaces the engine. */
  #dropEngine(...circuits: readonly Circuit[]): void {
    const now = systemClock.now();
    // The lease is renewed more often than once per second, and must not replace an engine that was just connected.
    if (now - this.#lostAt < RETRY_MS / 2) return;
    this.#lostAt = now;
    for (const circuit of circuits) circuit.retryAt = now + RETRY_MS;
    if (!this.#engine || !this.#options.isReplaceable) return;
    this.#close(this.#engine);
    this.#engine = undefined;
    this.#options.onReplace();
  }

  /** Closes the engine. Settles when the engine is closed. */
  async close(): Promise<void> {
    this.#giveUp?.(new Error("Cannot connect: the store was closed"));
    await this.#attempt;
    if (this.#engine) this.#close(this.#engine);
    await Promise.all(this.#closing);
  }

  #use(engine: StoreEngine): StoreEngine {
    checkEngine(engine);
    return this.#engine = engine;
  }

  // Set a timeout for the attempt, because an attempt that neither succeeds nor fails would block all later attempts.
  async #await(connecting: Promise<StoreEngine>, controller: AbortController): Promise<StoreEngine> {
    const { connectMs: ms } = this.#options;
    const { signal } = controller;
    const onTimeout = () => {
      controller.abort(new Error(`Cannot connect: the store did not connect within ${ms} ms`));
      throw signal.reason;
    };
    this.#giveUp = (error) => controller.abort(error);
    this.#attempt = connecting.then((engine) => void (signal.aborted && this.#close(engine)), () => {});
    try {
      return this.#use(await deadline(connecting, { ms, onTimeout, signal, clock: systemClock, background: true }));
    } finally {
      this.#connecting = this.#giveUp = undefined;
    }
  }

  #close(engine: StoreEngine): void {
    const close = async () => await engine.close?.();
    // Ignore an error of close(), because no operation uses the engine any more.
    const closing: Promise<void> = close().catch(() => {}).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

const METHODS = ["get", "set", "delete", "list", "append", "read", "trim"] as const;

function checkEngine(engine: StoreEngine): void {
  const missing = METHODS.find((name) => typeof Object(engine)[name] !== "function");
  if (missing) throw new TypeError(`Cannot use an engine as a store: the engine has no ${missing}(); add this method`);
  const { valueBytes } = engine;
  if (valueBytes === undefined || valueBytes > 0) return;
  throw new TypeError(
    `Cannot use an engine as a store: the engine's valueBytes is ${show(valueBytes)}; use a number above 0`,
  );
}
