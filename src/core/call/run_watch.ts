/**
 * Warns, in development, about questions whose answer is not awaited, and about handlers that block all other calls.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/jsonrpc.ts";
import type { Clock } from "../capacity/timers.ts";

/** The receiver of the reports of a {@linkcode RunWatch}. */
export interface RunReports {
  /** Called with each warning, once per kind. */
  warn(text: string): void;
  /** Called when a handler starts. */
  start?(): void;
  /** Called each time a handler blocks all other calls. */
  block?(ms: number): void;
}

/** A call that is watched. */
interface WatchedCall {
  watched?: WatchedRun;
  readonly method: string;
  readonly params: Params;
}

/** Milliseconds of synchronous work above which a handler is reported, because it noticeably delays other calls. */
const BLOCKING_MS = 50;

/** Maximum number of warnings to remember, so that each warning is given only once. */
const MAX_WARNINGS = 1000;

/**
 * Number of microtasks after the end of a handler within which `await`, `Promise.all` and similar functions subscribe
 * to a question that the handler passed to them.
 */
const LATE_TICKS = 3;

/** Watches the runs of all handlers of a server in development. */
export class RunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #reports: RunReports;
  readonly #given = new Set<string>();

  /** Creates a watch with the clock of the server. */
  constructor(clock: Pick<Clock, "now">, reports: RunReports) {
    this.#clock = clock;
    this.#reports = reports;
  }

  /** Runs a call, and warns of questions that the handler has not awaited when it ends. */
  run(call: WatchedCall, run: () => Result | Promise<Result>): Result | Promise<Result> {
    const watched = this.begin(call);
    const result = run();
    // Do not check a handler that failed, because it may not have reached the `await` of a question.
    const check = ({ isError }: Result) => isError === true ? undefined : this.check(watched);
    if (result instanceof Promise) result.then(check, () => {});
    else void check(result);
    return result;
  }

  /** Watches a call from now on. */
  begin(call: WatchedCall): WatchedRun {
    const { method, params: { name = call.params.uri } } = call;
    const place = typeof name === "string" ? `${method} ${quote(name)}` : method;
    return call.watched = new WatchedRun((run) => this.#time(place, run), place);
  }

  /** Warns of questions that a handler has not awaited. Call this method when the handler has ended. */
  async check({ questions, place }: WatchedRun): Promise<void> {
    if (!questions.length) return;
    for (let tick = 0; tick < LATE_TICKS; tick++) await undefined;
    for (const { source, promise } of questions) {
      if (promise.isAwaited) continue;
      const text = `Cannot use the answer to ${source}: ${place} ended without waiting for it; write await before it`;
      this.#warn(text, text);
    }
  }

  /** Runs the synchronous part of a handler, and reports the handler if it takes too long. */
  #time<T>(place: string, run: () => T): T {
    this.#reports.start?.();
    const began = this.#clock.now();
    try {
      return run();
    } finally {
      const ms = Math.round(this.#clock.now() - began);
      if (ms > BLOCKING_MS) {
        this.#reports.block?.(ms);
        const state = `${place} blocks: it ran ${ms} ms without a break`;
        this.#warn(
          `block ${place}`,
          `Cannot serve other calls while ${state}; split the work with awaits, or move it to a worker thread`,
        );
      }
    }
  }

  // Warns once of each kind. Texts of the same kind may have different times.
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

/** One run of a handler that is watched. */
export class WatchedRun {
  /** Method and subject of the call, such as `tools/call "order"`. */
  readonly place: string;
  /** Runs the synchronous part of the handler. */
  readonly time: <T>(run: () => T) => T;
  readonly questions: Asked[] = [];

  /** Creates the watch of one run. */
  constructor(time: <T>(run: () => T) => T, place: string) {
    this.time = time;
    this.place = place;
  }

  /** Returns a promise of the same answer that records whether the handler awaits it. */
  ask<T>(source: string, answer: Promise<T>): Promise<T> {
    const promise = new AskedPromise<T>((resolve, reject) => answer.then(resolve, reject));
    // Handle the rejection, because it would otherwise end the process. Use the method of `Promise`, because the method
    // of this class would record the promise as awaited.
    Promise.prototype.then.call(promise, undefined, () => {});
    this.questions.push({ source, promise });
    return promise;
  }
}

/** A promise that records whether it is awaited. */
class AskedPromise<T> extends Promise<T> {
  isAwaited = false;

  // Promises derived with `then` need no record.
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // `await` calls this method too, because the class of the promise is not `Promise` itself.
  override then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isAwaited = true;
    return super.then(onValue, onError);
  }
}
