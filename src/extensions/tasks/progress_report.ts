/**
 * The progress messages of one task, which are written to its record.
 */
import type { Clock } from "../../core/timers.ts";

/** Minimum interval in milliseconds between two writes of progress messages. */
const REPORT_MS = 250;

export interface ReportParts {
  readonly clock: Clock;
  /** Writes a message. Resolves to whether later messages will be written. */
  readonly write: (message: string) => Promise<boolean>;
}

/**
 * Writes the newest progress message of a task, at most once per {@linkcode REPORT_MS} milliseconds, because a handler
 * may report progress many times per second.
 */
export class ProgressReport {
  readonly #parts: ReportParts;
  /** The newest message that is not written yet. */
  #message?: string;
  #isWaiting = false;
  #stop?: () => void;

  constructor(parts: ReportParts) {
    this.#parts = parts;
  }

  add(message: string): void {
    this.#message = message;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#write(message).catch(() => {});
  }

  /** Drops a message that is not written yet. */
  stop(): void {
    this.#stop?.();
  }

  async #write(message: string): Promise<void> {
    const { clock, write } = this.#parts;
    this.#message = undefined;
    if (!await write(message)) return;
    this.#stop = clock.start(
      () => {
        this.#isWaiting = false;
        if (this.#message !== undefined) this.add(this.#message);
      },
      REPORT_MS,
      { background: true },
    );
  }
}
