/**
 * Connects a store to its engine on first use. Sets a timeout for each attempt, and replaces an engine that does not
 * respond.
 *
 * @module
 */
import { show } from "../core/call/known_options.ts";
import { systemClock } from "../core/capacity/timers.ts";
import type { Awaitable, EngineOptions, StoreEngine } from "../core/store.ts";
import { isPromiseLike } from "../protocol/promises.ts";

/** Connects to an engine. */
export type Connect = (options: EngineOptions) => Awaitable<StoreEngine>;

export interface EngineConnectionOptions {
  /** Timeout of an attempt to connect, in milliseconds. */
  readonly connectMs: number;
  /** Whether `connect` creates a new engine. `false` if the store received an engine instead of a function. */
  readonly isReplaceable: boolean;
  /** Called when an engine is closed because it does not respond. */
  readonly onReplace: () => void;
}

/** Number of consecutive failures after which the engine is replaced. */
export const LOST_AFTER = 3;
/** While the engine does not respond, milliseconds between two operations that test whether it responds again. */
const RETRY_MS = 1000;

export class EngineConnection {
  readonly #connect: Connect;
  readonly #options: EngineConnectionOptions;
  readonly #closing = new Set<Promise<void>>();
  #engine?: StoreEngine;
  #connecting?: Promise<StoreEngine>;
  #giveUp?: (error: Error) => void;
  /** Settles when the latest attempt to connect has ended. An attempt that has timed out may end later. */
  #attempt?: Promise<void>;
  #failures = 0;
  /**
   * While the engine does not respond, the time of the next attempt in milliseconds on the monotonic clock. Otherwise
   * 0.
   */
  #retryAt = 0;

  constructor(connect: Connect, options: EngineConnectionOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** The engine. `undefined` until the connection is established. */
  get engine(): StoreEngine | undefined {
    return this.#engine;
  }

  /** Whether operations currently fail without reaching the engine. */
  get isLost(): boolean {
    return systemClock.now() < this.#retryAt;
  }

  /**
   * Throws if the engine does not respond. Admits one operation per second, to test whether the engine responds again.
   * If all operations were admitted, each operation would fail only after its timeout.
   */
  admit(operation: string): void {
    if (!this.#retryAt) return;
    if (this.isLost) {
      throw new Error(
        `Cannot ${operation}: the store does not respond (the last ${LOST_AFTER} operations failed or timed out)`,
      );
    }
    this.#retryAt = systemClock.now() + RETRY_MS;
  }

  /** Returns the engine. Connects first if there is no connection. */
  open(): Awaitable<StoreEngine> {
    const open = this.#engine ?? this.#connecting;
    if (open) return open;
    const controller = new AbortController();
    const engine = this.#connect({ signal: controller.signal });
    if (!isPromiseLike(engine)) return this.#use(engine);
    return this.#connecting = this.#await(Promise.resolve(engine), controller);
  }

  /** Records that the engine has responded. */
  succeed(engine: StoreEngine | undefined): void {
    if (engine === this.#engine) this.#failures = this.#retryAt = 0;
  }

  /** Records that an operation has failed or timed out. `engine` is `undefined` if no engine was connected. */
  fail(engine: StoreEngine | undefined): void {
    // Ignore failures of a replaced engine, because the current engine may work.
    if (engine && engine !== this.#engine) return;
    if (++this.#failures < LOST_AFTER) return;
    this.#retryAt = systemClock.now() + RETRY_MS;
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
    const { promise, reject } = Promise.withResolvers<never>();
    const { connectMs } = this.#options;
    let isOver = false;
    const giveUp = (error: Error) => {
      isOver = true;
      controller.abort(error);
      reject(error);
    };
    this.#giveUp = giveUp;
    const late = () => giveUp(new Error(`Cannot connect: the store did not connect within ${connectMs} ms`));
    const stop = systemClock.start(late, connectMs, { background: true });
    this.#attempt = connecting.then((engine) => void (isOver && this.#close(engine)), () => {});
    try {
      return this.#use(await Promise.race([connecting, promise]));
    } finally {
      stop();
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
