/**
 * Connects a store to its engine on first use. Gives up an attempt that takes too long, and replaces an engine that
 * does not answer.
 *
 * @module
 */
import { systemClock } from "../core/capacity/timers.ts";
import type { Awaitable, EngineOptions, StoreEngine } from "../core/store.ts";
import { isPromiseLike } from "../protocol/promises.ts";

/** A function that connects to an engine. */
export type Connect = (options: EngineOptions) => Awaitable<StoreEngine>;

/** Options of a connection. */
export interface EngineConnectionOptions {
  /** Timeout of an attempt to connect, in milliseconds. */
  readonly connectMs: number;
  /** Whether `connect` creates a new engine. `false` if the store received an engine instead of a function. */
  readonly isReplaceable: boolean;
  /** Called when an engine was closed because it did not answer. */
  readonly onReplace: () => void;
}

/**
 * Number of operations in a row without an answer after which the engine is replaced, and milliseconds until the next
 * attempt.
 */
export const LOST_AFTER = 3;
const RETRY_MS = 1000;

/** The connection to an engine. */
export class EngineConnection {
  readonly #connect: Connect;
  readonly #options: EngineConnectionOptions;
  readonly #closing = new Set<Promise<void>>();
  #engine?: StoreEngine;
  #connecting?: Promise<StoreEngine>;
  #giveUp?: (error: Error) => void;
  /** Settles when the latest attempt to connect has ended, even if the store has stopped waiting for the attempt. */
  #attempt?: Promise<void>;
  #failures = 0;
  /** While the engine is lost: time of the next attempt, in milliseconds of the monotonic clock. Otherwise 0. */
  #retryAt = 0;

  constructor(connect: Connect, options: EngineConnectionOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** The engine. `undefined` until it is connected. */
  get engine(): StoreEngine | undefined {
    return this.#engine;
  }

  /** Whether operations currently fail without an attempt. */
  get isLost(): boolean {
    return systemClock.now() < this.#retryAt;
  }

  /**
   * Admits an operation, or throws if the engine is lost. One operation per second is admitted to test whether the
   * engine is back. If all operations were admitted, each operation would wait for its whole deadline.
   */
  admit(operation: string): void {
    if (!this.#retryAt) return;
    if (this.isLost) throw new Error(`Cannot ${operation}: the store has not answered ${LOST_AFTER} times in a row`);
    this.#retryAt = systemClock.now() + RETRY_MS;
  }

  /** Returns the engine. Connects to it if necessary. */
  open(): Awaitable<StoreEngine> {
    const open = this.#engine ?? this.#connecting;
    if (open) return open;
    const controller = new AbortController();
    const engine = this.#connect({ signal: controller.signal });
    if (!isPromiseLike(engine)) return this.#use(engine);
    return this.#connecting = this.#await(Promise.resolve(engine), controller);
  }

  /** Records that the engine has answered. */
  succeed(engine: StoreEngine | undefined): void {
    if (engine === this.#engine) this.#failures = this.#retryAt = 0;
  }

  /** Records that an operation got no answer. `engine` is `undefined` if no engine was connected. */
  fail(engine: StoreEngine | undefined): void {
    // Ignore failures of an engine that was replaced, because the current engine may work.
    if (engine && engine !== this.#engine) return;
    if (++this.#failures < LOST_AFTER) return;
    this.#retryAt = systemClock.now() + RETRY_MS;
    if (!this.#engine || !this.#options.isReplaceable) return;
    this.#close(this.#engine);
    this.#engine = undefined;
    this.#options.onReplace();
  }

  /** Closes the engine. Settles once it is closed. */
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

  // Limit the time of an attempt, because a connection that neither succeeds nor fails would block all later attempts.
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
    const late = () => giveUp(new Error(`Cannot connect: the store has not connected within ${connectMs} ms`));
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
    // Ignore the error, because the engine is not used any more.
    const closing: Promise<void> = close().catch(() => {}).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}

const METHODS = ["get", "set", "delete", "list", "append", "read", "trim"] as const;

function checkEngine(engine: StoreEngine): void {
  const missing = METHODS.find((name) => typeof Object(engine)[name] !== "function");
  if (missing) throw new TypeError(`Cannot use an engine as a store: it has no ${missing}(); add the method`);
  const { valueBytes } = engine;
  if (valueBytes === undefined || valueBytes > 0) return;
  throw new TypeError(`Cannot use an engine as a store: its valueBytes is ${valueBytes}; it must be a number above 0`);
}
