/**
 * Reports to an observer that a store fails, and that it works again.
 */
import type { Observer } from "../server/call/observer.ts";

/** All servers of concrete paths with the same observer share the report, so that one outage is one event. */
export class OutageReport {
  readonly #observer: Observer;
  #isDegraded = false;
  #isEngineFailing = false;

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  /** Reports that the engine fails, unless a failure was already reported. */
  failEngine(operation: string, error: unknown): void {
    this.#isEngineFailing = true;
    this.fail(operation, error);
  }

  recoverEngine(operation: string): void {
    this.#isEngineFailing = false;
    this.recover(operation);
  }

  /** Reports that a use of the store has failed, unless a failure was already reported. */
  fail(operation: string, error: unknown): void {
    if (this.#isDegraded) return;
    this.#isDegraded = true;
    this.#observer.store?.({ state: "degraded", operation, error });
  }

  /** Reports that a use of the store has succeeded, if a failure was reported, and the engine does not fail. */
  recover(operation: string): void {
    if (!this.#isDegraded || this.#isEngineFailing) return;
    this.#isDegraded = false;
    this.#observer.store?.({ state: "recovered", operation });
  }

  /** Without a listener, the store reads topics more often. */
  listen(state: "lost" | "back", error?: unknown): void {
    const event = { operation: "listen", error };
    this.#observer.store?.({ state: state === "lost" ? "degraded" : "recovered", ...event });
  }
}
