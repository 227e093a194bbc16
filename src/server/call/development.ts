/**
 * Prints warnings for the server's author during development. Loaded when development mode is enabled.
 */
import { toPrintableLine } from "../../core/kit/printable.ts";
import type { Clock } from "../../core/timers.ts";
import type { FaultEvent } from "./observer.ts";
import { RerunWatch, toWarning } from "./rerun_watch.ts";
import { type RunReports, RunWatch } from "./run_watch.ts";

/** Receives the reports of a server in development mode. The methods must not throw. */
export interface DevelopmentListener extends Partial<RunReports> {
  /** Called for each unexpected error before the response is sent. */
  fault?(event: FaultEvent): void;
}

/** Watches a server in development mode. Prints warnings, and passes all reports to the listeners. */
export class Development implements RunReports {
  readonly reruns: RerunWatch;
  readonly runs: RunWatch;
  readonly #listeners: ReadonlySet<DevelopmentListener>;

  /** A listener that is added to `listeners` receives all later reports. */
  constructor(clock: Pick<Clock, "now">, listeners: ReadonlySet<DevelopmentListener>) {
    this.#listeners = listeners;
    this.reruns = new RerunWatch(clock, (repeated) => this.warn(toWarning(repeated)));
    this.runs = new RunWatch(clock, this);
  }

  fault(event: FaultEvent): void {
    for (const listener of this.#listeners) listener.fault?.(event);
  }

  warn(text: string): void {
    // Escape the text, because it may contain a URI that a client chose.
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
