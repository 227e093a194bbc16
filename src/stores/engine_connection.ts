/**
 * The connection of a store to its engine: made on first use, given up if it is not made in time, and replaced if the
 * engine does not answer.
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
  /** Milliseconds after which an attempt to connect is given up. */
  readonly connectMs: number;
  /** Whether `connect` makes a new engine. One that was passed to the store cannot be made again. */
  readonly isReplaceable: boolean;
  /** Called when an engine was given up. */
  readonly onReplace: () => void;
}

/** Operations in a row without an answer after which the engine is replaced, and milliseconds until the next attempt. */
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
  /** Settles once the last attempt to connect has ended, also if it was given up. */
  #attempt?: Promise<void>;
  #failures = 0;
  /** Time of the next attempt while the engine is lost, in milliseconds of the monotonic clock. Otherwise 0. */
  #retryAt = 0;

  constructor(connect: Connect, options: EngineConnectionOptions) {
    this.#connect = connect;
    this.#options = options;
  }

  /** The engine, once it is connected. */
  get engine(): StoreEngine | undefined {
    return this.#engine;
  }

  /** Whether operations fail without being tried. */
  get isLost(): boolean {
    return systemClock.now() < this.#retryAt;
  }

  /**
   * Admits an operation. While the engine is lost, one operation per second tests whether it is back. Otherwise each
   * operation would wait for its whole deadline.
   */
  admit(operation: string): void {
    if (!this.#retryAt) return;
    if (this.isLost) throw new Error(`Cannot ${operation}: the store has not answered ${LOST_AFTER} times in a row`);
    this.#retryAt = systemClock.now() + RETRY_MS;
  }

  /** Returns the engine, and connects to it if needed. */
  open(): Awaitable<StoreEngine> {
    const open = this.#engine ?? this.#connecting;
    if (open) return open;
    const controller = new AbortController();
    const engine = this.#connect({ signal: controller.signal });
    if (!isPromiseLike(engine)) return this.#use(engine);
    return this.#connecting = this.#await(Promise.resolve(engine), controller);
  }

  /** Counts an answer of an engine. */
  succeed(engine: StoreEngine | undefined): void {
    if (engine === this.#engine) this.#failures = this.#retryAt = 0;
  }

  /** Counts an operation without an answer. `engine` is `undefined` if none was connected. */
  fail(engine: StoreEngine | undefined): void {
    // An engine that was replaced says nothing about the present one.
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

  // A connection that is never made and never fails must not block all later ones.
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
    // An engine that fails to close is lost already.
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
