/**
 * Warns, in development, about handlers that block the event loop.
 */
import { BoundedMap } from "../../core/kit/bounded_map.ts";
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { Clock } from "../../core/timers.ts";
import { toPlace } from "./ignored_questions.ts";

export interface RunReports {
  /** Called with a warning. Warnings of the same kind about the same handler are reported only once. */
  warn(text: string): void;
  /** Called when a handler starts. If the handler blocks, `block` follows. */
  start?(): void;
  /** Called each time a handler has blocked the event loop for `ms` milliseconds. */
  block?(ms: number): void;
}

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

export class RunWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #reports: RunReports;
  readonly #given = new BoundedMap<string, void>({ full: "refuse", max: MAX_WARNINGS });

  constructor(clock: Pick<Clock, "now">, reports: RunReports) {
    this.#clock = clock;
    this.#reports = reports;
  }

  run(call: WatchedCall, run: () => Result | Promise<Result>): Result | Promise<Result> {
    const place = toPlace(call);
    call.watched = { time: (run) => this.#time(place, run) };
    return run();
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
    if (!this.#given.has(kind) && this.#given.set(kind)) this.#reports.warn(text);
  }
}

export interface WatchedRun {
  readonly time: <T>(run: () => T) => T;
}
