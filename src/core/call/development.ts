/**
 * Reports from a server to its author during development. Loaded when development is turned on.
 *
 * @module
 */
import { toPrintableLine } from "../../kit/printable.ts";
import type { Clock } from "../capacity/timers.ts";
import type { FaultEvent } from "./observer.ts";
import { RerunWatch, toWarning } from "./rerun_watch.ts";
import { type RunReports, RunWatch } from "./run_watch.ts";

/** Receives the reports of a server in development. Its methods must not throw. */
export interface DevelopmentListener extends Partial<RunReports> {
  /** Called for each unexpected error, before the client gets its response. */
  fault?(event: FaultEvent): void;
}

/** Watches a server in development: prints warnings, and passes all reports to listeners. */
export class Development implements RunReports {
  /** Watches for work that is repeated when an answer arrives. */
  readonly reruns: RerunWatch;
  /** Watches the runs of handlers. */
  readonly runs: RunWatch;
  readonly #listeners: ReadonlySet<DevelopmentListener>;

  /** Watches a server with this clock. `listeners` may change later. */
  constructor(clock: Pick<Clock, "now">, listeners: ReadonlySet<DevelopmentListener>) {
    this.#listeners = listeners;
    this.reruns = new RerunWatch(clock, (repeated) => this.warn(toWarning(repeated)));
    this.runs = new RunWatch(clock, this);
  }

  fault(event: FaultEvent): void {
    for (const listener of this.#listeners) listener.fault?.(event);
  }

  warn(text: string): void {
    // Escape the text, because it may contain URIs of templates, which clients choose.
    console.warn(toPrintableLine(text));
    for (const listener of this.#listeners) listener.warn?.(text);
  }

  start(): void {
    for (const listener of this.#listeners) listener.start?.();
  }

  block(ms: number): void {
    for (const listener of this.#listeners) listener.block?.(ms);
  }
}
