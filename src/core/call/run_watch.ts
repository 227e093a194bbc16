/**
 * Warns, in development, about questions whose answer is not awaited, and about handlers that block the event loop.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/jsonrpc.ts";
import type { Clock } from "../capacity/timers.ts";

/** Receives the reports of a {@linkcode RunWatch}. */
export interface RunReports {
  /** Called with a warning. Warnings of the same kind about the same handler are reported only once. */
  warn(text: string): void;
  /** Called when a handler starts. If the handler blocks, `block` follows. */
  start?(): void;
  /** Called each time a handler has blocked the event loop for `ms` milliseconds. */
  block?(ms: number): void;
}

/** The properties of a call that `RunWatch` uses. */
interface WatchedCall {
  watched?: WatchedRun;
  readonly method: string;
  readonly params: Params;
}

/**
 * Milliseconds of synchronous work above which a handler is reported, because the work noticeably delays other calls.
 */
const BLOCKING_MS = 50;

/** Maximum number of warnings per server. The server remembers the warnings, so that no warning is repeated. */
const MAX_WARNINGS = 1000;

/**
 * After a handler has ended, `await`, `Promise.all` and similar functions may still call `then` on its promises for
 * this number of microtasks.
 */
const LATE_TICKS = 3;

/** Watches all handlers of a server in development. */
export class RunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #reports: RunReports;
  readonly #given = new Set<string>();

  /** `clock` measures the duration of synchronous work. */
  constructor(clock: Pick<Clock, "now">, reports: RunReports) {
    this.#clock = clock;
    this.#reports = reports;
  }

  /** Runs a call. When the handler has ended, warns of questions that the handler has not awaited. */
  run(call: WatchedCall, run: () => Result | Promise<Result>): Result | Promise<Result> {
    const watched = this.begin(call);
    const result = run();
    // Do not check a handler that failed, because it may not have reached the `await` of a question.
    const check = ({ isError }: Result) => isError === true ? undefined : this.check(watched);
    if (result instanceof Promise) result.then(check, () => {});
    else void check(result);
    return result;
  }

  /** Starts to watch a call. Returns the record of the handler's run. */
  begin(call: WatchedCall): WatchedRun {
    const { method, params: { name = call.params.uri } } = call;
    const place = typeof name === "string" ? `${method} ${quote(name)}` : method;
    return call.watched = new WatchedRun((run) => this.#time(place, run), place);
  }

  /** Warns of questions that a handler has not awaited. Called when the handler has ended. */
  async check({ questions, place }: WatchedRun): Promise<void> {
    if (!questions.length) return;
    for (let tick = 0; tick < LATE_TICKS; tick++) await undefined;
    for (const { source, promise } of questions) {
      if (promise.isAwaited) continue;
      const text =
        `Cannot use the answer to ${source}: ${place} ended without waiting for the answer; write await before ${source}`;
      this.#warn(text, text);
    }
  }

  /** Runs the synchronous part of a handler, and reports the handler if `run` takes too long. */
  #time<T>(place: string, run: () => T): T {
    this.#reports.start?.();
    const began = this.#clock.now();
    try {
      return run();
    } finally {
      const ms = Math.round(this.#clock.now() - began);
      if (ms > BLOCKING_MS) {
        this.#reports.block?.(ms);
        const state = `${place} blocks the event loop for ${ms} ms`;
        this.#warn(
          `block ${place}`,
          `Cannot serve other calls while ${state}; split the work with await, or move the work to a worker thread`,
        );
      }
    }
  }

  // Warns only once per `kind`. The text is not compared, because it may contain a duration.
  #warn(kind: string, text: string): void {
    if (this.#given.has(kind) || this.#given.size >= MAX_WARNINGS) return;
    this.#given.add(kind);
    this.#reports.warn(text);
  }
}

/** A question, with the source code that asks it, such as `ctx.elicit("sure")`. */
interface Asked {
  readonly source: string;
  readonly promise: AskedPromise<unknown>;
}

/** The record of one run of a handler. */
export class WatchedRun {
  /** Method and handler name of the call, such as `tools/call "order"`. */
  readonly place: string;
  /** Runs the synchronous part of the handler, and measures its duration. */
  readonly time: <T>(run: () => T) => T;
  readonly questions: Asked[] = [];

  constructor(time: <T>(run: () => T) => T, place: string) {
    this.time = time;
    this.place = place;
  }

  /** Returns a promise for the answer that records whether the handler awaits the promise. */
  ask<T>(source: string, answer: Promise<T>): Promise<T> {
    const promise = new AskedPromise<T>((resolve, reject) => answer.then(resolve, reject));
    // Handle the rejection, because an unhandled rejection would end the process. Call `then` of `Promise`, because
    // `then` of `AskedPromise` would record the promise as awaited.
    Promise.prototype.then.call(promise, undefined, () => {});
    this.questions.push({ source, promise });
    return promise;
  }
}

/** A promise that records whether its `then` was called. */
class AskedPromise<T> extends Promise<T> {
  isAwaited = false;

  // Let `then` return a plain `Promise`, because only the original promise is checked.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // `await` calls this method too, because the promise's constructor is not `Promise`.
  override then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    return super.then(onValue, onError);
  }
}
